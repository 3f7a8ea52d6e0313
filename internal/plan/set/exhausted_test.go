package set

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func refused(code, text string) machineOption {
	return func(m *Machine) {
		m.Status.LastOperation = &machinev1alpha1.LastOperation{
			Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing, ErrorCode: code, Description: text,
		}
	}
}

func inZone(zone string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Spec.Template.Spec.FailureDomain = &zone }
}

func at(zone string) machineOption {
	return func(m *Machine) { m.Spec.FailureDomain = &zone }
}

func exhaustion(zone string, since, until time.Duration) *machinev1alpha1.Exhaustion {
	e := &machinev1alpha1.Exhaustion{FailureDomain: zone, Code: "CapacityExhausted", Since: metav1.NewTime(now.Add(since))}
	if until != 0 {
		e.Until = ptr.To(metav1.NewTime(now.Add(until)))
	}
	return e
}

func exhausted(e *machinev1alpha1.Exhaustion) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		s.Status.Exhausted = e
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{
			Type: "CapacityExhausted", Status: "True", Reason: e.Code, Message: "as it was reported",
		})
	}
}

func TestAFailureDomainIsExhausted(t *testing.T) {
	const full = "CapacityExhausted"
	recovered := func(m *Machine) {
		withVM(m)
		m.Status.RefusedUntil = ptr.To(metav1.NewTime(now))
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		want     *machinev1alpha1.Exhaustion
		// condition has the status, the reason and the message.
		condition string
		events    []string
		again     time.Duration
	}{
		"NeverWithoutAnError": {
			set: set(1, inZone("b")), machines: []Machine{machine("a", provisioning, at("b"))},
		},
		"WhileAMachineIsRefusedThere": {
			set: set(1, inZone("b")), machines: []Machine{machine("a", provisioning, at("b"), refused(full, "none left"))},
			want: exhaustion("b", 0, 0), condition: `True CapacityExhausted Failure domain "b": Machine a: none left`, events: []string{full},
		},
		"WhichIsReportedOnce": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0))), machines: []Machine{machine("a", provisioning, at("b"), refused(full, "none left (request 2)"))},
			want: exhaustion("b", -time.Minute, 0), condition: "True CapacityExhausted as it was reported",
		},
		"NotByAnotherError": {
			set: set(1, inZone("b")), machines: []Machine{machine("a", provisioning, at("b"), refused("Throttled", "slow down"))},
		},
		"NotByAMachineThatHasItsVM": {
			set: set(1, inZone("b")), machines: []Machine{machine("a", joining, at("b"), refused(full, "none left"))},
		},
		"NotByAMachineOfAnEarlierTemplate": {
			set: set(1, inZone("b")), machines: []Machine{machine("a", provisioning, at("c"), refused(full, "none left"))},
		},
		"WhileVMsFailAfterTheyWereAccepted": {
			set: set(1, inZone("b"), func(s *machinev1alpha1.MachineSet) {
				s.Status.Backoff = &machinev1alpha1.Backoff{
					Failures: 1, ErrorCode: full, Message: "none left", Until: metav1.NewTime(now.Add(time.Minute)),
					Template: (&fleet{Observed: Observed{Set: set(1, inZone("b"))}}).templateHash(),
				}
			}),
			want: exhaustion("b", 0, 0), condition: `True CapacityExhausted Failure domain "b": none left`, events: []string{full}, again: time.Minute,
		},
		"AnErrorOfTheTimeBeforeIsReportedAgain": {
			set:      set(1, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0)), func(s *machinev1alpha1.MachineSet) { s.Status.Exhausted = nil }),
			machines: []Machine{machine("a", provisioning, at("b"), refused(full, "none left"))},
			want:     exhaustion("b", 0, 0), condition: `True CapacityExhausted Failure domain "b": Machine a: none left`, events: []string{full},
		},
		"UntilTheMachineGetsItsVM": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0))), machines: []Machine{machine("a", provisioning, at("b"), recovered)},
			condition: "False RoomAvailable ", events: []string{"ExhaustionEnded"},
		},
		"UntilAYoungerMachineGetsOne": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0))), machines: []Machine{machine("a", running, at("b"), age(time.Second))},
			condition: "False RoomAvailable ", events: []string{"ExhaustionEnded"},
		},
		"AsLongAsAnyIsRefused": {
			set:       set(2, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0))),
			machines:  []Machine{machine("a", provisioning, at("b"), recovered), machine("b", provisioning, at("b"), refused(full, "none left"))},
			want:      exhaustion("b", -time.Minute, 0),
			condition: "True CapacityExhausted as it was reported",
		},
		"ForAWhileWhenNobodyWaitsThereAnyMore": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0))), machines: []Machine{machine("a", running, at("b"))},
			want: exhaustion("b", -time.Minute, 10*time.Minute), again: 10 * time.Minute,
			condition: `True CapacityExhausted Failure domain "b": no Machine waits for room any more; it counts as full until 2026-01-01T12:10:00Z, or until a VM is created there`,
		},
		"NoLongerThanThat": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Hour, time.Second))), machines: []Machine{machine("a", running, at("b"))},
			want: exhaustion("b", -time.Hour, time.Second), again: time.Second,
			condition: `True CapacityExhausted Failure domain "b": no Machine waits for room any more; it counts as full until 2026-01-01T12:00:01Z, or until a VM is created there`,
		},
		"ThenItIsWorthAnotherTry": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Hour, -time.Second))), machines: []Machine{machine("a", running, at("b"))},
			condition: "False RoomAvailable ", events: []string{"ExhaustionEnded"},
		},
		"ATemplateForAnotherKnowsNothingOfIt": {
			set: set(1, inZone("c"), exhausted(exhaustion("b", -time.Minute, 0))), machines: []Machine{machine("a", running, at("c"))},
			condition: "False RoomAvailable ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines})
			if diff := cmp.Diff(tc.want, d.Status.Exhausted); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			got := ""
			if c := condition(d, "CapacityExhausted"); c.Type != "" {
				got = c.Status + " " + c.Reason + " " + c.Message
			}
			if got != tc.condition {
				t.Errorf("condition %q, want %q", got, tc.condition)
			}
			if got := slices.DeleteFunc(reasons(d), func(r string) bool { return r == "CreatedMachine" }); !slices.Equal(got, tc.events) {
				t.Errorf("events %v", d.Events)
			}
			if tc.again != 0 && d.CallAgain != tc.again {
				t.Errorf("calls again after %s", d.CallAgain)
			}
		})
	}
}

// TestAnAutoscalerSeesThatThereIsNoRoom: in a node group, a Machine that failed for lack of room stays
// until the backoff ends, and missing Machines are created without VMs.
func TestAnAutoscalerSeesThatThereIsNoRoom(t *testing.T) {
	const full = "CapacityExhausted"
	group := func(s *machinev1alpha1.MachineSet) {
		s.Annotations = map[string]string{machinev1alpha1.AnnotationClusterAPINodeGroupMaxSize: "10"}
	}
	backedOff := func(d time.Duration) setOption {
		return func(s *machinev1alpha1.MachineSet) {
			s.Status.Backoff = &machinev1alpha1.Backoff{
				Failures: 1, ErrorCode: full, Reason: machinev1alpha1.FailureCapacityTimeout, Until: metav1.NewTime(now.Add(d)),
				Template: (&fleet{Observed: Observed{Set: set(1)}}).templateHash(),
			}
		}
	}
	noRoom := func(m *Machine) {
		failedWith(machinev1alpha1.FailureCapacityTimeout, full, "none left")(m)
		m.Spec.CapacityTimeout = &metav1.Duration{Duration: machinev1alpha1.DefaultCapacityTimeout}
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		dropping []string
		// created is the number of created Machines, and withheld how many of them get no VM.
		created, withheld int
	}{
		"ItStaysAndOthersAreShown":     {set: set(3, group), machines: []Machine{machine("a", failed, noRoom, age(time.Minute))}, created: 2, withheld: 2},
		"OneThatHasNoVMStaysSo":        {set: set(1, group, backedOff(time.Second)), machines: []Machine{machine("a", failed, noRoom, annotated(machinev1alpha1.AnnotationExhausted, full))}, withheld: 1},
		"AsLongAsTheBackoffLasts":      {set: set(1, group, backedOff(time.Second)), machines: []Machine{machine("a", failed, noRoom)}},
		"ThenOneIsRetried":             {set: set(2, group, backedOff(-time.Second)), machines: []Machine{machine("a", failed, noRoom), machine("b", failed, noRoom)}, dropping: []string{"a"}},
		"NoOtherWhileThatOneIsMissing": {set: set(2, group, backedOff(-time.Second)), machines: []Machine{machine("b", failed, noRoom)}, created: 1},
		"NorWhileItIsOnItsWay":         {set: set(2, group, backedOff(-time.Minute)), machines: []Machine{machine("b", failed, noRoom), machine("c", provisioning, age(time.Second))}},
		"AllOthersOnceItHasItsVM":      {set: set(3, group, backedOff(-time.Minute)), machines: []Machine{machine("a", failed, noRoom), machine("b", failed, noRoom), machine("c", running, age(time.Second))}, dropping: []string{"a", "b"}},
		"ASetThatCreatesNoneDeletesIt": {set: set(3, group, createsNone, backedOff(time.Second)), machines: []Machine{machine("a", failed, noRoom)}, dropping: []string{"a"}},
		"ASetOfNoNodeGroupCreatesNone": {set: set(3, backedOff(time.Second))},
		"UnlessItsTemplateHasTheFieldToo": {set: set(3, backedOff(time.Second), func(s *machinev1alpha1.MachineSet) {
			s.Spec.Template.Spec.CapacityTimeout = &metav1.Duration{Duration: time.Second}
		}), created: 3, withheld: 3},
		"AFailureForAnotherReasonDoesNot": {set: set(2, group), machines: []Machine{machine("a", failed, failedWith(machinev1alpha1.FailureCreateFailed, "Transient", "no"))}, dropping: []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines})
			created, withheld := 0, 0
			for _, m := range d.Machines {
				if m.Create {
					created++
				}
				if m.Annotations[machinev1alpha1.AnnotationExhausted] == full {
					withheld++
				}
			}
			if !slices.Equal(d.Status.Dropping, tc.dropping) || created != tc.created || withheld != tc.withheld {
				t.Errorf("deletes %v, creates %d, %d of them without VMs", d.Status.Dropping, created, withheld)
			}
		})
	}
}

func TestANodeGroupHasACapacityTimeout(t *testing.T) {
	own := &metav1.Duration{Duration: time.Hour}
	for name, tc := range map[string]struct {
		annotation string
		own, want  *metav1.Duration
	}{
		"ByDefault":     {machinev1alpha1.AnnotationNodeGroupMaxSize, nil, &metav1.Duration{Duration: 30 * time.Second}},
		"ItsOwn":        {machinev1alpha1.AnnotationNodeGroupMaxSize, own, own},
		"NoNodeGroup":   {"another", nil, nil},
		"OnlyAMinimum":  {machinev1alpha1.AnnotationClusterAPINodeGroupMinSize, nil, &metav1.Duration{Duration: 30 * time.Second}},
		"OwnOfNoGroups": {"another", own, own},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(1)
			s.Annotations = map[string]string{tc.annotation: "1"}
			s.Spec.Template.Spec.CapacityTimeout = tc.own
			d := Plan(now, Observed{Set: s})
			if diff := cmp.Diff(tc.want, d.Machines[0].Spec.CapacityTimeout); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
