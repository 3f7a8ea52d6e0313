package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// boot runs the bootstrap script in a folder with steps, as its unit does.
func boot(t *testing.T, dir string) (output string, succeeded bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", bootstrapScript)
	cmd.Env = append(os.Environ(), "DROVER_STEPS="+filepath.Join(dir, "steps"), "DROVER_STAMPS="+filepath.Join(dir, "stamps"), "DROVER_WRITTEN="+filepath.Join(dir, "written"),
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "LOG="+filepath.Join(dir, "log"))
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestBootstrapContinuesWhereItStopped(t *testing.T) {
	dir := t.TempDir()
	write(t, "#!/bin/sh\necho first >>$LOG\n", dir, "steps", "00-first")
	write(t, "#!/bin/sh\n[ -e $LOG.mirror ] || { echo 'no mirror' >&2; exit 7; }\necho second >>$LOG\n", dir, "steps", "01-second")
	write(t, "#!/bin/sh\necho third >>$LOG\n", dir, "steps", "02-third")

	for range 2 {
		out, succeeded := boot(t, dir)
		if succeeded || !strings.Contains(out, "no mirror\ndrover-bootstrap: step second: failed (exit 7), trying again in 5s\n") || strings.Contains(out, "third") {
			t.Errorf("while the mirror is away: succeeded %t, output %q", succeeded, out)
		}
	}
	write(t, "", dir, "log.mirror")
	for range 2 {
		if out, succeeded := boot(t, dir); !succeeded {
			t.Errorf("when the mirror is back: %s", out)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "first\nsecond\nthird\n"; err != nil || string(log) != want {
		t.Errorf("the steps ran as %q, want %q: %v", log, want, err)
	}
}

// TestBootstrapRepeatsAStepThatWasCutOff has the step itself kill the script, as a power cut does: the progress
// of the step is unknown.
func TestBootstrapRepeatsAStepThatWasCutOff(t *testing.T) {
	dir := t.TempDir()
	write(t, "#!/bin/sh\necho cut >>$LOG\n[ \"$(wc -l <$LOG)\" -gt 1 ] || kill -9 $PPID\n", dir, "steps", "00-cut")
	if out, succeeded := boot(t, dir); succeeded {
		t.Fatalf("the script was not cut off: %s", out)
	}
	if out, succeeded := boot(t, dir); !succeeded || !strings.Contains(out, "drover-bootstrap: all steps are done") {
		t.Errorf("after the reboot: %s", out)
	}
}

// TestBootstrapRunsNoEmptyScript: for a shell, it would have succeeded.
func TestBootstrapRunsNoEmptyScript(t *testing.T) {
	dir := t.TempDir()
	write(t, "", dir, "steps", "00-lost")
	if out, succeeded := boot(t, dir); succeeded || !strings.HasSuffix(out, "drover-bootstrap: step lost: failed (exit 1), trying again in 5s\n") {
		t.Errorf("succeeded %t, output %q", succeeded, out)
	}
}

// TestFilesAreOnTheDiskBeforeAStepRuns has a sync that records what there was when it ran.
func TestFilesAreOnTheDiskBeforeAStepRuns(t *testing.T) {
	dir := t.TempDir()
	write(t, "#!/bin/sh\nif [ -e $DROVER_WRITTEN ]; then echo sync, written >>$LOG; else echo sync >>$LOG; fi\n", dir, "bin", "sync")
	write(t, "#!/bin/sh\necho step >>$LOG\nexit 1\n", dir, "steps", "00-first")
	for range 2 {
		if out, succeeded := boot(t, dir); succeeded {
			t.Fatalf("the step did not fail: %s", out)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "sync\nsync, written\nstep\nstep\n"; err != nil || string(log) != want {
		t.Errorf("got %q, want %q: %v", log, want, err)
	}
}

// TestCloudInitRepeatsWhatIsNotOnTheDisk runs the command of each boot, in a folder instead of
// the root.
func TestCloudInitRepeatsWhatIsNotOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	files, written := "/var/lib/cloud/instance/sem/config_write_files", pathWritten
	run := func() bool {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(repeatUntilWritten, "/var/", dir+"/var/"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, err := os.Stat(dir + files)
		return err == nil
	}
	if run() {
		t.Error("there is something that nobody wrote")
	}
	write(t, "", dir, files)
	if run() {
		t.Error("after a power cut, cloud-init writes no files again")
	}
	write(t, "", dir, files)
	write(t, "", dir, written)
	if !run() {
		t.Error("cloud-init writes files again that are on the disk")
	}
}

func TestEnvironmentFilesAreReadAlike(t *testing.T) {
	values := map[string]string{
		"PLAIN": "a b", "DOLLAR": "$(reboot) $HOME ${HOME}", "BACKTICK": "`reboot`", "QUOTES": `"it's"`, "BACKSLASH": `\n \\ \"`,
		"LINES": "one\ntwo", "HASH": "# no comment", "UNICODE": "é", "EMPTY": "", "TAB": "a\tb", "EQUALS": "A=B",
	}
	text, err := environmentFile(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "env")
	write(t, text, file)
	for name, want := range values {
		got, err := exec.CommandContext(t.Context(), "sh", "-c", `. "$1"; eval "printf %s \"\$$2\""`, "sh", file, name).CombinedOutput()
		if err != nil || string(got) != want {
			t.Errorf("%s: a shell reads %q, want %q: %v", name, got, want, err)
		}
	}
	for _, bad := range []string{"a\x00b", "a\rb", "\x1b[2J", "\x7f"} {
		if text, err := environmentFile(map[string]string{"BAD": bad}); err == nil {
			t.Errorf("%q becomes %q", bad, text)
		}
	}
}
