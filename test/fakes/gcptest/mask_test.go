package gcptest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMaskLeavesWhatItNames(t *testing.T) {
	const answer = `{"kind": "k", "next": "n", "items": {"a": {"vms": [{"name": "x", "zone": "z", "secret": "s"}], "warning": {"code": "c", "data": [1]}}, "b": {"vms": []}}}`
	cases := map[string]struct{ fields, want string }{
		"EverythingWithoutAMask":      {"", answer},
		"AField":                      {"next", `{"next": "n"}`},
		"AFieldOfAll":                 {"items/*/warning/code", `{"items": {"a": {"warning": {"code": "c"}}, "b": {}}}`},
		"SomeFieldsOfTheEntriesOfAll": {"next,items/*/vms(name,zone)", `{"next": "n", "items": {"a": {"vms": [{"name": "x", "zone": "z"}]}, "b": {"vms": []}}}`},
		"TwoPathsWithTheSameBegin":    {"items/*/warning(code),items/*/vms(name)", `{"items": {"a": {"warning": {"code": "c"}, "vms": [{"name": "x"}]}, "b": {"vms": []}}}`},
		"AFieldThatIsNotThere":        {"missing", `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, ok := parseMask(tc.fields)
			if !ok {
				t.Fatal("refused")
			}
			var in, want any
			for text, v := range map[string]*any{answer: &in, tc.want: &want} {
				if err := json.Unmarshal([]byte(text), v); err != nil {
					t.Fatal(err)
				}
			}
			if tc.fields == "" {
				want = in
			}
			if d := cmp.Diff(want, m.of(in)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for _, wrong := range []string{",", "a(", "a(b", "a)", "a//b", "a b", "(a)"} {
		if m, ok := parseMask(wrong); ok {
			t.Errorf("%q: %v", wrong, m)
		}
	}
}
