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
			Type: "CapacityExhausted", Status: "True", Reason: e.Code, Message: "as it was told",
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
		// condition is its status, reason and message.
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
		"WhichIsToldOnce": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0))), machines: []Machine{machine("a", provisioning, at("b"), refused(full, "none left (request 2)"))},
			want: exhaustion("b", -time.Minute, 0), condition: "True CapacityExhausted as it was told",
		},
		"NotByAnotherError": {
			set: set(1, inZone("b")), machines: []Machine{machine("a", provisioning, at("b"), refused("Throttled", "slow down"))},
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
			condition: "True CapacityExhausted as it was told",
		},
		"ForAWhileWhenNobodyWaitsThereAnyMore": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Minute, 0))), machines: []Machine{machine("a", running, at("b"))},
			want: exhaustion("b", -time.Minute, 10*time.Minute), condition: "True CapacityExhausted as it was told", again: 10 * time.Minute,
		},
		"NoLongerThanThat": {
			set: set(1, inZone("b"), exhausted(exhaustion("b", -time.Hour, time.Second))), machines: []Machine{machine("a", running, at("b"))},
			want: exhaustion("b", -time.Hour, time.Second), condition: "True CapacityExhausted as it was told", again: time.Second,
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
