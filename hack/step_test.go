package hack

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAStepOfABuild(t *testing.T) {
	packages := `i=0; while [ $i -lt 30 ]; do echo k8s.io/api/p$i; i=$((i+1)); done`
	for _, tc := range []struct {
		name, script string
		code         int
		// want are parts of the output, and never is none.
		want  []string
		never string
	}{
		{"IsOneLineInALog", packages, 0, []string{"Kubernetes: ", "s, 30 packages compiled\n"}, "k8s.io"},
		{"ShowsNoDownloads", "echo 'go: downloading k8s.io/api v0.35.4' >&2", 0, []string{", 0 packages compiled\n"}, "downloading"},
		{"ShowsErrorsOfTheCompiler", "echo k8s.io/api; echo '# k8s.io/x' >&2; echo 'x.go:1:2: undefined: y' >&2; exit 1", 1, []string{"# k8s.io/x\nx.go:1:2: undefined: y\n"}, "packages compiled"},
		{"ShowsAnErrorWithoutALineEnd", "printf 'go: no such module'; exit 3", 3, []string{"go: no such module\n"}, "packages compiled"},
		{
			"NamesThatWhichCanBeDeletedFromAFullDisk", "echo 'link: /tmp/x: no space left on device' >&2; exit 1", 1,
			[]string{"no space left on device\n", "The disk is full.", "go clean -cache ", " GB in ", "go clean -modcache ", "make demo-down "}, "packages compiled",
		},
		{"DoesNotBlameTheDiskForOtherErrors", "exit 1", 1, nil, "disk"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBox(t)
			b.command("go", `case $2 in GOCACHE) echo `+b.root+` ;; GOMODCACHE) echo `+b.root+` ;; esac`)
			b.command("compile", tc.script)
			out, code := b.run("step", "Kubernetes", "300", "compile")
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, text := range tc.want {
				if !strings.Contains(out, text) {
					t.Errorf("there is no %q in\n%s", text, out)
				}
			}
			if strings.Contains(out, tc.never) {
				t.Errorf("there is %q in\n%s", tc.never, out)
			}
			if strings.ContainsAny(out, "\r\x1b") {
				t.Errorf("a log has no sequences of a terminal: %q", out)
			}
		})
	}
}

func TestAStepUpdatesOneLineOfATerminal(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("script is not installed, which makes a terminal")
	}
	b := newBox(t)
	b.command("getconf", "echo 4")
	// It ends when the progress was shown: the lines of a terminal are read from the file of script.
	b.command("compile", `i=0; while [ $i -lt 30 ]; do echo k8s.io/api/p$i; i=$((i+1)); done; until grep -q "30 packages" typescript; do sleep 0.05; done`)
	step, err := filepath.Abs("step")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("script", "--quiet", "--flush", "--return", "--command", step+" Kubernetes 300 compile", "typescript")
	cmd.Dir = b.root
	cmd.Env = []string{"PATH=" + b.bin, "TERM=xterm", "SHELL=/bin/sh", "HOME=" + b.root}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := os.ReadFile(filepath.Join(b.root, "typescript"))
	if err != nil {
		t.Fatal(err)
	}
	// 300 seconds on two processors are 150 on four.
	for _, text := range []string{"\r\x1b[KKubernetes: ", "of about 2m30s, 30 packages compiled", "\r\x1b[KKubernetes: "} {
		if !strings.Contains(string(out), text) {
			t.Errorf("there is no %q in\n%q", text, out)
		}
	}
}

func TestAnInterruptedStepStopsItsCommand(t *testing.T) {
	b := newBox(t)
	step, err := filepath.Abs("step")
	if err != nil {
		t.Fatal(err)
	}
	// The first line is not a package, so the step prints it.
	b.command("compile", "echo >$GOTMPDIR/compiled; echo process: $$; trap 'exit 1' TERM; while :; do sleep 0.05; done")
	cmd := exec.Command("/bin/sh", step, "Kubernetes", "300", "compile")
	cmd.Dir, cmd.Env = b.root, []string{"PATH=" + b.bin, "TMPDIR=" + b.root}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Sscanf(line, "process: %d", &pid); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	exit := &exec.ExitError{}
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("it ended with %v, want exit code 130", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command still runs: %v", err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if left, _ := filepath.Glob(filepath.Join(b.root, "tmp.*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}
