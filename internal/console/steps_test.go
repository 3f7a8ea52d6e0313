package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLastStep(t *testing.T) {
	const (
		started = "2026-11-23T12:00:00Z [   12.3] bootstrap[311]: drover-bootstrap: step disks: started\n"
		failed  = "[   12.9] bootstrap[311]: drover-bootstrap: step disks: failed (exit 7), trying again in 5s\n"
		done    = "drover-bootstrap: step disks: done\n"
		all     = "drover-bootstrap: all steps are done\n"
	)
	steps := []string{"prepare", "disks"}
	for name, tc := range map[string]struct {
		reason, text string
		steps        []string
		want         *Step
	}{
		"NoStep":                 {"nothing was started", "login:\n", steps, nil},
		"AStepRuns":              {"the last line counts", "drover-bootstrap: step prepare: done\n" + started + "noise\n", steps, &Step{Name: "disks", State: Running}},
		"AStepFailed":            {"with what it wrote", started + "[ 12.8] bootstrap[312]: acme: no disk\n" + failed, steps, &Step{Name: "disks", State: Failed, ExitCode: 7, Output: "acme: no disk"}},
		"ItIsTriedAgain":         {"it has not succeeded since", started + "why\n" + failed + started, steps, &Step{Name: "disks", State: Failed, ExitCode: 7, Output: "why"}},
		"ItSucceededAfterwards":  {"a mirror came back", failed + started + done, steps, &Step{Name: "disks", State: Done}},
		"AllAreDone":             {"the kubelet was started", done + all, steps, &Step{State: Done}},
		"OnlyTheEndOfTheOutput":  {"a status is short", started + "1\n2\n3\n4\n" + failed, steps, &Step{Name: "disks", State: Failed, ExitCode: 7, Output: "2 | 3 | 4"}},
		"AStepThatThereIsNot":    {"a guest may write anything", started + "drover-bootstrap: step evil: failed (exit 1), trying again in 5s\n", steps, &Step{Name: "disks", State: Running}},
		"UserDataWithoutSteps":   {"the guest cannot have any", started + failed + all, nil, nil},
		"AnExitCodeOfFourDigits": {"there is none", "drover-bootstrap: step disks: failed (exit 1000), trying again in 5s\n", steps, nil},
		"MoreOnTheLine":          {"it is not what the script prints", "drover-bootstrap: step disks: started; rm -rf /\n", steps, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, LastStep(tc.text, tc.steps)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}
