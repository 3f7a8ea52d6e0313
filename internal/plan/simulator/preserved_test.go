package simulator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestAFailedMachineThatIsPreservedIsNotReplaced checks which Machines the watcher counts as
// preserved. A set may preserve three Machines by itself. If a fourth one recovered and failed
// again, the set replaces that one.
func TestAFailedMachineThatIsPreservedIsNotReplaced(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	until := func(d time.Duration) *machinev1alpha1.Preservation {
		return &machinev1alpha1.Preservation{Until: metav1.NewTime(now.Add(d))}
	}
	for name, tc := range map[string]struct {
		value        string
		preservation *machinev1alpha1.Preservation
		preserves    []string
		want         cause
	}{
		"no user and no set preserves it":          {"", nil, nil, replaced},
		"a user preserves it":                      {machinev1alpha1.PreserveNow, nil, nil, tooMany},
		"the set preserves it":                     {machinev1alpha1.PreserveAuto, nil, []string{"a"}, tooMany},
		"the set preserves others in its place":    {machinev1alpha1.PreserveAuto, nil, []string{"b"}, replaced},
		"it reports that the set preserves it":     {machinev1alpha1.PreserveAuto, until(time.Hour), []string{"b"}, tooMany},
		"it reports that its preservation is over": {machinev1alpha1.PreserveAuto, until(-time.Hour), []string{"a"}, replaced},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{}}}
			if tc.value != "" {
				m.Annotations[machinev1alpha1.AnnotationPreserve] = tc.value
			}
			m.Status.Phase, m.Status.NodeRef = machinev1alpha1.MachineFailed, &machinev1alpha1.NodeReference{Name: "a"}
			m.Status.Preservation = tc.preservation
			c := &Cluster{Now: now}
			d := decision{seen: []child[*machinev1alpha1.Machine]{{object: m}}, preserves: tc.preserves}
			if got := c.causeFor(d, "a"); got != tc.want {
				t.Errorf("the set may delete it because it is %q, want %q", got, tc.want)
			}
		})
	}
}
