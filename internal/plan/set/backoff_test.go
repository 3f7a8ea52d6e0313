package set

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func failedWith(reason machinev1alpha1.FailureReason, code, message string) machineOption {
	return func(m *Machine) {
		m.Status.FailureReason, m.Status.FailureMessage = reason, message
		m.Status.LastOperation = &machinev1alpha1.LastOperation{State: machinev1alpha1.OperationFailed, ErrorCode: code, Description: message}
	}
}

func TestAFailureOfTheTemplateIsOneOfAMachineThatNeverJoined(t *testing.T) {
	const createFailed = machinev1alpha1.FailureCreateFailed
	cases := map[string]struct {
		machines []Machine
		want     *machinev1alpha1.Backoff
	}{
		"CreateFailed": {
			[]Machine{machine("a", failed, failedWith(createFailed, "QuotaExceeded", "no more"))},
			&machinev1alpha1.Backoff{Failures: 1, Reason: createFailed, ErrorCode: "QuotaExceeded", Message: "no more"},
		},
		"CreateResultUnknown": {
			[]Machine{machine("a", failed, failedWith(machinev1alpha1.FailureCreateUnknown, "", "who knows"))},
			&machinev1alpha1.Backoff{Failures: 1, Reason: machinev1alpha1.FailureCreateUnknown, ErrorCode: "CreateResultUnknown", Message: "who knows"},
		},
		"JoinTimeout": {
			[]Machine{machine("a", failed, withVM, failedWith(machinev1alpha1.FailureJoinTimeout, "", "no Node joined within 20m"))},
			&machinev1alpha1.Backoff{Failures: 1, Reason: machinev1alpha1.FailureJoinTimeout, ErrorCode: "JoinTimeout", Message: "no Node joined within 20m"},
		},
		"VMFailedBeforeItJoined": {
			[]Machine{machine("a", failed, withVM, failedWith(machinev1alpha1.FailureVMFailed, "Internal", "kernel panic"))},
			&machinev1alpha1.Backoff{Failures: 1, Reason: machinev1alpha1.FailureVMFailed, ErrorCode: "Internal", Message: "kernel panic"},
		},
		"VMFailedAfterItJoined":   {[]Machine{machine("a", failed, withVM, withNode, failedWith(machinev1alpha1.FailureVMFailed, "", "gone"))}, nil},
		"VMLostAfterItJoined":     {[]Machine{machine("a", failed, withVM, withNode, failedWith(machinev1alpha1.FailureVMLost, "", "gone"))}, nil},
		"OfAnEarlierTemplate":     {[]Machine{machine("a", failed, outdated, failedWith(createFailed, "QuotaExceeded", "no more"))}, nil},
		"BeforeTheLastSuccess":    {[]Machine{machine("a", failed, age(time.Hour), failedWith(createFailed, "QuotaExceeded", "no more")), machine("b", running, age(time.Minute))}, nil},
		"WhileOneFailedNoneOther": {[]Machine{machine("a", running)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: set(int32(len(tc.machines))), Machines: tc.machines})
			if tc.want != nil {
				tc.want.Until = metav1.NewTime(now.Add(delay(*tc.want)))
				tc.want.Template = (&fleet{Observed: Observed{Set: set(1)}}).templateHash()
			}
			if diff := cmp.Diff(tc.want, d.Status.Backoff); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			c := condition(d, machinev1alpha1.ConditionReplicaFailure)
			if tc.want == nil && c.Status != "False" || tc.want != nil && (c.Status != "True" || c.Reason != tc.want.ErrorCode || c.Message != tc.want.Message) {
				t.Errorf("got %+v", c)
			}
			if reported := slices.Contains(reasons(d), "BackingOff"); reported != (tc.want != nil) {
				t.Errorf("events: %v", d.Events)
			}
		})
	}
}

func condition(d Decision, typ string) shared.Condition {
	for _, c := range d.Conditions {
		if c.Type == typ {
			return c
		}
	}
	return shared.Condition{}
}

// A world is a set whose decisions are carried out.
type world struct {
	now time.Time
	set *machinev1alpha1.MachineSet
	ms  []Machine
}

// reconcile carries out one decision, and removes the deleted Machines.
func (w *world) reconcile() Decision {
	d := Plan(w.now, Observed{Set: w.set, Machines: slices.Clone(w.ms)})
	conditions := w.set.Status.Conditions
	w.set.Status = d.Status
	w.set.Status.Conditions = conditions
	for _, c := range d.Conditions {
		meta.SetStatusCondition(&w.set.Status.Conditions, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
	}
	desired := map[string]bool{}
	for _, m := range d.Machines {
		desired[m.Name] = true
		i := slices.IndexFunc(w.ms, func(o Machine) bool { return o.Name == m.Name })
		if i < 0 {
			w.ms = append(w.ms, machine(m.Name, pending, func(m *Machine) { m.CreationTimestamp = metav1.NewTime(w.now) }))
			i = len(w.ms) - 1
		}
		w.ms[i].Spec, w.ms[i].Labels, w.ms[i].Annotations = m.Spec, m.Labels, m.Annotations
	}
	w.ms = slices.DeleteFunc(w.ms, func(m Machine) bool { return !desired[m.Name] })
	return d
}

func (w *world) last() *Machine { return &w.ms[len(w.ms)-1] }

func TestTheDelayFitsTheErrorAndGrows(t *testing.T) {
	const createFailed, joinTimeout = machinev1alpha1.FailureCreateFailed, machinev1alpha1.FailureJoinTimeout
	cases := []struct {
		code   string
		reason machinev1alpha1.FailureReason
		want   []time.Duration
	}{
		{"Transient", createFailed, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute, 10 * time.Minute}},
		{"Throttled", createFailed, []time.Duration{10 * time.Second, 20 * time.Second}},
		{"JoinTimeout", joinTimeout, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute}},
		{"CapacityExhausted", createFailed, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute}},
		{"QuotaExceeded", createFailed, []time.Duration{time.Minute, 2 * time.Minute}},
		{"InvalidRequest", createFailed, []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour}},
		{"PermissionDenied", createFailed, []time.Duration{10 * time.Minute, 20 * time.Minute}},
	}
	for _, tc := range cases {
		for i, d := range tc.want {
			if got := delay(machinev1alpha1.Backoff{ErrorCode: tc.code, Reason: tc.reason, Failures: int32(i + 1)}); got != d {
				t.Errorf("%s, %d failures: %s, want %s", tc.code, i+1, got, d)
			}
		}
	}
}

func TestATemplateThatFailsIsTriedLessAndLessOften(t *testing.T) {
	w := &world{now: now, set: set(3)}
	w.reconcile()
	for i, delay := range []time.Duration{10, 20, 40, 80, 160, 320, 600, 600} {
		delay *= time.Second
		if len(w.ms) != 1 {
			t.Fatalf("attempt %d: there are %d Machines", i, len(w.ms))
		}
		w.last().Status.Phase = failed
		failedWith(machinev1alpha1.FailureCreateFailed, "Transient", fmt.Sprintf("no more (request %d)", i))(w.last())

		// A decision is reported once, and carried out when it is read back.
		d := w.reconcile()
		if got, want := reasons(d), []string{"BackingOff", "ReplacingMachine"}; !slices.Equal(got, want) {
			t.Fatalf("attempt %d: events %v", i, d.Events)
		}
		times := "once"
		if i > 0 {
			times = fmt.Sprintf("%d times in a row", i+1)
		}
		if want := fmt.Sprintf("Creation failed %s, first with Transient: no more (request 0): the next Machine is created in %s", times, delay); d.Events[0].Message != want {
			t.Errorf("attempt %d: %q, want %q", i, d.Events[0].Message, want)
		}
		if d = w.reconcile(); d.CallAgain > shared.InFlight || len(w.ms) != 0 || len(d.Events) > 0 {
			t.Fatalf("attempt %d: calls again after %s, %d Machines, events %v", i, d.CallAgain, len(w.ms), d.Events)
		}
		b := d.Status.Backoff
		if b == nil || b.Failures != int32(i+1) || !b.Until.Time.Equal(w.now.Add(delay)) || b.Message != "no more (request 0)" {
			t.Fatalf("attempt %d: %+v", i, b)
		}

		// The set waits, and then tries one Machine.
		w.now = w.now.Add(delay - time.Second)
		if d = w.reconcile(); d.CallAgain != time.Second || len(w.ms) != 0 {
			t.Fatalf("attempt %d: calls again after %s, %d Machines", i, d.CallAgain, len(w.ms))
		}
		w.now = w.now.Add(time.Second)
		w.reconcile()
	}

	// The first VM ends the backoff.
	w.last().Status.Phase = provisioning
	withVM(w.last())
	d := w.reconcile()
	if d.Status.Backoff != nil || condition(d, machinev1alpha1.ConditionReplicaFailure).Status != "False" || len(w.ms) != 3 {
		t.Errorf("got %+v, %+v, %d Machines", d.Status.Backoff, condition(d, machinev1alpha1.ConditionReplicaFailure), len(w.ms))
	}
	if got, want := reasons(d), []string{"CreationRecovered", "CreatedMachine"}; !slices.Equal(got, want) {
		t.Errorf("events %v", d.Events)
	}
}

func TestABackoffEnds(t *testing.T) {
	backingOff := func(reason machinev1alpha1.FailureReason, options ...setOption) *machinev1alpha1.MachineSet {
		s := set(3, options...)
		s.Status.Backoff = &machinev1alpha1.Backoff{
			Template: (&fleet{Observed: Observed{Set: s}}).templateHash(), Failures: 2,
			Until: metav1.NewTime(now.Add(5 * time.Second)), Reason: reason, ErrorCode: "QuotaExceeded", Message: "no more",
		}
		return s
	}
	// over ends the backoff of a set of one Machine.
	over := func(s *machinev1alpha1.MachineSet) {
		s.Spec.Replicas = 1
		s.Status.Backoff.Until = metav1.NewTime(now)
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		change   setOption
		machines []Machine
		want     bool
	}{
		"NotWithAVMThatWasThereBefore": {backingOff(machinev1alpha1.FailureCreateFailed), nil, []Machine{machine("a", running)}, false},
		"WithAVMThatIsYoungerThanTheFailure": {
			backingOff(machinev1alpha1.FailureCreateFailed), nil, []Machine{machine("a", provisioning, withVM, age(time.Second))}, true,
		},
		"NotWithAYoungerMachineWithoutAVM": {
			backingOff(machinev1alpha1.FailureCreateFailed), nil, []Machine{machine("a", provisioning, age(time.Second))}, false,
		},
		"NotWithAVMAloneWhenItIsJoiningThatFailed": {
			backingOff(machinev1alpha1.FailureJoinTimeout), nil, []Machine{machine("a", joining, age(time.Second))}, false,
		},
		"WithANodeWhenItIsJoiningThatFailed": {
			backingOff(machinev1alpha1.FailureJoinTimeout), nil, []Machine{machine("a", running, withNode, age(time.Second))}, true,
		},
		"NotWithAYoungerVMThatFailedToo": {
			backingOff(machinev1alpha1.FailureCreateFailed), nil, []Machine{machine("a", failed, withVM, age(time.Second))}, false,
		},
		"WithAnotherTemplate": {
			backingOff(machinev1alpha1.FailureCreateFailed),
			func(s *machinev1alpha1.MachineSet) { s.Spec.Template.Spec.ClassRef.Name = "large" }, nil, true,
		},
		"WithAnotherFailureDomain": {
			backingOff(machinev1alpha1.FailureCreateFailed),
			func(s *machinev1alpha1.MachineSet) { inZone("b")(s) }, nil, true,
		},
		"NotWithASettingThatNoVMIsMadeFrom": {
			backingOff(machinev1alpha1.FailureCreateFailed),
			func(s *machinev1alpha1.MachineSet) {
				s.Spec.Template.Spec.Metadata.Labels = map[string]string{"a": "b"}
			}, nil, false,
		},
		"WithAVMThatIsAsOldAsTheFailure": {
			backingOff(machinev1alpha1.FailureCreateFailed), nil, []Machine{machine("a", provisioning, withVM, age(115*time.Second))}, true,
		},
		"NotWhileAMachineIsOnItsWayThoughNoneIsMissing": {
			backingOff(machinev1alpha1.FailureCreateFailed), over, []Machine{machine("a", provisioning)}, false,
		},
		"NotWhileAFailedMachineIsToBeReplaced": {
			backingOff(machinev1alpha1.FailureCreateFailed, noBudget), over, []Machine{machine("a", failed, worked)}, false,
		},
		"WithAFailedMachineThatIsPreserved": {
			backingOff(machinev1alpha1.FailureCreateFailed), over, []Machine{machine("a", failed, worked, asks(preserveNow))}, true,
		},
		"NotBeforeItsTimeThoughNothingIsMissing": {
			backingOff(machinev1alpha1.FailureCreateFailed), func(s *machinev1alpha1.MachineSet) { s.Spec.Replicas = 1 }, []Machine{machine("a", running)}, false,
		},
		"NotWhileAMachineIsMissing": {
			backingOff(machinev1alpha1.FailureCreateFailed), func(s *machinev1alpha1.MachineSet) { s.Status.Backoff.Until = metav1.NewTime(now) }, []Machine{machine("a", running)}, false,
		},
		"WhenNothingIsMissingAnyMore": {
			backingOff(machinev1alpha1.FailureCreateFailed), over, []Machine{machine("a", running)}, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(tc.set)
			}
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines})
			if got := d.Status.Backoff == nil; got != tc.want {
				t.Errorf("ended: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNothingIsReplacedWhileATemplateBacksOff(t *testing.T) {
	s := set(1)
	s.Status.Backoff = &machinev1alpha1.Backoff{
		Template: (&fleet{Observed: Observed{Set: s}}).templateHash(), Failures: 1,
		Until: metav1.NewTime(now.Add(time.Second)), Reason: machinev1alpha1.FailureCreateFailed,
	}
	o := Observed{Set: s, Machines: []Machine{machine("a", failed, worked)}}
	if d := Plan(now, o); len(d.Status.Dropping) > 0 || d.CallAgain != time.Second {
		t.Errorf("drops %v, calls again after %s", d.Status.Dropping, d.CallAgain)
	}
	if d := Plan(now.Add(time.Second), o); len(d.Status.Dropping) != 1 {
		t.Errorf("drops %v", d.Status.Dropping)
	}
}

// TestOneAttemptIsOneFailure, regardless of how many Machines it had and when they fail.
func TestOneAttemptIsOneFailure(t *testing.T) {
	const joinTimeout, createFailed = machinev1alpha1.FailureJoinTimeout, machinev1alpha1.FailureCreateFailed
	never := failedWith(joinTimeout, "", "no Node joined within 20m")
	backoff := func(s *machinev1alpha1.MachineSet) {
		s.Status.Backoff = &machinev1alpha1.Backoff{
			Template: (&fleet{Observed: Observed{Set: s}}).templateHash(), Failures: 2, Until: metav1.NewTime(now.Add(-5 * time.Minute)),
			Reason: joinTimeout, ErrorCode: "JoinTimeout",
		}
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		want     int32
	}{
		"ThirtyThatFailTogetherAreOne":                {set(40), several(30, failed, withVM, never), 1},
		"OneThatFailsLaterThanTheOthersIsNone":        {set(40, backoff), several(1, failed, withVM, never, age(20*time.Minute)), 2},
		"OneOfTheNextAttemptIsTheNext":                {set(40, backoff), several(1, failed, withVM, never, age(4*time.Minute)), 3},
		"AYoungerVMDoesNotExcuseThoseThatNeverJoin":   {set(40), append(several(30, failed, withVM, never), several(1, joining, age(time.Minute))...), 1},
		"AYoungerNodeDoes":                            {set(40), append(several(30, failed, withVM, never), several(1, running, withNode, age(time.Minute))...), 0},
		"AYoungerVMExcusesThoseThatCouldNotBeCreated": {set(40), append(several(30, failed, failedWith(createFailed, "", "no")), several(1, joining, age(time.Minute))...), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got int32
			if b := Plan(now, Observed{Set: tc.set, Machines: tc.machines}).Status.Backoff; b != nil {
				got = b.Failures
			}
			if got != tc.want {
				t.Errorf("%d failures, want %d", got, tc.want)
			}
		})
	}
}

func TestReplicaFailureReportsACreationInError(t *testing.T) {
	older := machine("b", provisioning, age(2*time.Hour), inErrorOf("QuotaExceeded", "request 1: no more"))
	o := Observed{Set: set(3), Machines: []Machine{machine("a", provisioning, inErrorOf("Internal", "oops")), older, machine("c", running)}}
	d := Plan(now, o)
	c := condition(d, machinev1alpha1.ConditionReplicaFailure)
	if c.Status != "True" || c.Reason != "QuotaExceeded" || c.Message != "Machine b: request 1: no more" {
		t.Errorf("got %+v", c)
	}

	o.Machines = []Machine{machine("b", provisioning, age(2*time.Hour), inErrorOf("QuotaExceeded", "request 2: no more"))}
	for name, tc := range map[string]struct {
		before metav1.Condition
		want   string
	}{
		"TheSameErrorInOtherWordsIsNoNews": {metav1.Condition{Status: "True", Reason: c.Reason, Message: c.Message}, c.Message},
		"AnotherErrorIs":                   {metav1.Condition{Status: "True", Reason: "Internal", Message: "oops"}, "Machine b: request 2: no more"},
		"AnErrorAfterASuccessIs":           {metav1.Condition{Status: "False", Reason: c.Reason, Message: c.Message}, "Machine b: request 2: no more"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.before.Type = c.Type
			o.Set.Status.Conditions = []metav1.Condition{tc.before}
			if got := condition(Plan(now, o), machinev1alpha1.ConditionReplicaFailure); got.Message != tc.want {
				t.Errorf("%q, want %q", got.Message, tc.want)
			}
		})
	}
}

// invalid Machines report a problem.
func invalid(reason string) func(*Machine) {
	return func(m *Machine) {
		m.Status.Conditions = []metav1.Condition{{Type: machinev1alpha1.ConditionValid, Status: metav1.ConditionFalse, Reason: reason, Message: "spec.version: no"}}
	}
}

// failsToReconcile gives the Machine an error that has lasted for a time.
func failsToReconcile(d time.Duration) machineOption {
	return func(m *Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: "Synced", Status: "False", Reason: "ReconcileError", Message: "the Function is not installed", LastTransitionTime: metav1.NewTime(now.Add(-d))})
	}
}

// withVMBefore makes the Machine one that was restored without its status.
func withVMBefore(m *Machine) { m.Spec.ProviderID = ptr.To("local:///zone-a/vm") }

func TestReplicaFailureReportsAMachineThatIsInvalid(t *testing.T) {
	replicaFailure := func(o Observed) string {
		c := condition(Plan(now, o), machinev1alpha1.ConditionReplicaFailure)
		return c.Status + " " + c.Reason + " " + c.Message
	}
	const none = "False NoFailure "
	for name, tc := range map[string]struct {
		reason   string
		observed Observed
		want     string
	}{
		"AMachineWithoutAVM": {"No VM is created until a user acts.", Observed{Set: set(1), Machines: []Machine{machine("a", pending, invalid("VersionSkew"))}},
			"True VersionSkew Machine a: spec.version: no"},
		"TheOldest": {"It has waited the longest.", Observed{Set: set(2), Machines: []Machine{machine("a", pending, invalid("VersionSkew")), machine("b", pending, age(2*time.Hour), invalid("UserDataInvalid"))}},
			"True UserDataInvalid Machine b: spec.version: no"},
		"AnErrorOfTheProviderComesFirst": {"It is nearer to the VM.", Observed{Set: set(2), Machines: []Machine{machine("a", pending, invalid("VersionSkew")), machine("b", provisioning, inErrorOf("QuotaExceeded", "no more"))}},
			"True QuotaExceeded Machine b: no more"},
		"AMachineThatHadAVM": {"It was restored, and waits for its VM.", Observed{Set: set(1), Machines: []Machine{machine("a", pending, withVMBefore, invalid("VMOfAnotherInstallation"))}},
			"True VMOfAnotherInstallation Machine a: spec.version: no"},
		"AMachineThatHasAVM": {"It waits for its Node.", Observed{Set: set(1), Machines: []Machine{machine("a", joining, withVM, invalid("VersionSkew"))}}, none},
		"AMachineThatRuns":   {"Its VM was created before.", Observed{Set: set(1), Machines: []Machine{machine("a", running, invalid("VersionSkew"))}}, none},
		"OfTheSetItself":     {"The set reports it as Valid.", Observed{Set: set(1), Problem: &shared.Problem{Reason: "ClassNotFound"}, Machines: []Machine{machine("a", pending, invalid("ClassNotFound"))}}, none},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replicaFailure(tc.observed); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
