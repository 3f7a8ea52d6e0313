package main

import (
	"os"
	"path/filepath"
	"testing"
)

// busy is a shell loop that costs some CPU time, which the shell itself reports.
const busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"

// The test binary is its own subject: TestMain runs it as the command.
func TestMain(m *testing.M) {
	if os.Getenv("SUITE_UNDER_TEST") != "" {
		main()
	}
	os.Exit(m.Run())
}

// spend runs the command in a process of its own, because it becomes the parent of all orphans.
func spend(t *testing.T, script string) (Spent, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "spent")
	// In "make test" the variable names the file of the run.
	t.Setenv(envRecord, file)
	t.Setenv("SUITE_UNDER_TEST", "1")
	process, err := os.StartProcess(self, []string{self, "stage", "s", "/bin/sh", "-c", script}, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{nil, nil, os.Stderr},
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	records, err := load(file)
	if err != nil || len(records) != 1 {
		t.Fatalf("records %+v: %v", records, err)
	}
	return records[0], state.ExitCode()
}

func TestProcessesAreCounted(t *testing.T) {
	own, _ := spend(t, busy)
	if own.CPU <= 0 || own.Wall <= 0 || own.MemoryMB <= 0 {
		t.Fatalf("a command that computes spent %+v", own)
	}
	for name, script := range map[string]string{
		"AChild":                            "sh -c '" + busy + "'; :",
		"ADaemonThatOutlivesItsParent":      "(setsid sh -c '" + busy + "; : >done' &) ; until [ -e done ]; do sleep 0.01; done",
		"ADaemonThatIsAliveWhenTheTestEnds": "(setsid sh -c '" + busy + "; : >done; while [ -e done ]; do sleep 0.1; done' >/dev/null 2>&1 &) ; until [ -e done ]; do sleep 0.01; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			got, code := spend(t, script)
			if code != 0 {
				t.Fatalf("exit code %d", code)
			}
			// Without the loop the script costs less than a tenth of it.
			if got.CPU < own.CPU/3 {
				t.Errorf("%.3f CPU seconds are counted, want about %.3f", got.CPU, own.CPU)
			}
		})
	}
}

func TestTheExitCodeIsThatOfTheCommand(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   int
	}{
		"Success":        {"true", 0},
		"Failure":        {"exit 7", 7},
		"KilledBySignal": {"kill -9 $$", 137},
	} {
		t.Run(name, func(t *testing.T) {
			spent, code := spend(t, tc.script)
			if code != tc.want || spent.Failed != (tc.want != 0) {
				t.Errorf("exit code %d, failed %t, want %d", code, spent.Failed, tc.want)
			}
		})
	}
}

func TestAPackageIsNamedByItsFolder(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "internal", "plan")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := packageName(rootOf(dir), dir, "/tmp/x/plan.test"); got != "plan.test" {
		t.Errorf("outside of a repository it is %q, want the name of the binary", got)
	}
	if err := os.WriteFile(filepath.Join(root, ".git"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := packageName(rootOf(dir), dir, "/tmp/x/plan.test"); got != "internal/plan" {
		t.Errorf("it is %q, want internal/plan", got)
	}
}
