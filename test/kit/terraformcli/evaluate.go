// Package terraformcli evaluates strings like the Terraform CLI. Some Crossplane providers do not
// call the code of their Terraform provider. They write a main.tf.json and run the CLI, which
// evaluates each string in that file as a template. It also runs the real Terraform with the providers of this repository.
package terraformcli

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Evaluate the arguments of a resource as the CLI does if a main.tf.json has them. The parser is
// Terraform's own. The error is the CLI's, without the source.
func Evaluate(arguments map[string]any) (map[string]any, error) {
	source, err := json.Marshal(map[string]any{"arguments": arguments})
	if err != nil {
		return nil, err
	}
	file, problems := hcljson.Parse(source, "main.tf.json")
	if problems.HasErrors() {
		return nil, problems
	}
	attributes, problems := file.Body.JustAttributes()
	if problems.HasErrors() {
		return nil, problems
	}
	// The main.tf.json of a provider has no variables and functions.
	value, problems := attributes["arguments"].Expr.Value(&hcl.EvalContext{})
	if problems.HasErrors() {
		return nil, fmt.Errorf("apply failed: %s: %s", problems[0].Summary, problems[0].Detail)
	}
	if value.Type() == cty.DynamicPseudoType {
		return nil, fmt.Errorf("the arguments are not known before they are applied")
	}
	evaluated, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(evaluated, &out)
}
