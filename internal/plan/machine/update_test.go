package machine

import (
	"slices"
	"strings"
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
		// A set that is being replaced may have added the taint already.
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

// TestAnUpdateThatIsWithdrawnEndsWithTheCordonOfItsNode and not before: until then the Machine does
// not run.
func TestAnUpdateThatIsWithdrawnEndsWithTheCordonOfItsNode(t *testing.T) {
	cases := map[string]struct {
		state  machinev1alpha1.UpdateState
		change func(*workernode.WorkerNode)
		ends   bool
	}{
		"TheNodeIsUncordoned":            {machinev1alpha1.UpdateUpdating, func(*workernode.WorkerNode) {}, true},
		"TheNodeIsCordoned":              {machinev1alpha1.UpdateUpdating, func(wn *workernode.WorkerNode) { wn.Observation.Drained = true }, false},
		"TheNodeIsToBeCordoned":          {machinev1alpha1.UpdateUpdating, func(wn *workernode.WorkerNode) { wn.Parameters.Drained = true }, false},
		"TheNodeWasNotSeenSince":         {machinev1alpha1.UpdateUpdating, func(wn *workernode.WorkerNode) { wn.Observation.Synced = false }, false},
		"TheNodeCannotBeObserved":        {machinev1alpha1.UpdateUpdating, func(wn *workernode.WorkerNode) { wn.Observation.Error = "timeout" }, false},
		"TheUpdateFailed":                {machinev1alpha1.UpdateFailed, func(wn *workernode.WorkerNode) { wn.Observation.Drained = true }, false},
		"AnUpdateThatNeverBeganIsOver":   {machinev1alpha1.UpdateCandidate, func(wn *workernode.WorkerNode) { wn.Observation.Drained = true }, true},
		"NothingIsKnownOfAnyNodeAnyMore": {machinev1alpha1.UpdateUpdating, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := machine(machinev1alpha1.MachineStatus{
				Phase: machinev1alpha1.MachineUpdating, NodeRef: &machinev1alpha1.NodeReference{Name: "m"},
				Update: &machinev1alpha1.UpdateStatus{ID: "two", State: tc.state, Since: metav1.NewTime(created)},
			})
			o := Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}}
			if tc.change != nil {
				o.WorkerNode = readyNode()
				o.WorkerNode.Observation.Synced = true
				tc.change(o.WorkerNode)
			}
			d := Plan(soon, o)
			if ends := d.Status.Update == nil; ends != tc.ends {
				t.Fatalf("the update is over: %t, want %t", ends, tc.ends)
			}
			if d.WorkerNode.Drained {
				t.Error("the Node is to be drained for an update that is withdrawn")
			}
			if !tc.ends && d.CallAgain != plan.InFlight {
				t.Errorf("calls again after %s", d.CallAgain)
			}
		})
	}
}

// TestANodeMayAskToBeSelected for the update that it waits for, and only for that one.
func TestANodeMayAskToBeSelected(t *testing.T) {
	cases := map[string]struct {
		label    string
		selected bool
		want     bool
	}{
		"TheNodeAsks":                 {"two", false, true},
		"TheNodeAsksForAnother":       {"one", false, false},
		"TheNodeDoesNotAsk":           {"", false, false},
		"TheNodeThatIsSelectedIsDone": {"two", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := machine(machinev1alpha1.MachineStatus{
				Phase:  machinev1alpha1.MachineRunning,
				Update: &machinev1alpha1.UpdateStatus{ID: "two", State: machinev1alpha1.UpdateFailed, Requested: true, Message: "no", Since: metav1.NewTime(created)},
			})
			m.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "two", Selected: tc.selected}
			wn := readyNode()
			wn.Observation.Labels = map[string]string{machinev1alpha1.LabelUpdateSelected: tc.label}
			u := Plan(soon, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn}).Status.Update
			if u.Requested != tc.want {
				t.Errorf("requested %t, want %t", u.Requested, tc.want)
			}
			if !tc.selected && (u.State != machinev1alpha1.UpdateCandidate || u.Message != "") {
				t.Errorf("without the selection it is %s: %q", u.State, u.Message)
			}
		})
	}
}

// TestAnUpdateIsReportedFromItsBeginningToItsEnd in events, the condition and the last operation.
func TestAnUpdateIsReportedFromItsBeginningToItsEnd(t *testing.T) {
	m := machine(machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineRunning, NodeRef: &machinev1alpha1.NodeReference{Name: "m"}})
	o := Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()}
	update := &machinev1alpha1.MachineUpdate{ID: "two", Version: "v1.36.0", ClassRef: machinev1alpha1.ClassReference{Name: "large"}}
	answers := func(label string) {
		o.WorkerNode.Parameters.Labels = map[string]string{machinev1alpha1.LabelUpdate: machinev1alpha1.UpdateLabelReady, machinev1alpha1.LabelUpdateTo: "two"}
		o.WorkerNode.Observation.Synced = true
		o.WorkerNode.Observation.Labels = map[string]string{label: "two"}
	}
	for _, step := range []struct {
		does      string
		change    func()
		event     string
		warning   bool
		condition string
		operation string
	}{
		{"nothing is asked for", func() {}, "", false, "", "Join Successful: Node m joined"},
		{"it is asked for", func() { m.Spec.InPlaceUpdate = update }, "", false,
			`False UpdateCandidate: Waits to be selected for update two, to version v1.36.0 of class "large"`, "Join Successful: Node m joined"},
		{"it is selected", func() { m.Spec.InPlaceUpdate.Selected = true }, "UpdateDraining", false,
			`False UpdateDraining: Draining the Node for update two, to version v1.36.0 of class "large"`, "Update Processing"},
		{"the Node is drained", func() { o.WorkerNode.Parameters.Drained, o.WorkerNode.Observation.Drained = true, true }, "UpdateUpdating", false,
			`False UpdateUpdating: The Node is drained, and its agent is awaited: update two, to version v1.36.0 of class "large"`, "Update Processing"},
		{"the agent fails", func() { answers(machinev1alpha1.LabelUpdateFailed) }, "UpdateFailed", true,
			`False UpdateFailed: Update two, to version v1.36.0 of class "large" failed: the node's agent gave no reason`, "Update Failed"},
		{"the agent has done it", func() { answers(machinev1alpha1.LabelUpdatedTo) }, "UpdateSucceeded", false,
			`False UpdateSucceeded: The node's agent has done update two, to version v1.36.0 of class "large"`, "Update Successful"},
		{"it is in the spec", func() {
			m.Spec.InPlaceUpdate = nil
			o.WorkerNode.Parameters.Drained, o.WorkerNode.Observation.Drained = false, false
		}, "NodeReady", false, "True UpToDate: ", "Update Successful"},
	} {
		step.change()
		for _, again := range []bool{false, true} {
			d := Plan(soon, o)
			event, warning := "", false
			for _, e := range d.Events {
				event, warning = e.Reason, e.Warning
			}
			if want := step.event; again && event != "" || !again && (event != want || warning != step.warning) {
				t.Errorf("%s: event %q, warning %t, want %q, %t", step.does, event, warning, want, step.warning)
			}
			condition := ""
			for _, c := range d.Conditions {
				if c.Type == machinev1alpha1.ConditionUpdated {
					condition = c.Status + " " + c.Reason + ": " + c.Message
				}
			}
			if condition != step.condition {
				t.Errorf("%s: condition %q, want %q", step.does, condition, step.condition)
			}
			op := d.Status.LastOperation
			said := string(op.Type) + " " + string(op.State) + ": " + op.Description
			if !strings.HasPrefix(said, step.operation) || d.Status.Update != nil && op.Type == machinev1alpha1.OperationUpdate && !strings.HasSuffix(condition, op.Description) {
				t.Errorf("%s: last operation %q, want %q", step.does, said, step.operation)
			}
			o = applied(o, d)
			m = o.Machine
		}
	}
}
