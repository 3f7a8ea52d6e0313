package patience

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// limiting are the functions whose result ends a wait after a time.
var limiting = map[string][]string{
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	"time":    {"After", "AfterFunc", "NewTimer", "Tick"},
	"wait":    {"PollUntilContextTimeout", "PollImmediate", "PollImmediateUntil", "Poll"},
}

// flagged matches the argument of a command that waits no longer.
var flagged = regexp.MustCompile(`--timeout[= ]\d`)

// allowed reads the files that may have limits, with their number and the reason.
func allowed(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile("limits.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " ", 3)
		n, err := strconv.Atoi(fields[0])
		if err != nil || len(fields) != 3 {
			t.Fatalf("limits.txt: %q: want a number, a file and a reason", line)
		}
		out[fields[1]] = n
	}
	return out
}

// TestOnlyThisPackageHasLimitsOfTime finds the calls in tests that end a wait after a time of their own: on a busy computer, such
// a test fails for no fault of what it tests. It leaves out tests whose time is given, by testing/synctest.
func TestOnlyThisPackageHasLimitsOfTime(t *testing.T) {
	may, found := allowed(t), map[string]int{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "patience") {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil || !isOfTests(rel) {
			return err
		}
		where, err := limits(file)
		if err != nil {
			return err
		}
		if n := len(where); n > may[rel] {
			t.Errorf("%s has %d limits of time, and may have %d: wait with patience.Eventually, Context or Over, or give the time by testing/synctest: %s", rel, n, may[rel], strings.Join(where, ", "))
		}
		found[rel] = len(where)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, n := range may {
		if found[file] < n {
			t.Errorf("%s has %d limits of time: lower its number in limits.txt from %d", file, found[file], n)
		}
	}
}

// isOfTests reports whether a file is a test, or of a package that only tests use.
func isOfTests(file string) bool {
	if !strings.HasSuffix(file, ".go") {
		return false
	}
	dir := filepath.ToSlash(filepath.Dir(file))
	return strings.HasSuffix(file, "_test.go") || strings.HasPrefix(dir+"/", "test/") || strings.HasSuffix(dir, "test")
}

// limits returns the lines of a file that have a limit. A file that imports testing/synctest has none: the time of its tests is given.
func limits(file string) ([]string, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		return nil, err
	}
	for _, i := range f.Imports {
		if i.Path.Value == `"testing/synctest"` {
			return nil, nil
		}
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && flagged.MatchString(text.Value) {
			out = append(out, fmt.Sprintf("line %d", set.Position(text.Pos()).Line))
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && slices.Contains(limiting[of.Name], selector.Sel.Name) && !isGiven(call) {
			out = append(out, fmt.Sprintf("line %d", set.Position(call.Pos()).Line))
		}
		return true
	})
	return out, nil
}

// isGiven reports whether the time of a call is that of this package, or an interval of polling.
func isGiven(call *ast.CallExpr) bool {
	given := false
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				of, ok := n.X.(*ast.Ident)
				given = given || ok && of.Name == "patience"
			case *ast.Ident:
				given = given || n.Name == "interval"
			}
			return true
		})
	}
	return given
}
