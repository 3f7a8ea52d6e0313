package vm

import (
	"testing"

	"github.com/drover-dev/drover/test/kit/terraformcli"
)

func TestATerraformLiteralIsEvaluatedToItsText(t *testing.T) {
	env, err := fieldEnv()
	if err != nil {
		t.Fatal(err)
	}
	e, err := compile(env, "value", "userData.value.terraformLiteral()")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"NoTemplate":              "#cloud-config\n",
		"AParameterWithADefault":  "cd ${KUBELET:-/usr/local/bin}\n",
		"AnExpression":            "${1 + 1}",
		"ADirective":              "%{ if true }yes%{ endif }",
		"AFormatOfCurl":           "curl -w '%{http_code}'",
		"OneThatIsEscapedAlready": "$${A} %%{B}",
		"ManyDollars":             "$$$${A} $$ $ ${",
		"ManyPercents":            "100% %%%{ %%",
		"NestedBraces":            "${A:-${B:-%{C}}}",
		"Nothing":                 "",
	} {
		t.Run(name, func(t *testing.T) {
			literal, err := e.eval(map[string]any{"userData": map[string]string{"value": text}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := terraformcli.Evaluate(map[string]any{"user_data": literal})
			if err != nil || got["user_data"] != text {
				t.Errorf("%q became %q, and then %v, %v", text, literal, got, err)
			}
		})
	}
}

// TestEveryShortTextSurvivesAsALiteral has all texts of up to five characters that are special in
// Terraform.
func TestEveryShortTextSurvivesAsALiteral(t *testing.T) {
	texts := []string{""}
	for from := 0; len(texts[len(texts)-1]) < 5; {
		to := len(texts)
		for _, text := range texts[from:to] {
			for _, c := range "$%{}~" {
				texts = append(texts, text+string(c))
			}
		}
		from = to
	}
	var literals []any
	for _, text := range texts {
		literals = append(literals, asTerraformLiteral(text))
	}
	got, err := terraformcli.Evaluate(map[string]any{"texts": literals})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if got["texts"].([]any)[i] != text {
			t.Errorf("%q became %q", text, got["texts"].([]any)[i])
		}
	}
}
