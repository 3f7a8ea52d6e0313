package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

func TestTheMutantsOfAFile(t *testing.T) {
	const head = "package p\n\nfunc _(a, b int, c, d, x bool, s, u string, f func(bool) (int, int), i int32) {\n\t"
	for name, tc := range map[string]struct {
		code string
		want string
		// mutants are the types of the changes.
		mutants []string
	}{
		"a comparison is negated, and its bound moves": {"x = a < b", "mutant.Less(2, 3, a , b)", []string{"assignment removed", "< to <=", "< to >="}},
		"an equation is negated":                       {"x := a == b", "x := ((a == b) != mutant.Is(1))", []string{"== to !="}},
		"a negation goes":                              {"x := !c", "x := ((!c) != mutant.Is(1))", []string{"! removed"}},
		"and becomes or":                               {"x := c && d", "x := ((((c) != mutant.Is(1)) && ((d) != mutant.Is(1))) != mutant.Is(1))", []string{"&& to ||"}},
		"a sum becomes a difference":                   {"a := a + b", "a := mutant.Sum(1, a , b)", []string{"+ to -"}},
		"an operand has mutants of its own":            {"a := a + b*a", "a := mutant.Sum(1, a , mutant.Product(2, b,a))", []string{"+ to -", "* to /"}},
		"texts are not subtracted":                     {"s := s + u", "s := s + u", nil},
		"a text does not become shorter":               {"s += u", "s += u", nil},
		"a counter counts down":                        {"a++", "a= mutant.Sum(1, a, 1)", []string{"+ to -"}},
		"what is added to a variable is subtracted":    {"a += b * 2", "a = mutant.Sum(1, a,  mutant.Product(2, b , 2))", []string{"+ to -", "* to /"}},
		"an assignment goes":                           {"a, b = f(c)", "if !mutant.Is(1) { a, b = f(c) }", []string{"assignment removed"}},
		"an assignment of a case goes":                 {"switch { case c: a = b }", "switch { case c: if !mutant.Is(1) { a = b } }", []string{"assignment removed"}},
		"a declaration stays":                          {"a := b", "a := b", nil},
		"a call goes":                                  {"f(c)", "if !mutant.Is(1) { f(c) }", []string{"call removed"}},
		"a panic stays":                                {"panic(c)", "panic(c)", nil},
		"a constant becomes a variable":                {"const a = 2 * 3", "var a = mutant.Product(1, 2 , 3)", []string{"* to /"}},
		"one of many constants becomes a variable":     {"const ( a = 2; b int32 = 2 / 3 )", "const ( a = 2; ); var b int32 = mutant.Quotient[int32](1, 2 , 3); const ( )", []string{"/ to *"}},
		"a constant keeps the type that it is used as": {"i := max(i, 1 << 3)", "i := max(i, mutant.Left[int32](1, 1 , 3))", []string{"<< to >>"}},
		"a shifted fraction stays":                     {"y := 0.5 / (1 << 3)", "y := mutant.Quotient[float64](1, 0.5 , (1 << 3))", []string{"/ to *"}},
		"one of a statement is in the statement":       {"f(a != b)", "if !mutant.Is(1) { f(((a != b) != mutant.Is(2))) }", []string{"call removed", "!= to =="}},
	} {
		t.Run(name, func(t *testing.T) {
			m := mutatorOf(t, head+tc.code+"\n}\n")
			m.walk()
			var got []string
			for i, change := range m.mutants {
				if change.Line != 4 || change.Text != tc.code || change.Number != i+1 {
					t.Errorf("number %d, line %d: %q, want number %d, line 4 with the code", change.Number, change.Line, change.Text, i+1)
				}
				got = append(got, change.Type)
			}
			if !slices.Equal(got, tc.mutants) {
				t.Errorf("mutants %q, want %q", got, tc.mutants)
			}
			if code := string(m.code()); !strings.Contains(code, tc.want) {
				t.Errorf("code\n%s\nwant\n%s", code, tc.want)
			}
		})
	}
}

func mutatorOf(t *testing.T, text string) *mutator {
	t.Helper()
	fset := token.NewFileSet()
	root, err := parser.ParseFile(fset, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	// Ignore the errors about declared and unused names.
	ignored := func(error) {}
	_, _ = (&types.Config{Error: ignored}).Check("p", fset, []*ast.File{root}, info)
	return newMutator(fset, info, root, []byte(text), 1)
}

// TestAMutantSurvivesIfNoTestNotices builds and runs the tests of a package with its mutants.
func TestAMutantSurvivesIfNoTestNotices(t *testing.T) {
	const pkg = "testdata/planner"
	mutants, sources, err := mutate(pkg)
	if err != nil {
		t.Fatal(err)
	}
	if err := try(pkg, mutants, sources, 2); err != nil {
		t.Fatal(err)
	}
	var lived []string
	for _, m := range mutants {
		if !m.Killed {
			lived = append(lived, fmt.Sprintf("%s: %s", m.Type, m.Text))
		}
	}
	if want := []string{"+ to -: return a + b"}; !slices.Equal(lived, want) {
		t.Errorf("of %d mutants there live %q, want %q", len(mutants), lived, want)
	}
}
