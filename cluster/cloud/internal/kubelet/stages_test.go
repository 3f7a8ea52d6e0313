package kubelet

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

func TestPodStages(t *testing.T) {
	now := time.Now()
	deleted := func(grace time.Duration, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now.Add(grace)},
				DeletionGracePeriodSeconds: ptr.To(int64(grace / time.Second)), Annotations: annotations},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
	}
	running := func(ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	hooked := func(grace time.Duration, hook *corev1.LifecycleHandler) *corev1.Pod {
		p := deleted(grace, nil)
		p.Spec.Containers = []corev1.Container{{Name: "without"}, {Name: "with", Lifecycle: &corev1.Lifecycle{PreStop: hook}}}
		return p
	}
	failing := func(phase corev1.PodPhase) *corev1.Pod {
		p := running(corev1.ConditionFalse)
		p.Labels, p.Status.Phase = map[string]string{"kwok.x-k8s.io/stage": "unhealthy"}, phase
		return p
	}
	cut := deleted(time.Minute, nil)
	cut.Status = running(corev1.ConditionFalse).Status
	cases := map[string]struct {
		pod   *corev1.Pod
		stage string
		// in is the delay of the stage, plus or minus two seconds: times in objects are whole
		// seconds.
		in time.Duration
	}{
		"APendingPodBecomesReady":              {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, "pod-ready", 0},
		"ARunningPodStays":                     {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, "", 0},
		"APodThatIsReadyStays":                 {running(corev1.ConditionTrue), "", 0},
		"APodThatWasCutOffIsReadyAgain":        {running(corev1.ConditionFalse), "pod-ready-again", 0},
		"UnlessItIsDeleted":                    {cut, "pod-delete", time.Second},
		"ADeletedPodEndsSoon":                  {deleted(time.Minute, nil), "pod-delete", time.Second},
		"ASlowPodEndsWhenItWants":              {deleted(time.Minute, map[string]string{"localcloud.drover.dev/stop-seconds": "20"}), "pod-delete", 20 * time.Second},
		"APodThatNeverEndsIsKilledByTheGrace":  {deleted(30*time.Second, map[string]string{"localcloud.drover.dev/stop-seconds": "3600"}), "pod-delete", 30 * time.Second},
		"ADeletedPodThatNeverStartedEndsToo":   {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}, "pod-delete", 0},
		"APreStopHookIsWaitedFor":              {hooked(time.Minute, &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "sleep 30"}}}), "pod-delete", 31 * time.Second},
		"AlsoOneThatSleepsByItself":            {hooked(time.Minute, &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}), "pod-delete", 11 * time.Second},
		"NoLongerThanTheGrace":                 {hooked(30*time.Second, &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "300"}}}), "pod-delete", 30 * time.Second},
		"AHookOfAnotherKindTakesNoTime":        {hooked(30*time.Second, &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sync"}}}), "pod-delete", time.Second},
		"APodWhoseProbeFailsIsNeverReady":      {failing(corev1.PodPending), "pod-unready", 0},
		"EvenWhenItRuns":                       {failing(corev1.PodRunning), "", 0},
		"APodThatIsBeingRemovedIsLet":          {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}, DeletionGracePeriodSeconds: new(int64)}}, "", 0},
		"APodOfAJobIsDoneWhenItHasBeenStarted": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Job"}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, "pod-complete", 0},
	}
	lc, err := podLifecycle()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // VMs share the stages, and run in parallel.
			event := &lifecycle.Event{Labels: tc.pod.Labels, Annotations: tc.pod.Annotations, Data: tc.pod}
			stage, err := lc.Match(context.Background(), event)
			if err != nil {
				t.Fatal(err)
			}
			if stage == nil {
				if tc.stage != "" {
					t.Errorf("no stage, want %s", tc.stage)
				}
				return
			}
			if stage.Name() != tc.stage {
				t.Fatalf("stage %s, want %s", stage.Name(), tc.stage)
			}
			delay, _, err := stage.Delay(context.Background(), event, now)
			if err != nil {
				t.Fatal(err)
			}
			if d := delay - tc.in; d < -2*time.Second || d > 2*time.Second {
				t.Errorf("plays in %s, want %s", delay, tc.in)
			}
		})
	}
}
