package nodekeeper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestSinceWhenANodeIsReadyIsWhatDroverObserved has a kubelet whose clock is wrong, and Drover restart.
func TestSinceWhenANodeIsReadyIsWhatDroverObserved(t *testing.T) {
	for name, skew := range map[string]time.Duration{"AnHourBehind": -time.Hour, "AnHourAhead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			n := node("n", corev1.ConditionTrue)
			wn := workerNode()
			see := func(at time.Time, status corev1.ConditionStatus) time.Time {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(at.Add(skew))}}
				observeNode(wn, n, at)
				return wn.Observation.Ready().Since.Time
			}
			for _, tc := range []struct {
				after  time.Duration
				status corev1.ConditionStatus
				want   time.Duration
			}{
				{0, corev1.ConditionFalse, 0},
				{time.Minute, corev1.ConditionUnknown, 0},
				{2 * time.Minute, corev1.ConditionTrue, 2 * time.Minute},
				{3 * time.Minute, corev1.ConditionTrue, 2 * time.Minute},
				{4 * time.Minute, corev1.ConditionFalse, 4 * time.Minute},
				{-time.Minute, corev1.ConditionFalse, -time.Minute}, // The clock of Drover jumped back.
			} {
				if got := see(start.Add(tc.after), tc.status); !got.Equal(start.Add(tc.want)) {
					t.Errorf("at %s Ready is %s since %s, want %s", tc.after, tc.status, got.Sub(start), tc.want)
				}
			}
			m := &v1alpha1.Machine{}
			m.Status.NodeRef = &v1alpha1.NodeReference{Name: "n", UID: string(n.UID)}
			m.Status.NotReadySince = &metav1.Time{Time: start.Add(-time.Minute)}
			wn.Observation = LastSeen(m)
			if got := see(start, corev1.ConditionFalse); !got.Equal(start.Add(-time.Minute)) {
				t.Errorf("after a restart Ready is False since %s", got)
			}
			n.SetUID("another")
			if got := see(start, corev1.ConditionFalse); !got.Equal(start) {
				t.Errorf("of another Node Ready is False since %s", got)
			}
		})
	}
}
