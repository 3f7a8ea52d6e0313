package deployment

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestRevisionsKeepWhatBecameOfTheirRollouts(t *testing.T) {
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	d := deployment(3, deadline(600), func(d *machinev1alpha1.MachineDeployment) { d.Spec.RevisionHistoryLimit = 2 })
	step := func(minutes int, version string, sets ...Set) {
		d.Spec.Template = template(version)
		p := Plan(at(minutes), Observed{Deployment: d.DeepCopy(), Sets: sets, ClassFound: true})
		crossplane(d, p, func() {})
	}
	history := func() []string {
		var out []string
		for _, r := range d.Status.Revisions {
			line := fmt.Sprintf("%d %s %s", r.Revision, r.Version, r.Outcome)
			for _, when := range []func() string{
				func() string { return r.StartTime.Sub(now).String() },
				func() string {
					if r.CompletionTime == nil {
						return "-"
					}
					return r.CompletionTime.Sub(now).String()
				},
			} {
				line += " " + when()
			}
			out = append(out, line)
		}
		return out
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, history()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}

	step(0, "v1")
	check("1 v1 InProgress 0s -")
	step(1, "v1", machineSet("v1", 1, 3))
	step(2, "v1", machineSet("v1", 1, 3))
	check("1 v1 Complete 0s 1m0s")
	step(3, "v2", machineSet("v1", 1, 3))
	check("1 v1 Complete 0s 1m0s", "2 v2 InProgress 3m0s -")
	step(4, "v2", machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0)))
	step(20, "v2", machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0)))
	check("1 v1 Complete 0s 1m0s", "2 v2 ProgressDeadlineExceeded 3m0s -")
	step(21, "v3", machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0)))
	check("1 v1 Complete 0s 1m0s", "2 v2 ProgressDeadlineExceeded 3m0s 21m0s", "3 v3 InProgress 21m0s -")
	step(22, "v0", machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0)))
	check("2 v2 ProgressDeadlineExceeded 3m0s 21m0s", "3 v3 Superseded 21m0s 22m0s", "4 v0 InProgress 22m0s -")
}
