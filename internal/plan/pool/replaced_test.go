package pool

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestReplacementsOfAllFailureDomainsAreListed(t *testing.T) {
	entry := func(machine string, ago time.Duration) machinev1alpha1.ReplacedMachine {
		return machinev1alpha1.ReplacedMachine{Time: metav1.NewTime(now.Add(-ago)), Machine: machine, Node: "n", Reason: machinev1alpha1.ReplacedFailed}
	}
	w := newWorld(t, pool())
	w.step()
	w.step()
	ofGone := entry("of-a-failure-domain-that-is-gone", 3*time.Hour)
	w.Pool.Status.Replacements = []machinev1alpha1.ReplacedMachine{ofGone}
	w.Deployments[0].Status.Replacements = []machinev1alpha1.ReplacedMachine{entry("a", time.Hour)}
	w.Deployments[1].Status.Replacements = []machinev1alpha1.ReplacedMachine{entry("b", 2*time.Hour)}
	want := []machinev1alpha1.ReplacedMachine{ofGone, entry("b", 2*time.Hour), entry("a", time.Hour)}
	if diff := cmp.Diff(want, Plan(now, w.Observed).Status.Replacements); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAFailureDomainThatThePoolLeavesStaysUntilTheStatusHasItsReplacements has the report on the last Machine arrive
// just before the MachineDeployment is deleted.
func TestAFailureDomainThatThePoolLeavesStaysUntilTheStatusHasItsReplacements(t *testing.T) {
	start := func() (w *world, deployment func() *Deployment) {
		w = newWorld(t, pool())
		for range 5 {
			w.step()
		}
		left := w.Deployments[0].Name
		w.Pool.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"b", "c"}
		return w, func() *Deployment {
			i := slices.IndexFunc(w.Deployments, func(d Deployment) bool { return d.Name == left })
			if i < 0 {
				return nil
			}
			return &w.Deployments[i]
		}
	}
	steps := 0
	for w, deployment := start(); deployment() != nil; steps++ {
		w.step()
	}
	w, deployment := start()
	for range steps - 1 {
		w.step()
	}
	deployment().Status.Replacements = []machinev1alpha1.ReplacedMachine{{Time: metav1.NewTime(now.Add(-time.Hour)), Machine: "m", Node: "n", Reason: machinev1alpha1.ReplacedFailed}}
	if w.step(); deployment() == nil {
		t.Fatal("it was deleted before the status had its replacements")
	}
	if w.step(); deployment() != nil || len(w.Pool.Status.Replacements) != 1 {
		t.Errorf("exists %t, status has %v", deployment() != nil, w.Pool.Status.Replacements)
	}
}
