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
	traced := `F1128 11:00:00.000000 1 hooks.go:204] "PostStartHook" failed: timed out waiting for the condition
goroutine 7 [running]:
k8s.io/klog/v2/internal/dbg.Stacks(0x0)
	k8s.io/klog/v2@v2.130.1/internal/dbg/dbg.go:35 +0x85

goroutine 8 [select, 2 minutes]:
main.main()
	main.go:1 +0x1
--- 2026-11-28T11:00:00Z kubernetes ended: exit status 255
{"level":"error","msg":"cannot \"sync\"","stacktrace":"main.main\n\tmain.go:1","error":"timed out"}
`
	if err := os.WriteFile(path, []byte(traced), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = `F1128 11:00:00.000000 1 hooks.go:204] "PostStartHook" failed: timed out waiting for the condition
--- 2026-11-28T11:00:00Z kubernetes ended: exit status 255
{"level":"error","msg":"cannot \"sync\"","error":"timed out"}`
	if got := string(Tail(path, 20)); got != want {
		t.Errorf("with stack traces: got\n%s", got)
	}
	if got := Tail(path+"missing", 2); got != nil {
		t.Errorf("missing file: got %q", got)
	}
}
