package terraformcli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheCLIAppliesAsTheParserEvaluates compares the two methods of the conformance suite: with
// Terraform in PATH, and without.
func TestTheCLIAppliesAsTheParserEvaluates(t *testing.T) {
	c := Find()
	if c == nil {
		t.Skip("there is no terraform in PATH")
	}
	good := map[string]any{"tags": []any{"a", "b"}, "size": 2.0}
	for name, tc := range texts {
		if !tc.refused {
			good[name] = tc.text
		}
	}
	want, err := Evaluate(good)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Apply(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-parser +terraform:\n%s", diff)
	}
	for name, tc := range texts {
		if tc.refused {
			if got, err := c.Apply(t.Context(), map[string]any{"user_data": tc.text}); err == nil || !strings.HasPrefix(err.Error(), "apply failed: ") {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}
