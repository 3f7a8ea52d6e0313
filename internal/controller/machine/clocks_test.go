package machine

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
)

// budgetsRefuse has a budget refuse each eviction.
func (w *world) budgetsRefuse() {
	w.target.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		err := kerrors.NewTooManyRequests("disrupted", 0)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "no"}}
		return true, nil, err
	})
}

// report writes the Ready condition as the kubelet of the Node does, with the clock of the kubelet.
func (w *world) report(status corev1.ConditionStatus, since time.Time) {
	w.t.Helper()
	n := itsNode()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: "Kubelet", LastTransitionTime: metav1.NewTime(since)}}
	if err := w.target.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deletesPods() bool { return slices.Contains(w.nodeWrites(), "delete pods") }

// TestTheClockOfAKubeletDecidesOnNoBudget has a Node that is not Ready since a moment, and a kubelet whose clock is wrong. The
// pod counts as dead 5 minutes after Drover saw that the Node is not Ready, also if Drover restarts meanwhile.
func TestTheClockOfAKubeletDecidesOnNoBudget(t *testing.T) {
	for name, skew := range map[string]time.Duration{
		"AnHourBehind": -time.Hour, "Right": 0, "AnHourAhead": time.Hour, "OneMinuteAhead": time.Minute, "WithoutATime": -time.Since(time.Time{}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, dying(), aVM())
			w.budgetsRefuse()
			w.join(itsNode(), nodetest.PodOn("a"))
			w.report(corev1.ConditionFalse, w.now.Add(skew))
			w.step()
			seen := w.now
			for _, after := range []time.Duration{time.Second, time.Minute, drain.DeadAfter - 2*time.Second} {
				w.now = seen.Add(after)
				w.restart()
				w.step()
				if w.deletesPods() {
					t.Fatalf("the pod was deleted %s after the first refusal of its eviction, although its budget protects it", after)
				}
			}
			w.now = seen.Add(drain.DeadAfter + time.Second)
			w.step()
			if !w.deletesPods() {
				t.Error("the pod of a dead Node is still protected by its budget")
			}
		})
	}
}

// TestANodeThatWasReadyInBetweenIsNotDead counts the time anew.
func TestANodeThatWasReadyInBetweenIsNotDead(t *testing.T) {
	w := newWorld(t, dying(), aVM())
	w.budgetsRefuse()
	w.join(itsNode(), nodetest.PodOn("a"))
	long := w.now.Add(-time.Hour)
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown} {
		w.report(status, long)
		w.step()
		w.now = w.now.Add(drain.DeadAfter - 10*time.Second)
		w.step()
		if w.deletesPods() {
			t.Fatalf("the pod was deleted while Ready was %s", status)
		}
	}
	w.now = w.now.Add(time.Minute)
	if w.step(); !w.deletesPods() {
		t.Error("the pod of a dead Node is still protected by its budget")
	}
}

// TestAPodHasItsGracePeriodWhateverTheClockOfItsCluster has a forced drain and a cluster whose clock is wrong: the time in
// a terminating pod is that of its API server.
func TestAPodHasItsGracePeriodWhateverTheClockOfItsCluster(t *testing.T) {
	for name, skew := range map[string]time.Duration{"AnHourBehind": -time.Hour, "Right": 0, "AnHourAhead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := dying()
			m.SetAnnotations(map[string]string{v1alpha1.AnnotationForceDrain: "true"})
			w := newWorld(t, m, aVM())
			w.podsStay()
			grace, until := int64(30), metav1.NewTime(w.now.Add(30*time.Second+skew))
			w.join(itsNode(), nodetest.PodOn("a", func(p *corev1.Pod) {
				p.SetFinalizers([]string{"example.org/hold"})
				p.DeletionGracePeriodSeconds, p.DeletionTimestamp = &grace, &until
			}))
			began := w.now
			for _, after := range []time.Duration{0, 30*time.Second + drain.KillDelay - time.Second} {
				w.now = began.Add(after)
				if w.step(); w.deletesPods() || !w.hasNode("n") {
					t.Fatalf("after %s: the pod was killed or left, although its grace period and the delay are not over", after)
				}
			}
			w.now = began.Add(30*time.Second + drain.KillDelay + time.Second)
			if w.step(); !w.deletesPods() {
				t.Error("the pod is not killed although its grace period is over")
			}
			w.now = began.Add(30*time.Second + 2*drain.KillDelay + time.Second)
			if w.step(); w.hasNode("n") {
				t.Error("the Node of a pod that finalizers hold was not deleted")
			}
		})
	}
}

// TestAClockOfOurOwnThatJumpedProlongsNoDrain has times that Drover recorded while its clock was a day ahead.
func TestAClockOfOurOwnThatJumpedProlongsNoDrain(t *testing.T) {
	m := dying()
	ahead := metav1.NewTime(time.Unix(100, 0).Add(24 * time.Hour))
	m.Status.Drain = &v1alpha1.DrainStatus{StartTime: ahead, Stage: v1alpha1.DrainEvictingPods, StageSince: &ahead}
	m.Status.Deletion = &v1alpha1.DeletionStatus{Stage: v1alpha1.DeletionDraining, Since: ahead}
	w := newWorld(t, m, aVM())
	w.budgetsRefuse()
	w.join(itsNode(), nodetest.PodOn("a"))
	w.step()
	w.restart()
	w.now = w.now.Add(time.Hour - time.Second)
	if w.step(); w.deletesPods() {
		t.Error("the drain was forced before its timeout")
	}
	w.now = w.now.Add(2 * time.Second)
	if w.step(); !w.deletesPods() {
		t.Error("the drain was not forced after its timeout")
	}
}
