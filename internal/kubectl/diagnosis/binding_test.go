package diagnosis_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// TestABindingThatYieldsNothingIsNamed has a Machine whose VM is Ready, and whose Composition reads the providerID from
// a field that does not exist.
func TestABindingThatYieldsNothingIsNamed(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		lasts time.Duration
		state diagnosis.State
	}{
		"ForAMomentItMayBeSlow":          {59 * time.Second, diagnosis.InProgress},
		"WhenItsSetReportsItAUserShould": {time.Minute, diagnosis.NeedsUser},
	} {
		t.Run(name, func(t *testing.T) {
			m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
			m.Status.Conditions = []metav1.Condition{{
				Type: machinev1alpha1.ConditionInfrastructureReady, Status: metav1.ConditionFalse, Reason: machinev1alpha1.ReasonProviderIDEmpty,
				Message: "VM m is Ready, and the expression status.providerID of its Composition yields nothing", LastTransitionTime: metav1.NewTime(now.Add(-tc.lasts)),
			}}
			a, err := diagnosis.Why(&view.View{Machines: []machinev1alpha1.Machine{m}}, view.Ref{Kind: view.Machine, Namespace: "ns", Name: "m"}, now)
			if err != nil || len(a.Findings) != 1 || a.State != tc.state {
				t.Fatalf("state %s, want %s; findings %+v, error %v", a.State, tc.state, a.Findings, err)
			}
			if f := a.Findings[0]; f.Do == "" || f.Meaning == "" || !f.Since.Equal(&m.Status.Conditions[0].LastTransitionTime) {
				t.Errorf("finding %+v", f)
			}
		})
	}
}
