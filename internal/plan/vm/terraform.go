package vm

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// terraformLiteral is the function text.terraformLiteral() of the binding's language: see
// fn.Infrastructure.
var terraformLiteral = cel.Function("terraformLiteral", cel.MemberOverload("string_terraformLiteral",
	[]*cel.Type{cel.StringType}, cel.StringType,
	cel.UnaryBinding(func(text ref.Val) ref.Val {
		return types.String(asTerraformLiteral(string(text.(types.String))))
	})))

// templateEscapes of Terraform's language. A $ or % that no { follows stands for itself.
var templateEscapes = strings.NewReplacer("${", "$${", "%{", "%%{")

// asTerraformLiteral is the text that Terraform evaluates to the given one. A shell script has
// ${NAME:-default}, which Terraform refuses as a template, and prints with all that is around
// it: the join token among it.
func asTerraformLiteral(text string) string { return templateEscapes.Replace(text) }
