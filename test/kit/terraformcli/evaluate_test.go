package terraformcli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// texts with the results of the CLI. A text with refused is an error.
var texts = map[string]struct {
	text    string
	want    string
	refused bool
}{
	"PlainText":               {text: "#!/bin/sh\necho 100% $HOME\n", want: "#!/bin/sh\necho 100% $HOME\n"},
	"AParameterWithADefault":  {text: "cd ${KUBELET:-/usr/local/bin}", refused: true},
	"AParameter":              {text: "cd ${HOME}", refused: true},
	"AnEscapedParameter":      {text: "cd $${HOME}", want: "cd ${HOME}"},
	"AFormatOfDate":           {text: "curl -w '%{http_code}'", refused: true},
	"AnEscapedFormat":         {text: "curl -w '%%{http_code}'", want: "curl -w '%{http_code}'"},
	"ADollarBeforeAnEscaped":  {text: "$$${A}", want: "$${A}"},
	"AnExpressionIsEvaluated": {text: "${1 + 1} of ${\"a\"}", want: "2 of a"},
}

func TestEvaluate(t *testing.T) {
	for name, tc := range texts {
		t.Run(name, func(t *testing.T) {
			got, err := Evaluate(map[string]any{"user_data": tc.text, "tags": []any{"a"}, "size": 2})
			if tc.refused {
				if err == nil {
					t.Errorf("%q became %v", tc.text, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"user_data": tc.want, "tags": []any{"a"}, "size": 2.0}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTheCLIEvaluatesTheSame applies a resource of Terraform's built-in provider.
func TestTheCLIEvaluatesTheSame(t *testing.T) {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("there is no terraform in PATH")
	}
	good := map[string]any{}
	for name, tc := range texts {
		if !tc.refused {
			good[name] = tc.text
		}
	}
	dir := t.TempDir()
	run := func(args ...string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), terraform, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
		return c.Output()
	}
	write := func(input map[string]any) {
		t.Helper()
		b, err := json.Marshal(map[string]any{
			"resource": map[string]any{"terraform_data": map[string]any{"vm": map[string]any{"input": input}}},
			"output":   map[string]any{"vm": map[string]any{"value": "${terraform_data.vm.output}"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.tf.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	if out, err := run("init"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := run("apply", "-auto-approve"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := run("output", "-json", "vm")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want, err := Evaluate(good)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-evaluated +terraform:\n%s", diff)
	}
	for name, tc := range texts {
		if tc.refused {
			write(map[string]any{name: tc.text})
			if out, err := run("validate"); err == nil {
				t.Errorf("%s: terraform takes %q: %s", name, tc.text, out)
			}
		}
	}
}
