package set

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func adopting(names ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Adopting = names }
}

func TestMachinesThatNobodyControlsAreAdopted(t *testing.T) {
	type want struct {
		Composed, Adopting, Dropping, Events []string
		Replicas                             int32
		Created                              int64
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		orphans  []Machine
		want     want
	}{
		"WhatIsToBeAdoptedIsWrittenDownFirst": {
			set(2), []Machine{machine("a", running)}, []Machine{machine("x", running)},
			want{Composed: []string{"a"}, Adopting: []string{"x"}, Events: []string{"AdoptingMachine"}, Replicas: 1},
		},
		"NoneIsCreatedInTheMeantime": {
			set(3), []Machine{machine("a", running)}, []Machine{machine("x", running)},
			want{Composed: []string{"a", nth(100)}, Adopting: []string{"x"}, Events: []string{"AdoptingMachine", "CreatedMachine"}, Replicas: 2, Created: 1},
		},
		"WhatIsReadBackIsComposedAndCounted": {
			set(2, adopting("x")), []Machine{machine("a", running)}, []Machine{machine("x", running)},
			want{Composed: []string{"a", "x"}, Adopting: []string{"x"}, Replicas: 2},
		},
		"OnceItIsTheSetsItIsAMachineAsAnyOther": {
			set(2, adopting("x")), []Machine{machine("a", running), machine("x", running)}, nil,
			want{Composed: []string{"a", "x"}, Replicas: 2},
		},
		"OneTooManyIsGivenUpAsAnyOther": {
			set(1, adopting("x")), []Machine{machine("a", running)}, []Machine{machine("x", failed)},
			want{Composed: []string{"a", "x"}, Adopting: []string{"x"}, Dropping: []string{"x"}, Events: []string{"DeletedMachine"}, Replicas: 1},
		},
		"OneThatIsGoneMeanwhileIsForgotten": {
			set(1, adopting("x")), []Machine{machine("a", running)}, nil,
			want{Composed: []string{"a"}, Replicas: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines, Orphans: tc.orphans})
			got := want{composed(d), d.Status.Adopting, d.Status.Dropping, reasons(d), d.Status.Replicas, d.Status.Created - 100}
			if diff := cmp.Diff(tc.want, got, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}

	t.Run("AnAdoptedOneKeepsWhatItsVMWasMadeFrom", func(t *testing.T) {
		d := Plan(now, Observed{Set: set(1, adopting("x")), Orphans: []Machine{machine("x", running, outdated)}})
		m := composedAs(d, "x")
		if m.Spec.Version != "v1.34.0" || m.Labels[machinev1alpha1.LabelSet] != "set" || !slices.Contains(m.Finalizers, machinev1alpha1.FinalizerTerminator) {
			t.Errorf("got %+v", m)
		}
	})
}

func TestMachinesOfOthersAreLeftAlone(t *testing.T) {
	s := set(1)
	of := func(other string) *machinev1alpha1.Machine {
		m := &machinev1alpha1.Machine{}
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: other, Controller: ptr.To(true)}}
		return m
	}
	o := Observed{Set: s, Machines: []Machine{machine("a", running)}, Foreign: []*machinev1alpha1.Machine{of("z"), of("b"), of("z")}}
	d := Plan(now, o)
	want := shared.Condition{
		Type: "SelectorExclusive", Status: "False", Reason: "ControlledByOthers",
		Message: "Machines that spec.selector matches are controlled by MachineSet b, MachineSet z, and left alone",
	}
	if diff := cmp.Diff(want, condition(d, machinev1alpha1.ConditionSelectorExclusive)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(d.Events) != 1 || !d.Events[0].Warning || d.Events[0].Message != want.Message {
		t.Errorf("events %v", d.Events)
	}
	if got := composed(d); !slices.Equal(got, []string{"a"}) {
		t.Errorf("composes %v", got)
	}

	s.Status.Conditions = []metav1.Condition{{Type: want.Type, Status: "False", Reason: want.Reason, Message: want.Message}}
	if d := Plan(now, o); len(d.Events) > 0 {
		t.Errorf("reported again: %v", d.Events)
	}
	o.Foreign = nil
	if c := condition(Plan(now, o), machinev1alpha1.ConditionSelectorExclusive); c.Status != "True" {
		t.Errorf("once they are gone: %+v", c)
	}
	s.Status.Conditions = nil
	if c := condition(Plan(now, o), machinev1alpha1.ConditionSelectorExclusive); c.Type != "" {
		t.Errorf("a set that never saw any has the condition: %+v", c)
	}
}
