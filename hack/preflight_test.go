// Package hack tests the scripts of this folder, with stand-ins for the commands that they call.
package hack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools are the commands of the system that the scripts call.
var tools = []string{"awk", "cat", "date", "du", "flock", "getconf", "git", "grep", "head", "ls", "make", "mkdir", "mktemp", "mv", "rm", "sed", "sh", "sleep", "tail", "uname", "wc"}

// A box is a folder in which a script runs: a repository with a go.mod, and the only folder of PATH.
type box struct {
	t         *testing.T
	root, bin string
}

func newBox(t *testing.T) box {
	t.Helper()
	b := box{t: t, root: t.TempDir(), bin: t.TempDir()}
	for _, tool := range tools {
		if path, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(path, filepath.Join(b.bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.file("go.mod", "module example.org/root\n\ngo 1.26.4\n")
	b.file("cluster/go.mod", "module example.org/cluster\n\ngo 1.26.7\n")
	return b
}

// file writes a file of the repository.
func (b box) file(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// command replaces a command by a script.
func (b box) command(name, script string) {
	b.t.Helper()
	path := filepath.Join(b.bin, name)
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// golang replaces Go by one that reports a version.
func (b box) golang(version string) {
	b.command("go", `case $2 in GOVERSION) echo `+version+` ;; GOCACHE) echo /cache ;; GOMODCACHE) echo /modules ;; esac`)
}

// disk replaces df by one that reports free megabytes for every folder, all of one file system.
func (b box) disk(free int) {
	b.command("df", fmt.Sprintf("echo Filesystem 1024-blocks Used Available Capacity Mounted\necho /dev/disk 99999999 0 %d 0%% /", free*1024))
}

// run runs a script and returns all that it prints, and its exit code.
func (b box) run(script string, args ...string) (string, int) {
	b.t.Helper()
	path, err := filepath.Abs(script)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{path}, args...)...)
	cmd.Dir = b.root
	cmd.Env = []string{"PATH=" + b.bin, "HOME=" + b.root, "TMPDIR=" + b.t.TempDir()}
	out, err := cmd.CombinedOutput()
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestPreflight(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given func(b box)
		code  int
		// want are parts of the output.
		want []string
	}{
		{"PassesIfNothingIsMissing", func(b box) {}, 0, []string{"preflight: Go 1.26.7, disk space and ports are sufficient\n"}},
		{"AcceptsANewerGo", func(b box) { b.golang("go1.30") }, 0, []string{"Go 1.30,"}},
		{"AcceptsADevelopmentVersionOfGo", func(b box) { b.golang("devel") }, 0, []string{"Go devel,"}},
		{"NamesTheVersionIfGoIsMissing", func(b box) { _ = os.Remove(filepath.Join(b.bin, "go")) }, 1, []string{"Go is missing: install Go 1.26.7 or newer from https://go.dev/dl/"}},
		{"ComparesWithTheNewestModule", func(b box) { b.golang("go1.26.6") }, 1, []string{"Go 1.26.6 is too old: install Go 1.26.7 or newer"}},
		{"ComparesNumbersAndNotText", func(b box) { b.golang("go1.9.9") }, 1, []string{"Go 1.9.9 is too old"}},
		{"QuotesAGoThatCannotUpdateItself", func(b box) { b.command("go", "echo 'go: toolchain not available' >&2; exit 1") }, 1, []string{"cannot download it (go: toolchain not available): install Go 1.26.7"}},
		{"NamesAMissingTool", func(b box) { _ = os.Remove(filepath.Join(b.bin, "git")) }, 1, []string{"git is missing: install it"}},
		{"AddsTheNeedsOfOneDisk", func(b box) { b.disk(9000) }, 1, []string{"disk: 14.1 GB are needed and 9.0 GB are free for /cache, /modules, .work, ", `"go clean -cache"`}},
		{"NeedsLessDiskForASecondBuild", func(b box) {
			b.disk(2000)
			b.file(".work/bin/drover-kube", "")
			b.file(".work/bin/crossplane", "")
		}, 0, nil},
		{"NeedsDiskForASecondBuildToo", func(b box) {
			b.disk(900)
			b.file(".work/bin/drover-kube", "")
			b.file(".work/bin/crossplane", "")
		}, 1, []string{"disk: 1.0 GB are needed and 0.9 GB are free for .work: delete"}},
		{"ReportsAllProblemsAtOnce", func(b box) { b.disk(10); b.golang("go1.20") }, 1, []string{"disk: ", "Go 1.20 is too old"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBox(t)
			b.golang("go1.26.7")
			b.disk(20000)
			tc.given(b)
			out, code := b.run("preflight")
			if code != tc.code {
				t.Errorf("exit code %d, want %d:\n%s", code, tc.code, out)
			}
			for _, text := range tc.want {
				if !strings.Contains(out, text) {
					t.Errorf("there is no %q in\n%s", text, out)
				}
			}
			for line := range strings.Lines(out) {
				if !strings.HasPrefix(line, "preflight: ") {
					t.Errorf("a problem has more than one line: %q in\n%s", line, out)
				}
			}
		})
	}
}

func TestPreflightNamesATakenPortAndItsProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	b := newBox(t)
	b.golang("go1.26.7")
	b.disk(20000)
	b.file(".work/cluster/state.json", fmt.Sprintf("{\n  \"ports\": {\n    \"kubernetes\": %d,\n    \"crossplane-health\": %[1]d\n  }\n}\n", port))
	out, code := b.run("preflight")
	want := fmt.Sprintf("preflight: port %d, which the demo used before for kubernetes, is in use by process %d (", port, os.Getpid())
	if code != 1 || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d, want 1, and one line that begins with\n%s\ngot\n%s", code, want, out)
	}

	t.Run("UnlessTheDemoRuns", func(t *testing.T) {
		lock := filepath.Join(b.root, ".work/cluster/supervisor.lock")
		b.file(".work/cluster/supervisor.lock", "")
		supervisor := exec.Command("flock", lock, "sh", "-c", "echo locked; cat")
		stdin, err := supervisor.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := supervisor.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := supervisor.Start(); err != nil {
			t.Fatal(err)
		}
		defer supervisor.Wait()
		defer stdin.Close()
		if _, err := stdout.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		if out, code := b.run("preflight"); code != 0 {
			t.Errorf("the ports of a demo that runs are its own:\n%s", out)
		}
	})
	_ = l.Close()
	if out, code := b.run("preflight"); code != 0 {
		t.Errorf("the port is free again:\n%s", out)
	}
}

func TestScriptsPassShellcheck(t *testing.T) {
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	for _, script := range []string{"preflight", "step"} {
		if out, err := exec.Command(shellcheck, script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
