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
		return types.String(asTerraformLiteral(string(text.(types.String)))) //nolint:forcetypeassert // CEL checks the type of the overload.
	})))

// templateEscapes of Terraform's language. A $ or % is literal if no { follows.
var templateEscapes = strings.NewReplacer("${", "$${", "%{", "%%{")

// asTerraformLiteral escapes a text so that Terraform evaluates it to the given one. Terraform
// refuses ${NAME:-default} of a shell script as an invalid template, and prints it with the text
// around it, such as the join token.
func asTerraformLiteral(text string) string { return templateEscapes.Replace(text) }
