package pool

import (
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
