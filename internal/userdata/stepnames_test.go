package userdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/gzipb64"
)

func TestStepNamesAreThoseOfTheUserData(t *testing.T) {
	for _, name := range []string{"debian-12-v1.yaml", "flatcar-v1.ign"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		plain := StepNames(string(b))
		if len(plain) < 4 || plain[0] != "prepare" || plain[len(plain)-1] != "start-kubelet" && plain[len(plain)-1] != "await-join" {
			t.Errorf("%s: %v", name, plain)
		}
		packed, err := gzipb64.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(plain, StepNames(packed)); d != "" {
			t.Errorf("%s, compressed (-plain +compressed):\n%s", name, d)
		}
	}
	if got := StepNames("#!/bin/sh\necho drover-bootstrap: step evil: started\n"); got != nil {
		t.Errorf("of user data of a user's own: %v", got)
	}
}

// TestTheConsoleOfABootstrapIsUnderstood runs the script with a step that fails once.
func TestTheConsoleOfABootstrapIsUnderstood(t *testing.T) {
	dir := t.TempDir()
	step := func(name, script string) {
		write(t, "#!/bin/sh\n"+script, filepath.Join(dir, "steps", name))
	}
	step("00-prepare", "exit 0\n")
	step("01-disks", "echo acme: there is no disk >&2\nexit 7\n")
	run := func() string {
		output, _, _ := runScript(t, bootstrapScript, nil, "DROVER_STEPS="+filepath.Join(dir, "steps"), "DROVER_STAMPS="+filepath.Join(dir, "stamps"), "DROVER_WRITTEN="+filepath.Join(dir, "written"))
		return output
	}
	steps := []string{"prepare", "disks"}
	text := run()
	want := &console.Step{Name: "disks", State: console.Failed, ExitCode: 7, Output: "acme: there is no disk"}
	if d := cmp.Diff(want, console.LastStep(console.Excerpt(text), steps)); d != "" {
		t.Errorf("a step that fails (-want +got):\n%s\n%s", d, text)
	}
	text += run()
	if d := cmp.Diff(want, console.LastStep(console.Excerpt(text), steps)); d != "" {
		t.Errorf("when it is tried again (-want +got):\n%s", d)
	}
	step("01-disks", "exit 0\n")
	text += run()
	if d := cmp.Diff(&console.Step{State: console.Done}, console.LastStep(console.Excerpt(text), steps)); d != "" {
		t.Errorf("when it succeeded (-want +got):\n%s", d)
	}
	if strings.Count(text, "drover-bootstrap: ") != 9 {
		t.Errorf("the script prints other lines: %s", text)
	}
}
