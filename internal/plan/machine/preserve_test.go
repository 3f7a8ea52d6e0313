package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// preservable returns a Machine of a phase, with the annotations of the Machine and of its Node,
// and the recorded preservation.
func preservable(phase machinev1alpha1.MachinePhase, machineAsks, nodeAsks string, before *machinev1alpha1.Preservation) Observed {
	m := machine(machinev1alpha1.MachineStatus{Phase: phase, Preservation: before, NodeRef: &machinev1alpha1.NodeReference{Name: "m"}})
	m.Spec.Preserve.Timeout.Duration = time.Hour
	wn := readyNode()
	if machineAsks != "" {
		m.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: machineAsks}
	}
	if nodeAsks != "" {
		wn.Observation.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: nodeAsks}
	}
	return Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn}
}

func preservedBy(value string, since time.Time) *machinev1alpha1.Preservation {
	return &machinev1alpha1.Preservation{Value: value, Since: metav1.NewTime(since), Until: metav1.NewTime(since.Add(time.Hour))}
}

func TestPreservation(t *testing.T) {
	const (
		running = machinev1alpha1.MachineRunning
		broken  = machinev1alpha1.MachineFailed
	)
	earlier, longAgo := soon.Add(-30*time.Minute), soon.Add(-2*time.Hour)
	cases := map[string]struct {
		o     Observed
		value string
		want  *machinev1alpha1.Preservation
	}{
		"NobodyAsks":                       {preservable(running, "", "", nil), "", nil},
		"NowBeginsAtOnce":                  {preservable(running, "now", "", nil), "now", preservedBy("now", soon)},
		"NowOfTheNodeToo":                  {preservable(running, "", "now", nil), "now", preservedBy("now", soon)},
		"NowOutlastsAFailure":              {preservable(broken, "now", "", preservedBy("now", earlier)), "now", preservedBy("now", earlier)},
		"WhenFailedWaitsForAFailure":       {preservable(running, "when-failed", "", nil), "when-failed", nil},
		"WhenFailedBeginsWithTheFailure":   {preservable(broken, "when-failed", "", nil), "when-failed", preservedBy("when-failed", soon)},
		"AutoIsForFailedOnes":              {preservable(broken, "auto", "", nil), "auto", preservedBy("auto", soon)},
		"AutoIsNoValueOfANode":             {preservable(broken, "", "auto", nil), "", nil},
		"FalseEndsIt":                      {preservable(broken, "false", "", preservedBy("now", earlier)), "false", nil},
		"TheNodesFalseEndsIt":              {preservable(broken, "now", "false", preservedBy("now", earlier)), "false", nil},
		"TheNodeGoesBeforeTheMachine":      {preservable(running, "false", "now", nil), "now", preservedBy("now", soon)},
		"NonsenseOfTheNodeIsPassedOver":    {preservable(running, "now", "always", nil), "now", preservedBy("now", soon)},
		"NonsenseIsPassedOver":             {preservable(broken, "always", "", nil), "", nil},
		"NoValueEndsIt":                    {preservable(broken, "", "", preservedBy("auto", earlier)), "", nil},
		"OneThatIsOverDoesNotBeginAnew":    {preservable(broken, "now", "", preservedBy("now", longAgo)), "now", preservedBy("now", longAgo)},
		"AnotherValueBeginsAnewOnceItIs":   {preservable(broken, "when-failed", "", preservedBy("now", longAgo)), "when-failed", preservedBy("when-failed", soon)},
		"AnotherValueKeepsTheTimeTillThen": {preservable(broken, "now", "", preservedBy("auto", earlier)), "now", preservedBy("now", earlier)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(soon, tc.o)
			if diff := cmp.Diff(tc.want, d.Status.Preservation); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.Status.Preserve != tc.value {
				t.Errorf("in force: want %q, got %q", tc.value, d.Status.Preserve)
			}
			if lasts(soon, tc.want) && d.CallAgain != tc.want.Until.Sub(soon) {
				t.Errorf("calls again after %s", d.CallAgain)
			}
		})
	}

	t.Run("TheAnnotationOfANodeThatIsGoneCounts", func(t *testing.T) {
		o := preservable(broken, "", "now", preservedBy("now", earlier))
		o.WorkerNode.Observation.Present, o.WorkerNode.Observation.Conditions = false, nil
		d := Plan(soon, o)
		if diff := cmp.Diff(preservedBy("now", earlier), d.Status.Preservation); d.Status.Preserve != "now" || diff != "" {
			t.Errorf("in force: %q, -want +got:\n%s", d.Status.Preserve, diff)
		}
	})
	t.Run("TheTimeoutCountsWhenItBegins", func(t *testing.T) {
		o := preservable(broken, "now", "", preservedBy("now", earlier))
		o.Machine.Spec.Preserve.Timeout.Duration = time.Minute
		if d := Plan(soon, o); !lasts(soon, d.Status.Preservation) {
			t.Errorf("got %+v", d.Status.Preservation)
		}
		o.Machine.Status.Preservation, o.Machine.Spec.Preserve.Timeout.Duration = nil, 0
		if d := Plan(soon, o); d.Status.Preservation.Until.Sub(soon) != 96*time.Hour {
			t.Errorf("got %+v", d.Status.Preservation)
		}
	})
}

func TestThePreservedNodeIsProtected(t *testing.T) {
	type want struct{ Annotated, Tainted, Drained bool }
	drained := func(o Observed) Observed {
		o.Machine.Status.Drained = true
		return o
	}
	draining := func(o Observed) Observed {
		o.Machine.Status.Drain = &machinev1alpha1.DrainStatus{}
		return o
	}
	over := preservedBy("now", soon.Add(-2*time.Hour))
	cases := map[string]struct {
		o    Observed
		want want
	}{
		"NotPreserved":             {preservable("Running", "", "", nil), want{}},
		"Running":                  {preservable("Running", "now", "", nil), want{Annotated: true}},
		"Failed":                   {preservable("Failed", "now", "", nil), want{true, true, true}},
		"FailedAndOver":            {drained(preservable("Failed", "now", "", over)), want{Drained: true}},
		"FailedAndOverInItsDrain":  {draining(preservable("Failed", "now", "", over)), want{Drained: true}},
		"FailedAndTakenBack":       {drained(preservable("Failed", "", "", nil)), want{Drained: true}},
		"FailedAndNeverPreserved":  {preservable("Failed", "", "", nil), want{}},
		"RunningAndNeverPreserved": {drained(preservable("Running", "", "", nil)), want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Machine.Spec.Taints = []machinev1alpha1.Taint{{Key: "dedicated", Effect: "NoSchedule"}}
			p := Plan(soon, tc.o).WorkerNode
			taints := []workernode.Taint{{Key: "dedicated", Effect: "NoSchedule"}}
			if tc.want.Tainted {
				taints = append(taints, workernode.Taint{Key: "machine.drover.dev/preserved", Effect: "NoSchedule"})
			}
			if diff := cmp.Diff(taints, p.Taints); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := (p.Annotations[machinev1alpha1.AnnotationScaleDownDisabled] == "true"); got != tc.want.Annotated || p.Drained != tc.want.Drained {
				t.Errorf("annotated %t, drained %t", got, p.Drained)
			}
		})
	}
}

// applied copies the status and the conditions of a plan to the Machine, as the controller does.
func applied(o Observed, d Desired) Observed {
	m := o.Machine.DeepCopy()
	m.Status = d.Status
	for _, c := range d.Conditions {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
	}
	o.Machine = m
	return o
}

func eventReasons(d Desired) []string {
	var out []string
	for _, e := range d.Events {
		out = append(out, e.Reason)
	}
	return out
}

func TestAPreservationIsReportedFromItsBeginningToItsEnd(t *testing.T) {
	o := preservable("Running", "now", "", nil)
	for _, s := range []struct {
		name   string
		at     time.Time
		events []string
		reason string
	}{
		{"ItBegins", soon, []string{"Preserved"}, "Preserved"},
		{"ItGoesOn", soon.Add(time.Minute), nil, "Preserved"},
		{"ItEnds", soon.Add(time.Hour), []string{"PreservationExpired"}, "PreservationExpired"},
		{"ItIsOver", soon.Add(2 * time.Hour), nil, "PreservationExpired"},
	} {
		d := Plan(s.at, o)
		if diff := cmp.Diff(s.events, eventReasons(d)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", s.name, diff)
		}
		if c := conditionOf(d, machinev1alpha1.ConditionPreserved); c.Reason != s.reason || (c.Status == "True") != (s.reason == "Preserved") {
			t.Errorf("%s: %+v", s.name, c)
		}
		o = applied(o, d)
	}
}

func conditionOf(d Desired, typ string) plan.Condition {
	for _, c := range d.Conditions {
		if c.Type == typ {
			return c
		}
	}
	return plan.Condition{}
}

func TestEachSwitchWithAnotherValueThanTrueAndFalseIsReported(t *testing.T) {
	o := preservable("Running", "", "", nil)
	o.Machine.Annotations = map[string]string{"crossplane.io/paused": "True", machinev1alpha1.AnnotationForceDrain: "yes", machinev1alpha1.AnnotationConfirmDeletion: "false"}
	o.WorkerNode.Observation.Annotations = map[string]string{machinev1alpha1.AnnotationSkipDrain: "1", "crossplane.io/paused": "True"}
	const want = `drover.dev/force-drain: "yes" of the Machine must be true or false, and is passed over; ` +
		`crossplane.io/paused: "True" of the Machine must be true or false, and is passed over; ` +
		`drover.dev/skip-drain: "1" of the Node must be true or false, and is passed over`
	if c := conditionOf(Plan(soon, o), machinev1alpha1.ConditionAnnotationsValid); c.Status != "False" || c.Message != want {
		t.Errorf("got  %+v\nwant %s", c, want)
	}
}

func TestALongValueOfAnAnnotationIsShownInPart(t *testing.T) {
	o := preservable("Running", strings.Repeat("p", 1<<18), strings.Repeat("q", 1<<18), nil)
	o.Machine.Annotations[machinev1alpha1.AnnotationDeletionCost] = strings.Repeat("1", 1<<18)
	o.Machine.Annotations[machinev1alpha1.AnnotationForceDrain] = strings.Repeat("t", 1<<18)
	if c := conditionOf(Plan(soon, o), machinev1alpha1.ConditionAnnotationsValid); c.Status != "False" || len(c.Message) > 1024 {
		t.Errorf("condition %s of %d bytes", c.Status, len(c.Message))
	}
}

func TestAnnotationsThatArePassedOverAreReportedOnce(t *testing.T) {
	o := preservable("Running", "always", "auto", nil)
	o.Machine.Annotations[machinev1alpha1.AnnotationDeletionCost] = "much"
	d := Plan(soon, o)
	const want = `machine.drover.dev/deletion-cost: "much" of the Machine must be an integer of 32 bits, and counts as 0; ` +
		`machine.drover.dev/preserve: "always" of the Machine must be now, when-failed or false, and is passed over; ` +
		`machine.drover.dev/preserve: "auto" of the Node must be now, when-failed or false, and is passed over`
	if c := conditionOf(d, machinev1alpha1.ConditionAnnotationsValid); c.Status != "False" || c.Message != want {
		t.Errorf("got %+v", c)
	}
	if len(d.Events) != 1 || !d.Events[0].Warning || d.Events[0].Reason != "AnnotationInvalid" || d.Events[0].Message != want {
		t.Errorf("got %v", d.Events)
	}
	o = applied(o, d)
	if d = Plan(soon, o); len(d.Events) > 0 {
		t.Errorf("reported again: %v", d.Events)
	}
	o.Machine.Annotations, o.WorkerNode.Observation.Annotations = nil, nil
	if d = Plan(soon, o); conditionOf(d, machinev1alpha1.ConditionAnnotationsValid).Status != "True" || len(d.Events) > 0 {
		t.Errorf("once mended: %+v, %v", conditionOf(d, machinev1alpha1.ConditionAnnotationsValid), d.Events)
	}
	if c := conditionOf(Plan(soon, preservable("Running", "", "", nil)), machinev1alpha1.ConditionAnnotationsValid); c.Type != "" {
		t.Errorf("a Machine without any has the condition: %+v", c)
	}
}

// TestAPreservedMachineDoesNotShowItsFailureToTheAutoscaler, which would delete it: the root field
// is empty as long as the Machine is preserved.
func TestAPreservedMachineDoesNotShowItsFailureToTheAutoscaler(t *testing.T) {
	const lost = "the VM is gone"
	broken := func(value string, before *machinev1alpha1.Preservation, root string) Observed {
		o := preservable(machinev1alpha1.MachineFailed, value, "", before)
		o.Machine.Status.FailureReason, o.Machine.Status.FailureMessage = machinev1alpha1.FailureVMLost, root
		o.VM = plan.VM{State: plan.VMLost, Message: lost}
		return o
	}
	kept := func(since time.Duration) *machinev1alpha1.Preservation {
		p := preservedBy("now", soon.Add(since))
		p.FailureMessage = lost
		return p
	}
	fails := broken("now", preservedBy("now", soon.Add(-time.Minute)), "")
	fails.Machine.Status.Phase, fails.Machine.Status.FailureReason = machinev1alpha1.MachineRunning, ""
	cases := map[string]struct {
		o                   Observed
		root, preserved, of string
	}{
		"NotPreserved":            {broken("", nil, lost), lost, "", ""},
		"PreservedFromNowOn":      {broken("when-failed", nil, lost), "", lost, "; it failed: " + lost},
		"StillPreserved":          {broken("now", kept(-time.Minute), ""), "", lost, "; it failed: " + lost},
		"FailsWhileItIsPreserved": {fails, "", lost, "; it failed: " + lost},
		"NoLongerPreserved":       {broken("now", kept(-2*time.Hour), ""), lost, "", ""},
		"PreservationCalledOff":   {broken("", kept(-time.Minute), ""), lost, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(soon, tc.o)
			preserved := ""
			if p := d.Status.Preservation; p != nil {
				preserved = p.FailureMessage
			}
			if d.Status.Phase != machinev1alpha1.MachineFailed || d.Status.FailureReason != machinev1alpha1.FailureVMLost ||
				d.Status.FailureMessage != tc.root || preserved != tc.preserved || d.Status.Failure() != lost {
				t.Errorf("status %+v, preserved with %q", d.Status, preserved)
			}
			for _, c := range d.Conditions {
				if c.Type == machinev1alpha1.ConditionPreserved && c.Status == isTrue && !strings.HasSuffix(c.Message, tc.of) {
					t.Errorf("condition %q", c.Message)
				}
			}
			for _, e := range d.Events {
				if e.Reason == string(machinev1alpha1.FailureVMLost) && e.Message != lost {
					t.Errorf("event %q", e.Message)
				}
			}
		})
	}
}
