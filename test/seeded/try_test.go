package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFirstFailureIsNamedWithItsSubtest(t *testing.T) {
	for name, tc := range map[string]struct{ out, want string }{
		"a test":              {"--- FAIL: TestA (0.00s)\n    x.go:1: y\nFAIL\n", "TestA"},
		"a subtest":           {"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        --- FAIL: TestA/b/c (0.00s)\n    --- FAIL: TestA/d (0.00s)\n", "TestA/b/c"},
		"the first of two":    {"--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/c (0.00s)\n", "TestA"},
		"a panic, or an exit": {"panic: x\n", "(ended without the result of a test)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := firstFailure(tc.out); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheFirstErrorIsThatOfTheCompiler(t *testing.T) {
	if got := firstError("# example.org/x\nx/y.go:3:2: declared and not used: z\nx/y.go:4:1: other\n"); got != "x/y.go:3:2: declared and not used: z" {
		t.Errorf("got %q", got)
	}
	if got := firstError("no required module\nmore\n"); got != "no required module" {
		t.Errorf("got %q", got)
	}
}

// repository returns a folder that is a git repository with these files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		git := exec.Command("git", args...)
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// content of a file, "" if it does not exist.
func content(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(b)
}

func TestACopyIsInLineWithTheWorkTree(t *testing.T) {
	dir := repository(t, map[string]string{".gitignore": "/.work/\n", "changed.go": "a\n", "deleted.go": "a\n", "x/same.go": "a\n"})
	write(t, filepath.Join(dir, "changed.go"), "b\n")
	write(t, filepath.Join(dir, "new.go"), "c\n")
	write(t, filepath.Join(dir, ".work", "ignored.go"), "d\n")
	if err := os.Remove(filepath.Join(dir, "deleted.go")); err != nil {
		t.Fatal(err)
	}
	// An interrupted run leaves a patch in the copy.
	write(t, filepath.Join(dir, ".work/seeded/copy/x/same.go"), "patched\n")
	write(t, filepath.Join(dir, ".work/seeded/copy/created.go"), "patched\n")
	write(t, filepath.Join(dir, ".work/seeded/copy/.work/bin/kept"), "built\n")
	c, err := newCopy(dir, ".work/seeded")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"changed.go": "b\n", "new.go": "c\n", "x/same.go": "a\n", "deleted.go": "", "created.go": "", ".work/ignored.go": "", ".work/bin/kept": "built\n"} {
		if got := content(filepath.Join(c.to, name)); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

func TestAPatchChangesTheCopyAndIsUndone(t *testing.T) {
	dir := repository(t, map[string]string{".gitignore": "/.work/\n", "x/y.go": "a\n"})
	c, err := newCopy(dir, ".work/seeded")
	if err != nil {
		t.Fatal(err)
	}
	f, err := parseFault("f", []byte("Promise: p\nTests: ./x\n"+diff+"--- /dev/null\n+++ b/x/new.go\n@@ -0,0 +1 @@\n+new\n"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.apply(f.Patch); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := content(filepath.Join(c.to, "x/y.go")); got != "b\n" {
		t.Errorf("the copy has %q", got)
	}
	if got := content(filepath.Join(dir, "x/y.go")); got != "a\n" {
		t.Errorf("the repository has %q", got)
	}
	if _, err := c.apply(f.Patch); err == nil {
		t.Error("a patch that does not apply is no error")
	}
	if err := c.restore(f); err != nil {
		t.Fatal(err)
	}
	if y, added := content(filepath.Join(c.to, "x/y.go")), content(filepath.Join(c.to, "x/new.go")); y != "a\n" || added != "" {
		t.Errorf("after the restore the copy has %q and %q", y, added)
	}
}

func TestAPackageIsOfTheModuleAroundIt(t *testing.T) {
	dir := repository(t, map[string]string{".gitignore": "/.work/\n", "go.mod": "module a\n", "in/x.go": "package in\n", "sub/go.mod": "module b\n", "sub/in/x.go": "package in\n"})
	c, err := newCopy(dir, ".work/seeded")
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[string][2]string{"./in": {"", "./in"}, "./sub/in": {"sub", "./in"}} {
		module, relative, err := c.moduleOf(pkg)
		if err != nil || module != filepath.Join(c.to, want[0]) || relative != want[1] {
			t.Errorf("%s is %s of %s, error %v", pkg, relative, module, err)
		}
	}
	if _, _, err := c.moduleOf("./gone"); err == nil || !strings.Contains(err.Error(), "there is no package ./gone") {
		t.Errorf("error %v", err)
	}
}
