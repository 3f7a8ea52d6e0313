package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const diff = `
--- a/x/y.go
+++ b/x/y.go
@@ -1,1 +1,1 @@
-a
+b
`

func TestAHeaderIsRead(t *testing.T) {
	f, err := parseFault("name", []byte("Promise: All: is well.\nTests: ./x -run ^TestA$|^TestB$/^c: d$\nTests: ./z\nPlane: yes\nSurvives: it does nothing\n"+diff))
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "name" || f.Promise != "All: is well." || !f.Plane || f.Survives != "it does nothing" {
		t.Errorf("read %+v", f)
	}
	if want := []tests{{"./x", "^TestA$|^TestB$/^c: d$"}, {"./z", ""}}; !slices.Equal(f.Tests, want) {
		t.Errorf("tests %q, want %q", f.Tests, want)
	}
	if !slices.Equal(f.Files, []string{"x/y.go"}) {
		t.Errorf("files %q", f.Files)
	}
}

func TestAFileThatAPatchCreatesOrDeletesIsAFileOfThePatch(t *testing.T) {
	got := filesOf("--- a/old.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n--- /dev/null\n+++ b/new.go\n@@ -0,0 +1 @@\n+a\n")
	if !slices.Equal(got, []string{"old.go", "new.go"}) {
		t.Errorf("files %q", got)
	}
}

func TestAWrongHeaderIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"without a diff":                  {"Promise: a\nTests: ./x\n", "has no unified diff"},
		"without a promise":               {"Tests: ./x\n" + diff, "has no line Promise"},
		"with an empty promise":           {"Promise: \nTests: ./x\n" + diff, "must be a line like Promise: text"},
		"without tests":                   {"Promise: a\n" + diff, "has no line Tests"},
		"with an unknown key":             {"Promise: a\nTest: ./x\n" + diff, `"Test" is none of`},
		"with a line that is no key":      {"Promise a\nTests: ./x\n" + diff, `"Promise a" must be a line`},
		"with a package outside":          {"Promise: a\nTests: x\n" + diff, "must be like ./internal/move"},
		"with a pattern of packages":      {"Promise: a\nTests: ./x ./y\n" + diff, "must be like ./internal/move"},
		"with a pattern that is not one":  {"Promise: a\nTests: ./x -run (\n" + diff, "missing closing"},
		"with a plane that is not wanted": {"Promise: a\nTests: ./x\nPlane: no\n" + diff, "Plane:"},
		"without a reason to survive":     {"Promise: a\nTests: ./x\nSurvives:\n" + diff, "must be a line like Promise: text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseFault("name", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "fault name: ") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestEachFaultIsComplete reads the faults of the repository. That their patches apply is left to make seeded.
func TestEachFaultIsComplete(t *testing.T) {
	all, err := readFaults("faults")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Errorf("%d faults: at least 60 must measure the tests of the whole product", len(all))
	}
	cheap := 0
	for _, f := range all {
		if !f.Plane {
			cheap++
		}
		for _, of := range f.Tests {
			if _, err := os.Stat(filepath.Join("../..", of.Package)); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
	if cheap < 50 {
		t.Errorf("%d faults need no control plane, want at least 50", cheap)
	}
}
