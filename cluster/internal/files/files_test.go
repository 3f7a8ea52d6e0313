package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteMakesAPrivateFileAndItsFolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	for _, content := range []string{"first", "second"} {
		if err := Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Fatalf("got %q, %v, want %q", b, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x\n", 100_000)+"one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(Tail(path, 2)); got != "one\ntwo" {
		t.Errorf("got %q", got)
	}
	if got := Tail(path+"missing", 2); got != nil {
		t.Errorf("missing file: got %q", got)
	}
}
