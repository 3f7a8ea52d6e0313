package machine

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestOnlyAnAnswerToThisRequestCounts(t *testing.T) {
	type world struct {
		wn *workernode.WorkerNode
		u  *machinev1alpha1.UpdateStatus
	}
	cases := map[string]struct {
		change func(*world)
		want   machinev1alpha1.UpdateState
	}{
		"TheAgentHasDoneIt": {func(*world) {}, machinev1alpha1.UpdateSucceeded},
		"ItHasDoneAnother": {func(w *world) {
			w.wn.Observation.Labels[machinev1alpha1.LabelUpdatedTo] = "one"
		}, machinev1alpha1.UpdateUpdating},
		"TheReportIsOlderThanTheRequest": {func(w *world) { w.wn.Observation.Synced = false }, machinev1alpha1.UpdateUpdating},
		"TheClusterCannotBeReached": {func(w *world) {
			w.wn.Observation.Error = "timeout"
		}, machinev1alpha1.UpdateUpdating},
		"TheNodeWasNotAskedYet": {func(w *world) {
			w.wn.Parameters.Labels[machinev1alpha1.LabelUpdate] = machinev1alpha1.UpdateLabelCandidate
		}, machinev1alpha1.UpdateUpdating},
		"TheNodeWasAskedForAnother": {func(w *world) {
			w.wn.Parameters.Labels[machinev1alpha1.LabelUpdateTo] = "one"
		}, machinev1alpha1.UpdateUpdating},
		"TheNodeIsDrainedFirst":     {func(w *world) { w.u.State = machinev1alpha1.UpdateDraining }, machinev1alpha1.UpdateUpdating},
		"AnotherUpdateWasUnderWay":  {func(w *world) { w.u.ID = "one" }, machinev1alpha1.UpdateUpdating},
		"NothingIsKnownOfAnyUpdate": {func(w *world) { w.u = nil }, machinev1alpha1.UpdateUpdating},
		"TheNodeIsNotDrained": {func(w *world) {
			w.u.State, w.wn.Observation.Drained = machinev1alpha1.UpdateDraining, false
		}, machinev1alpha1.UpdateDraining},
		"TheDrainWasNotAskedForByUs": {func(w *world) {
			w.u.State, w.wn.Parameters.Drained = machinev1alpha1.UpdateDraining, false
		}, machinev1alpha1.UpdateDraining},
		"AFailureIsForgottenOnceItSucceeded": {func(w *world) {
			w.u.State = machinev1alpha1.UpdateFailed
			w.wn.Observation.Labels[machinev1alpha1.LabelUpdateFailed] = "two"
		}, machinev1alpha1.UpdateSucceeded},
		"ASuccessStaysOne": {func(w *world) {
			w.u.State, w.wn.Observation.Labels = machinev1alpha1.UpdateSucceeded, nil
		}, machinev1alpha1.UpdateSucceeded},
		"AFailureStaysOneThoughTheAgentTakesItBack": {func(w *world) {
			w.u.State, w.wn.Observation.Labels = machinev1alpha1.UpdateFailed, nil
		}, machinev1alpha1.UpdateFailed},
		"NothingIsKnownOfTheNode": {func(w *world) { w.wn = nil }, machinev1alpha1.UpdateUpdating},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{wn: readyNode(), u: &machinev1alpha1.UpdateStatus{ID: "two", State: machinev1alpha1.UpdateUpdating, Since: metav1.NewTime(created)}}
			w.wn.Observation.Synced = true
			w.wn.Parameters.Drained, w.wn.Observation.Drained = true, true
			w.wn.Parameters.Labels = map[string]string{machinev1alpha1.LabelUpdate: machinev1alpha1.UpdateLabelReady, machinev1alpha1.LabelUpdateTo: "two"}
			w.wn.Observation.Labels = map[string]string{machinev1alpha1.LabelUpdatedTo: "two"}
			tc.change(w)

			m := machine(machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineUpdating, Update: w.u, NodeRef: &machinev1alpha1.NodeReference{Name: "m"}})
			m.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "two", Version: "v1.36.0", Selected: true}
			d := Plan(soon, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: w.wn})
			if got := d.Status.Update.State; got != tc.want || d.Status.Phase != machinev1alpha1.MachineUpdating {
				t.Errorf("want %s, got %s, phase %s", tc.want, got, d.Status.Phase)
			}
			before := w.u
			if same := before != nil && before.ID == "two" && before.State == tc.want; same != (d.Status.Update.Since.Time.Equal(created)) {
				t.Errorf("since %s", d.Status.Update.Since)
			}
		})
	}
}

func TestTheTimeoutOfAnUpdateCountsFromTheEndOfItsDrain(t *testing.T) {
	m := machine(machinev1alpha1.MachineStatus{
		Phase:  machinev1alpha1.MachineUpdating,
		Update: &machinev1alpha1.UpdateStatus{ID: "two", State: machinev1alpha1.UpdateUpdating, Since: metav1.NewTime(created)},
	})
	m.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "two", Selected: true, Timeout: metav1.Duration{Duration: 10 * time.Minute}}
	o := Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()}

	d := Plan(created.Add(10*time.Minute-time.Second), o)
	if d.Status.Update.State != machinev1alpha1.UpdateUpdating || d.CallAgain != time.Second {
		t.Errorf("a second before: %+v, calls again after %s", d.Status.Update, d.CallAgain)
	}
	d = Plan(created.Add(10*time.Minute), o)
	if d.Status.Update.State != machinev1alpha1.UpdateFailed || d.Status.Update.Message != "the node's agent did not answer within 10m0s" {
		t.Errorf("then: %+v", d.Status.Update)
	}
	if op := d.Status.LastOperation; op.Type != machinev1alpha1.OperationUpdate || op.State != machinev1alpha1.OperationFailed {
		t.Errorf("last operation: %+v", op)
	}
	m.Spec.InPlaceUpdate.Timeout = metav1.Duration{}
	if d := Plan(late, o); d.Status.Update.State != machinev1alpha1.UpdateFailed {
		t.Errorf("without a timeout it has the default: %+v", d.Status.Update)
	}
}

func TestANodeThatWaitsForAnUpdateIsNotPreferred(t *testing.T) {
	outdated := workernode.Taint{Key: machinev1alpha1.TaintOutdated, Effect: "PreferNoSchedule"}
	for _, state := range []machinev1alpha1.UpdateState{machinev1alpha1.UpdateCandidate, machinev1alpha1.UpdateDraining, machinev1alpha1.UpdateFailed, ""} {
		m := machine(machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineRunning})
		// A set on its way out may have said so already.
		m.Spec.Taints = []machinev1alpha1.Taint{{Key: outdated.Key, Effect: "NoExecute"}}
		want := []workernode.Taint{{Key: outdated.Key, Effect: "NoExecute"}}
		if state != "" {
			m.Status.Update = &machinev1alpha1.UpdateStatus{ID: "two", State: state}
			m.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "two", Selected: state != machinev1alpha1.UpdateCandidate}
			want = append(want, outdated)
		}
		for range 2 {
			d := Plan(soon, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()})
			if got := d.WorkerNode.Taints; !slices.Equal(got, want) {
				t.Errorf("update %q: taints %v, want %v", state, got, want)
			}
			if state != "" && len(m.Spec.Taints) == 1 {
				m.Spec.Taints = append(m.Spec.Taints, machinev1alpha1.Taint(outdated))
			}
		}
	}
}
