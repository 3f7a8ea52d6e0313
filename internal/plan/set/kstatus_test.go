package set

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func knowing(types ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		for _, t := range types {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionTrue})
		}
	}
}

var byHand = shared.Safety{Frozen: true, Reason: "ManualFreeze"}

func frozenSince(d time.Duration) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "Frozen", Status: "True", Reason: "ManualFreeze", LastTransitionTime: metav1.NewTime(now.Add(-d))})
	}
}

func noBudget(s *machinev1alpha1.MachineSet) {
	s.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(0))
}

func TestAStandaloneSetSaysHowItComesOn(t *testing.T) {
	const (
		comes   = "True Scaling"
		settled = "False Settled"
		no      = "False NotStalled"
		none    = " "
	)
	updateFailed := func(m *Machine) {
		old(m)
		asked("new", true)(m)
		reports("new", machinev1alpha1.UpdateFailed)(m)
	}
	denied := failedWith(machinev1alpha1.FailureCreateFailed, "PermissionDenied", "no")
	throttled := failedWith(machinev1alpha1.FailureCreateFailed, "Throttled", "later")
	cases := map[string]struct {
		observed             Observed
		reconciling, stalled string
	}{
		"AllThatIsWantedIsThere":               {Observed{Set: set(1), Machines: []Machine{machine("a", running)}}, settled, no},
		"AMachineIsMissing":                    {Observed{Set: set(2), Machines: []Machine{machine("a", running)}}, comes, no},
		"AMachineStarts":                       {Observed{Set: set(1), Machines: []Machine{machine("a", joining)}}, comes, no},
		"AMachineTooManyIsDropped":             {Observed{Set: set(0), Machines: []Machine{machine("a", running)}}, comes, no},
		"AMachineTooManyIsNotGoneYet":          {Observed{Set: set(0), Machines: []Machine{machine("a", running, terminating)}}, comes, no},
		"OneMachineTerminatesAndOneIsToGo":     {Observed{Set: set(1, dropping("b")), Machines: []Machine{machine("a", running), machine("b", running), machine("c", running, terminating)}}, comes, no},
		"ABackoffIsWaitedFor":                  {Observed{Set: set(2, backingOffFor(time.Minute)), Machines: []Machine{machine("a", running)}}, comes, no},
		"AFreezeKeepsAMachineFromBeingCreated": {Observed{Set: set(1), Safety: frozen}, "False Frozen", no},
		"AFreezeIsNothingToASetThatIsComplete": {Observed{Set: set(1), Safety: frozen, Machines: []Machine{machine("a", running)}}, settled, no},
		"DuringAFreezeAMachineGoes":            {Observed{Set: set(0), Safety: frozen, Machines: []Machine{machine("a", running, terminating)}}, comes, no},
		"TheClassIsMissing": {Observed{Set: set(1), Problem: &shared.Problem{Reason: machinev1alpha1.ReasonClassNotFound, Message: "no class"}},
			"False ClassNotFound", "True ClassNotFound"},
		"TheCloudRefusesForGood": {Observed{Set: set(1), Machines: []Machine{machine("a", failed, denied)}}, "False PermissionDenied", "True PermissionDenied"},
		"TheCloudRefusesForNow":  {Observed{Set: set(1), Machines: []Machine{machine("a", failed, throttled)}}, comes, no},
		"AMachineIsInvalid":      {Observed{Set: set(1), Machines: []Machine{machine("a", pending, invalid("VersionSkew"))}}, "False VersionSkew", "True VersionSkew"},
		"ASecretWithUserDataIsMissing": {Observed{Set: set(1), Machines: []Machine{machine("a", pending, invalid("UserDataNotFound"))}},
			"False UserDataNotFound", "True UserDataNotFound"},
		"AFunctionIsNotInstalled": {Observed{Set: set(1), Machines: []Machine{machine("a", pending, failsToReconcile(time.Minute))}},
			"False ReconcileError", "True ReconcileError"},
		"AnErrorMayPass":            {Observed{Set: set(1), Machines: []Machine{machine("a", pending, failsToReconcile(59*time.Second))}}, comes, no},
		"AnErrorOfAMachineThatRuns": {Observed{Set: set(1), Machines: []Machine{machine("a", running, failsToReconcile(time.Hour))}}, settled, no},
		"AnUpdateInPlaceFailed":     {Observed{Set: set(1, inPlace(1), updating("a")), Machines: []Machine{machine("a", running, updateFailed)}}, "False UpdateFailed", "True UpdateFailed"},
		"AFailedMachineWithoutBudgetStalls": {Observed{Set: set(1, noBudget), Machines: []Machine{machine("a", failed, func(m *Machine) { m.Status.NodeRef = &machinev1alpha1.NodeReference{Name: "n"} })}},
			"False NoBudget", "True NoBudget"},
		"ALongFreezeByHandStalls": {Observed{Set: set(2, frozenSince(31*time.Minute)), Safety: byHand, Machines: []Machine{machine("a", running)}},
			"False ManualFreeze", "True ManualFreeze"},
		"AFreezeByHandStallsAtItsLimit": {Observed{Set: set(2, frozenSince(30*time.Minute)), Safety: byHand, Machines: []Machine{machine("a", running)}},
			"False ManualFreeze", "True ManualFreeze"},
		"ALongFreezeByHandStallsWhatWaitsToBeReplaced": {Observed{Set: set(1, frozenSince(31*time.Minute)), Safety: byHand, Machines: []Machine{machine("a", failed, worked)}},
			"False ManualFreeze", "True ManualFreeze"},
		"AShortFreezeByHandDoesNot": {Observed{Set: set(2, frozenSince(29*time.Minute)), Safety: byHand, Machines: []Machine{machine("a", running)}}, "False Frozen", no},
		"AFailedMachineIsKept":      {Observed{Set: set(1), Machines: []Machine{machine("a", failed, asks("now"))}}, settled, no},
		"ADeploymentSpeaksForIt":    {Observed{Set: set(2, ofDeployment)}, none, none},
		"ADeploymentReportsItsBudget": {Observed{Set: set(1, ofDeployment, noBudget, knowing(machinev1alpha1.ConditionReconciling, machinev1alpha1.ConditionStalled)), Machines: []Machine{machine("a", failed, worked)}},
			comes, no},
		"ADeploymentTookItOver": {Observed{Set: set(2, ofDeployment, knowing(machinev1alpha1.ConditionReconciling, machinev1alpha1.ConditionStalled))}, comes, no},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, tc.observed)
			for typ, want := range map[string]string{machinev1alpha1.ConditionReconciling: tc.reconciling, machinev1alpha1.ConditionStalled: tc.stalled} {
				if c := condition(d, typ); c.Status+" "+c.Reason != want {
					t.Errorf("%s is %q (%s), want %q", typ, c.Status+" "+c.Reason, c.Message, want)
				}
			}
		})
	}
}

func TestStalledSaysInNumbersWhatIsMissingAndWhatMendsIt(t *testing.T) {
	broken := func(m *Machine) {
		old(m)
		asked("new", true)(m)
		reports("new", machinev1alpha1.UpdateFailed)(m)
		m.Status.Update.Message = "no space left"
	}
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"WithoutABudget": {
			Observed{Set: set(3, noBudget), Machines: []Machine{machine("a", failed, worked), machine("b", running), machine("c", running, terminating)}},
			"1 of 3 Machines are available, 1 starting, 1 terminating, 1 waiting to be replaced; maxInFlight is 0: 1 wait to be replaced, and none is; set spec.remediation.maxInFlight to 1 or more",
		},
		"AfterAFailedUpdate": {
			Observed{Set: set(1, inPlace(1), updating("a")), Machines: []Machine{machine("a", running, broken)}},
			"0 of 1 Machines are available; The update failed of Machine a (no space left); to retry, set the annotation machine.drover.dev/update-retry of the Machine to a new value",
		},
		"InALongFreeze": {
			Observed{Set: set(2, frozenSince(31*time.Minute)), Safety: byHand, Machines: []Machine{machine("a", running)}},
			"1 of 2 Machines are available, 1 starting; frozen by the label machine.drover.dev/freeze for more than 30m0s; to let Machines be created and replaced, remove the label",
		},
		"AsTheOtherConditionDoes": {Observed{Set: set(1), Problem: noClass}, noClass.Message + "; no Machines are created until that is mended"},
	} {
		t.Run(name, func(t *testing.T) {
			if c := condition(Plan(now, tc.o), machinev1alpha1.ConditionStalled); c.Status != "True" || c.Message != tc.want {
				t.Errorf("%s %q, want %q", c.Status, c.Message, tc.want)
			}
		})
	}
}

func TestASetReportsItsOldestMachineThatIsStuck(t *testing.T) {
	older := func(m *Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour)) }
	const (
		none  = "False NoFailure: "
		stuck = "True ReconcileError: Machine a: the Function is not installed"
	)
	for name, tc := range map[string]struct {
		machines      []Machine
		failure, want string
	}{
		"OfTwoTheOlder":            {[]Machine{machine("b", pending, failsToReconcile(time.Hour)), machine("a", pending, older, failsToReconcile(2*time.Minute))}, stuck, "True : "},
		"NotOneThatMayRecover":     {[]Machine{machine("a", pending, failsToReconcile(time.Minute)), machine("b", pending, older, failsToReconcile(time.Second))}, stuck, "True : "},
		"OneWithoutAVMComesFirst":  {[]Machine{machine("b", pending, invalid("UserDataNotFound")), machine("a", pending, older, failsToReconcile(time.Hour))}, "True UserDataNotFound: Machine b: spec.version: no", "False UserDataNotFound: Machine b: spec.version: no"},
		"NoneThatIsReady":          {[]Machine{machine("a", running, failsToReconcile(time.Hour)), machine("b", running)}, none, "True : "},
		"AnErrorOfTheCloudIsFirst": {[]Machine{machine("a", pending, failsToReconcile(time.Hour)), machine("b", pending, inErrorOf("Throttled", "later"))}, "True Throttled: Machine b: later", "True : "},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: set(2), Machines: tc.machines})
			if c := condition(d, "ReplicaFailure"); c.Status+" "+c.Reason+": "+c.Message != tc.failure {
				t.Errorf("ReplicaFailure is %s %s: %s, want %s", c.Status, c.Reason, c.Message, tc.failure)
			}
			if c := condition(d, "Valid"); c.Status+" "+c.Reason+": "+c.Message != tc.want && (tc.want != "True : " || c.Status != "True") {
				t.Errorf("Valid is %s %s: %s, want %s", c.Status, c.Reason, c.Message, tc.want)
			}
		})
	}
}

func TestASetReportsAnnotationsThatItPassesOver(t *testing.T) {
	s := set(1)
	s.Annotations = map[string]string{"crossplane.io/paused": "True"}
	c := condition(Plan(now, Observed{Set: s, Machines: []Machine{machine("a", running)}}), "AnnotationsValid")
	if c.Status != "False" || c.Message != `crossplane.io/paused: "True" of the MachineSet must be true or false, and is passed over` {
		t.Errorf("%+v", c)
	}
	if c = condition(Plan(now, Observed{Set: set(1), Machines: []Machine{machine("a", running)}}), "AnnotationsValid"); c.Type != "" {
		t.Errorf("a set without one has %+v", c)
	}
}
