package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTheMutantsOfAFile(t *testing.T) {
	for name, tc := range map[string]struct {
		code string
		want []string
	}{
		"a comparison is negated, and its bound moves": {"return a < b", []string{"return a <= b", "return a >= b"}},
		"an equation is negated":                       {"return a == b", []string{"return a != b"}},
		"a negation goes":                              {"return !c", []string{"return c"}},
		"and becomes or":                               {"return c && d", []string{"return c || d"}},
		"a sum becomes a difference":                   {"return a + b", []string{"return a - b"}},
		"texts are not subtracted":                     {`return "x" + s + t`, nil},
		"a counter counts down":                        {"a++", []string{"a--"}},
		"an assignment goes, and what it uses stays":   {"a, b = f(c)", []string{"_, _ = f(c)"}},
		"a declaration stays":                          {"a := f(c)", nil},
		"a call goes":                                  {"f(c)", []string{""}},
		"a condition of a case is one":                 {"switch { case a > b: return }", []string{"switch { case a >= b: return }", "switch { case a <= b: return }"}},
	} {
		t.Run(name, func(t *testing.T) {
			const head = "package p\n\nfunc _() {\n\t"
			source := head + tc.code + "\n}\n"
			ms, err := mutantsIn("p.go", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range ms {
				if m.Line != 4 || m.Text != tc.code {
					t.Errorf("line %d: %q, want line 4 with the code", m.Line, m.Text)
				}
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(string(m.applied([]byte(source))), head), "\n}\n"))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
