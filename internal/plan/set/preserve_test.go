package set

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

const (
	preserveNow        = machinev1alpha1.PreserveNow
	preserveWhenFailed = machinev1alpha1.PreserveWhenFailed
	preserveFalse      = machinev1alpha1.PreserveFalse
	preserveAuto       = machinev1alpha1.PreserveAuto
)

func autoPreserve(most int32) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Spec.AutoPreserveFailedMachineMax = most }
}

func asks(value string) machineOption { return annotated(machinev1alpha1.AnnotationPreserve, value) }

// preservedFor makes the Machine one whose status reports a preservation until d from now, which may be
// past.
func preservedFor(value string, d time.Duration) machineOption {
	return func(m *Machine) {
		m.Status.Preserve = value
		m.Status.Preservation = &machinev1alpha1.Preservation{
			Value: value, Since: metav1.NewTime(now.Add(d - 96*time.Hour)), Until: metav1.NewTime(now.Add(d)),
		}
	}
}

// nodeAsks makes the Machine one whose Node has the annotation.
func nodeAsks(value string) machineOption {
	return func(m *Machine) { m.Status.Preserve = value }
}

func TestPreservedMachinesAreNotReplaced(t *testing.T) {
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		dropping []string
		kept     int32
		again    time.Duration
	}{
		"NowKeepsAFailedMachine": {
			set(2), []Machine{machine("a", running), machine("b", failed, asks(preserveNow), preservedFor(preserveNow, 3*time.Hour))}, nil, 1, shared.AtRest,
		},
		"WhenFailedKeepsAFailedMachine": {
			set(1), []Machine{machine("b", failed, asks(preserveWhenFailed), preservedFor(preserveWhenFailed, 3*time.Hour))}, nil, 1, shared.AtRest,
		},
		"NowKeepsAnOutdatedMachineThatHasNoVM": {
			set(1, inPlace(1)), []Machine{machine("a", pending, outdated, labeled(machinev1alpha1.LabelUpdatedTo, "old"), asks(preserveNow))}, nil, 0, time.Minute,
		},
		"TheSetLooksAgainWhenItIsOver": {
			set(1), []Machine{machine("b", failed, preservedFor(preserveNow, time.Minute))}, nil, 1, time.Minute,
		},
		"OnceItIsOverItIsReplaced": {
			set(1), []Machine{machine("b", failed, asks(preserveNow), preservedFor(preserveNow, 0))}, []string{"b"}, 0, shared.Soonest,
		},
		"WhatWasAskedForAMomentAgoCounts": {
			set(1), []Machine{machine("b", failed, asks(preserveWhenFailed))}, nil, 1, shared.AtRest,
		},
		"FalseKeepsNothing": {
			set(1), []Machine{machine("b", failed, asks(preserveFalse))}, []string{"b"}, 0, shared.Soonest,
		},
		"NonsenseKeepsNothing": {
			set(1), []Machine{machine("b", failed, asks("forever"))}, []string{"b"}, 0, shared.Soonest,
		},
		"TheNodesFalseGoesBeforeTheMachinesNow": {
			set(1), []Machine{machine("b", failed, asks(preserveNow), nodeAsks(preserveFalse))}, []string{"b"}, 0, shared.Soonest,
		},
		"AnotherFailedMachineIsReplaced": {
			set(2), []Machine{machine("a", failed), machine("b", failed, preservedFor(preserveNow, 3*time.Hour))}, []string{"a"}, 1, shared.Soonest,
		},
		"ARunningMachineThatIsPreservedIsNoFailedOne": {
			set(1), []Machine{machine("b", running, preservedFor(preserveNow, 3*time.Hour))}, nil, 0, shared.AtRest,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines})
			if diff := cmp.Diff(tc.dropping, d.Status.Dropping, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.Status.PreservedFailedReplicas != tc.kept || d.CallAgain != tc.again {
				t.Errorf("preserved %d, calls again after %s", d.Status.PreservedFailedReplicas, d.CallAgain)
			}
			// The Machine counts as a replica: none is created in addition.
			if d.Status.Created != 100 {
				t.Errorf("created %d", d.Status.Created-100)
			}
		})
	}
}

func TestPreservedMachinesGoLast(t *testing.T) {
	kept := preservedFor(preserveNow, time.Hour)
	cases := map[string]struct {
		machines []Machine
		want     []string
	}{
		"NotOneThatIsToBePreservedWhenItFails": {[]Machine{machine("a", running, asks(preserveWhenFailed), age(time.Minute)), machine("b", running)}, []string{"a"}},
		"AfterRunningOnes":                     {[]Machine{machine("a", failed, kept), machine("b", running)}, []string{"b"}},
		"ARunningOneToo":                       {[]Machine{machine("a", running, kept, days(0)), machine("b", running)}, []string{"b"}},
		"ThoseKeptByItselfBeforeOthers":        {[]Machine{machine("a", failed, kept), machine("b", failed, asks(preserveAuto), preservedFor(preserveAuto, 2*time.Hour))}, []string{"b"}},
		"ThoseKeptForLessLongFirst":            {[]Machine{machine("a", failed, preservedFor(preserveNow, 2*time.Hour)), machine("b", failed, kept)}, []string{"b"}},
		"ThoseNoLongerKeptAreAsOthers":         {[]Machine{machine("a", failed, preservedFor(preserveNow, 0)), machine("b", running)}, []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: set(1, autoPreserve(5)), Machines: tc.machines})
			if diff := cmp.Diff(tc.want, d.Status.Dropping); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d := Plan(now, Observed{Set: set(0, autoPreserve(5)), Machines: tc.machines}); len(d.Status.Dropping) != 2 {
				t.Errorf("a scale to zero spares %v", composed(d))
			}
		})
	}
}

// setAside makes the set one that set these Machines aside before.
func setAside(names ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.SetAside = names }
}

// hidden makes the Machine one that the selector no longer matches.
func hidden(m *Machine) { m.Labels = map[string]string{machinev1alpha1.LabelSet: "set"} }

// keptAndMarked makes the Machine one that is preserved and marked for deletion.
func keptAndMarked(m *Machine) {
	marked(m)
	asks(preserveNow)(m)
	preservedFor(preserveNow, time.Hour)(m)
}

func TestAMarkedMachineThatIsPreservedCountsAsGone(t *testing.T) {
	marked := func(m *Machine) { annotated(machinev1alpha1.AnnotationDeleteMachine, "now")(m) }
	over := func(m *Machine) {
		keptAndMarked(m)
		preservedFor(preserveNow, 0)(m)
	}
	unmarked := func(m *Machine) { preservedFor(preserveNow, time.Hour)(m) }
	selected := func(m *Machine) { m.Labels = map[string]string{"pool": "a", "app": "web"} }
	cases := map[string]struct {
		set                *machinev1alpha1.MachineSet
		machines           []Machine
		setAside, dropping []string
		deletes            []string
		replicas           int32
		created            int64
		events             []string
	}{
		"NoOtherIsDeletedForIt": {
			set: set(1), machines: []Machine{machine("a", failed, keptAndMarked), machine("b", running)},
			setAside: []string{"a"}, replicas: 1, events: []string{"SetAsideMachine"},
		},
		"NotBeforeReplicasAreLowered": {
			set: set(2), machines: []Machine{machine("a", failed, keptAndMarked), machine("b", running)}, replicas: 2,
		},
		"AMarkedOneThatIsNotPreservedGoesFirst": {
			set: set(1), machines: []Machine{machine("a", failed, keptAndMarked), machine("b", running, marked)},
			dropping: []string{"b"}, replicas: 1, events: []string{"DeletedMachine"},
		},
		"AndThenItIsSetAside": {
			set: set(0), machines: []Machine{machine("a", failed, keptAndMarked), machine("b", running, marked)},
			setAside: []string{"a"}, dropping: []string{"b"}, events: []string{"SetAsideMachine", "DeletedMachine"},
		},
		"ARunningOneToo": {
			set: set(1), machines: []Machine{machine("a", running, keptAndMarked), machine("b", running)},
			setAside: []string{"a"}, replicas: 1, events: []string{"SetAsideMachine"},
		},
		"OthersAreDeletedIfReplicasAreLoweredFurther": {
			set: set(1), machines: []Machine{machine("a", failed, keptAndMarked), machine("b", running), machine("c", running)},
			setAside: []string{"a"}, dropping: []string{"b"}, replicas: 1, events: []string{"SetAsideMachine", "DeletedMachine"},
		},
		"ItStaysSetAside": {
			set: set(1, setAside("a")), machines: []Machine{machine("a", failed, keptAndMarked, hidden), machine("b", running)},
			setAside: []string{"a"}, replicas: 1,
		},
		"ItDoesNotCountWhenReplicasAreRaised": {
			set: set(2, setAside("a")), machines: []Machine{machine("a", failed, keptAndMarked, hidden), machine("b", running)},
			setAside: []string{"a"}, replicas: 2, created: 1, events: []string{"CreatedMachine"},
		},
		"ItIsDeletedWhenItIsPreservedNoLonger": {
			set: set(1, setAside("a")), machines: []Machine{machine("a", failed, over, hidden), machine("b", running)},
			setAside: []string{"a"}, dropping: []string{"a"}, replicas: 1, events: []string{"DeletedMachine"},
		},
		"ItIsRecordedUntilItIsGoneBecauseTheSelectorDoesNotFindIt": {
			set: set(1, setAside("a"), func(s *machinev1alpha1.MachineSet) { s.Status.Dropping = []string{"a"} }), machines: []Machine{machine("a", failed, over, hidden), machine("b", running)},
			setAside: []string{"a"}, dropping: []string{"a"}, replicas: 1, deletes: []string{"a"},
		},
		"BesideOneThatStaysSetAside": {
			set: set(1, setAside("a", "c"), dropping("a")), machines: []Machine{machine("a", failed, over, hidden), machine("b", running), machine("c", failed, keptAndMarked, hidden)},
			setAside: []string{"a", "c"}, dropping: []string{"a"}, replicas: 1, deletes: []string{"a"},
		},
		"WithoutItsMarkItStaysUntilTheSelectorMatchesIt": {
			set: set(1, setAside("a")), machines: []Machine{machine("a", failed, unmarked, hidden), machine("b", running)},
			setAside: []string{"a"}, replicas: 1,
		},
		"AndThenItCounts": {
			set: set(2, setAside("a")), machines: []Machine{machine("a", failed, unmarked, selected), machine("b", running)}, replicas: 2,
		},
		"OneThatIsGoneIsForgotten": {
			set: set(1, setAside("a")), machines: []Machine{machine("b", running)}, replicas: 1,
		},
		"TheExtraReplicaOfAMarkedMachineThatIsReplacedGoesWithIt": {
			set: set(2, createFirst, budget("3", "100%"), replacing("a", "ra", "b", "rb")),
			machines: []Machine{
				machine("a", running, worked, unwanted, marked), machine("ra", joining, worked), machine("b", running, worked, unwanted, marked), machine("rb", joining, worked),
				machine("c", failed, worked, keptAndMarked),
			},
			setAside: []string{"c"}, dropping: []string{"a", "b"}, replicas: 2, created: 2, events: []string{"SetAsideMachine", "DeletedMachine"},
		},
		"NotWithAnother": {
			set: set(4, createFirst, budget("3", "100%"), replacing("a", "ra", "b", "rb")),
			machines: []Machine{
				machine("a", running, worked, unwanted), machine("ra", joining, worked), machine("b", running, worked, unwanted), machine("rb", joining, worked),
				machine("c", failed, worked, keptAndMarked), machine("d", running, worked, marked), machine("e", running, worked, marked),
			},
			dropping: []string{"d", "e"}, replicas: 5, created: 3, events: []string{"DeletedMachine", "ReplacingMachine"},
		},
		"NoMoreAreSetAsideThanAreTooMany": {
			set:      set(2),
			machines: []Machine{machine("a", failed, keptAndMarked), machine("b", failed, keptAndMarked), machine("c", running)},
			setAside: []string{"a"}, replicas: 2, events: []string{"SetAsideMachine"},
		},
		"AndOfAMarkedPairOnce": {
			set: set(2, createFirst, budget("3", "100%"), replacing("a", "ra", "b", "rb")),
			machines: []Machine{
				machine("a", running, worked, unwanted, marked), machine("ra", joining, worked, marked), machine("b", running, worked, unwanted), machine("rb", joining, worked),
				machine("c", failed, worked, keptAndMarked),
			},
			setAside: []string{"c"}, dropping: []string{"ra", "a"}, replicas: 2, created: 3, events: []string{"SetAsideMachine", "DeletedMachine", "ReplacingMachine"},
		},
		"AReplacementThatIsSetAsideReplacesNoneAnyMore": {
			set: set(1, createFirst, budget("3", "100%"), replacing("ra", nth(100), "rb", nth(101))),
			machines: []Machine{
				machine("ra", running, worked, unwanted), machine("rb", running, worked, unwanted), machine(nth(100), running, worked, keptAndMarked), machine(nth(101), joining, worked),
			},
			setAside: []string{nth(100)}, dropping: []string{nth(101), "ra"}, replicas: 1, created: 3, events: []string{"SetAsideMachine", "DeletedMachine", "ReplacingMachine"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines})
			got := []any{d.Status.SetAside, d.Status.Dropping, d.Delete, d.Status.Replicas, d.Status.Created - 100, reasons(d)}
			if diff := cmp.Diff([]any{tc.setAside, tc.dropping, tc.deletes, tc.replicas, tc.created, tc.events}, got, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAReplacementThatFailedAndIsPreservedIsSetAside with the order CreateFirst: another Machine replaces
// its Machine.
func TestAReplacementThatFailedAndIsPreservedIsSetAside(t *testing.T) {
	type want struct {
		SetAside, Dropping []string
		Replacing          []machinev1alpha1.Replacement
		Replicas, Waiting  int32
		Event              string
	}
	pair := func(machine, by string) machinev1alpha1.Replacement {
		return machinev1alpha1.Replacement{Machine: machine, By: by}
	}
	next := names.Machine("set", "uid-of-set", 101)
	old := machine("a", running, worked, unwanted)
	other := machine("b", running, worked)
	broken := func(options ...machineOption) Machine {
		return machine("by", failed, append([]machineOption{withVM, func(m *Machine) { m.Labels = map[string]string{"pool": "a", "app": "web"} }, failedWith(machinev1alpha1.FailureJoinTimeout, "", "no Node")}, options...)...)
	}
	failedMark := annotated(machinev1alpha1.AnnotationDeleteMachine, "failed-replacement")
	for name, tc := range map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		want     want
	}{
		"ItIsSetAside": {
			set(2, createFirst, budget("1", "100%"), replacing("a", "by")), []Machine{old, other, broken(kept)},
			want{SetAside: []string{"by"}, Replacing: []machinev1alpha1.Replacement{pair("a", "by")}, Replicas: 2, Event: "SetAsideMachine"},
		},
		"WithoutPreservationItIsReplaced": {
			set(2, createFirst, budget("1", "100%"), replacing("a", "by")), []Machine{old, other, broken()},
			want{Dropping: []string{"by"}, Replicas: 2, Waiting: 1, Event: "BackingOff ReplacingMachine"},
		},
		"UntilItShowsItsMarkNoOtherIsCreated": {
			set(2, createFirst, budget("1", "100%"), replacing("a", "by"), setAside("by")), []Machine{old, other, broken(kept)},
			want{SetAside: []string{"by"}, Replacing: []machinev1alpha1.Replacement{pair("a", "by")}, Replicas: 2},
		},
		"ThenAnotherIsCreated": {
			set(2, createFirst, budget("1", "100%"), replacing("a", "by"), setAside("by")), []Machine{old, other, broken(kept, failedMark)},
			want{SetAside: []string{"by"}, Replacing: []machinev1alpha1.Replacement{pair("a", next)}, Replicas: 2, Event: "ReplacingMachine"},
		},
		"AsManyAreSetAsideAsMayBeInFlight": {
			set(2, createFirst, budget("1", "100%"), replacing("a", "by"), setAside("c")),
			[]Machine{old, other, broken(kept), machine("c", failed, withVM, kept, failedMark)},
			want{SetAside: []string{"c"}, Replacing: []machinev1alpha1.Replacement{pair("a", "by")}, Replicas: 3},
		},
		"AndOneMoreIfOneMoreMayBe": {
			set(2, createFirst, budget("2", "100%"), replacing("a", "by"), setAside("c")),
			[]Machine{old, other, broken(kept), machine("c", failed, withVM, kept, failedMark)},
			want{SetAside: []string{"by", "c"}, Replacing: []machinev1alpha1.Replacement{pair("a", "by")}, Replicas: 2, Event: "SetAsideMachine"},
		},
		"ItIsDeletedWhenItIsPreservedNoLonger": {
			set(2, createFirst, budget("1", "100%"), setAside("by")), []Machine{other, machine("d", running, worked), broken(failedMark)},
			want{SetAside: []string{"by"}, Dropping: []string{"by"}, Replicas: 2, Event: "DeletedMachine"},
		},
		"AlsoBeforeItShowsItsMark": {
			set(2, createFirst, budget("1", "100%"), replacing("a", "by"), setAside("by")), []Machine{old, other, broken()},
			want{SetAside: []string{"by"}, Dropping: []string{"by"}, Replacing: []machinev1alpha1.Replacement{pair("a", next)}, Replicas: 2, Event: "DeletedMachine ReplacingMachine"},
		},
		"AnotherWhoseMarkAUserRemovedCountsAgain": {
			set(2, createFirst, budget("1", "100%"), replacing("a", "by"), setAside("by", "c")),
			[]Machine{old, broken(kept), machine("c", running, worked, func(m *Machine) { m.Labels = map[string]string{"pool": "a", "app": "web"} })},
			want{SetAside: []string{"by"}, Replacing: []machinev1alpha1.Replacement{pair("a", "by")}, Replicas: 2},
		},
		"ASetThatCreatesNoneKeepsItAsideToo": {
			set(2, createFirst, budget("0", "100%"), createsNone, replacing("a", "by"), setAside("by")), []Machine{old, other, broken(kept)},
			want{SetAside: []string{"by"}, Replacing: []machinev1alpha1.Replacement{pair("a", "by")}, Replicas: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines})
			got := want{SetAside: d.Status.SetAside, Dropping: d.Status.Dropping, Replacing: d.Status.Replacing, Replicas: d.Status.Replicas,
				Waiting: d.Status.ReplaceableReplicas, Event: strings.Join(reasons(d), " ")}
			if diff := cmp.Diff(tc.want, got, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAReplacementThatIsSetAsideIsMarkedByItsSet, and hidden from the cluster-autoscaler. The set does not
// change the mark of another client.
func TestAReplacementThatIsSetAsideIsMarkedByItsSet(t *testing.T) {
	mark := func(value string) machineOption {
		return annotated(machinev1alpha1.AnnotationDeleteMachine, value)
	}
	for name, tc := range map[string]struct {
		set  *machinev1alpha1.MachineSet
		is   machineOption
		want string
	}{
		"NotBeforeTheDecisionIsRecorded": {set(1, createFirst, replacing("b", "a")), kept, ""},
		"OnceItIsRecorded":               {set(1, createFirst, replacing("b", "a"), setAside("a")), kept, "failed-replacement"},
		"AndFromThenOn":                  {set(1, createFirst, setAside("a")), mark("failed-replacement"), "failed-replacement"},
		"NotInPlaceOfTheAutoscaler":      {set(1, createFirst, setAside("a")), mark("2026-01-01"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: []Machine{machine("a", failed, withVM, kept, tc.is), machine("b", running, worked, unwanted)}})
			for _, m := range d.Machines {
				if m.Name != "a" {
					continue
				}
				_, seen := m.Labels["pool"]
				if got := m.Annotations[machinev1alpha1.AnnotationDeleteMachine]; got != tc.want || seen != (name == "NotBeforeTheDecisionIsRecorded") {
					t.Errorf("the mark is %q, want %q; the selector matches it: %t", got, tc.want, seen)
				}
			}
		})
	}
}

// TestTheAutoscalerDoesNotSeeWhatIsSetAside: a Machine loses the labels of the selector once the decision
// is recorded, and gets them back when its mark is removed.
func TestTheAutoscalerDoesNotSeeWhatIsSetAside(t *testing.T) {
	for name, tc := range map[string]struct {
		set   *machinev1alpha1.MachineSet
		is    machineOption
		wants bool
	}{
		"NotYetRecorded": {set(1), keptAndMarked, true},
		"Recorded":       {set(1, setAside("a")), keptAndMarked, false},
		"Unmarked":       {set(1, setAside("a")), preservedFor(preserveNow, time.Hour), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: []Machine{machine("a", failed, tc.is, hidden), machine("b", running)}})
			for _, m := range d.Machines {
				if m.Name != "a" {
					continue
				}
				if _, has := m.Labels["pool"]; has != tc.wants || m.Labels[machinev1alpha1.LabelSet] != "set" {
					t.Errorf("labels %v", m.Labels)
				}
			}
		})
	}
}

func TestASetPreservesFailedMachinesByItself(t *testing.T) {
	auto := func(m *Machine) {
		asks(preserveAuto)(m)
		preservedFor(preserveAuto, time.Hour)(m)
	}
	broken := func(name string, hours int, options ...machineOption) Machine {
		return machine(name, failed, append([]machineOption{withVM, age(time.Duration(hours) * time.Hour)}, options...)...)
	}
	cases := map[string]struct {
		most     int32
		machines []Machine
		want     []string
	}{
		"TheNewest":                    {1, []Machine{broken("a", 2), broken("b", 1), broken("c", 3)}, []string{"b"}},
		"AsManyAsItMay":                {2, []Machine{broken("a", 2), broken("b", 1), broken("c", 3)}, []string{"a", "b"}},
		"NoneByDefault":                {0, []Machine{broken("a", 2)}, nil},
		"NotInPlaceOfOneThatItHas":     {1, []Machine{broken("a", 2, auto), broken("b", 1)}, []string{"a"}},
		"TheOldestIsDroppedForLess":    {1, []Machine{broken("a", 2, auto), broken("b", 1, auto)}, []string{"b"}},
		"AllAreDroppedForNone":         {0, []Machine{broken("a", 2, auto), broken("b", 1, auto)}, nil},
		"NotThoseThatSomebodySpokeFor": {3, []Machine{broken("a", 2, asks(preserveFalse)), broken("b", 1, asks(preserveNow)), broken("c", 1, nodeAsks(preserveFalse))}, nil},
		"NotOneWhoseNodeSaysOtherwise": {1, []Machine{broken("a", 2, asks(preserveAuto), nodeAsks(preserveFalse))}, nil},
		"NotOneThatRuns":               {1, []Machine{machine("a", running)}, nil},
		"NotOneWithoutAVM":             {1, []Machine{machine("a", failed)}, nil},
		"NotOneWhoseVMIsLost":          {1, []Machine{broken("a", 1, failedWith(machinev1alpha1.FailureVMLost, "", "gone"))}, nil},
		"OneThatIsOverKeepsItsValueAndNoPlace": {
			1, []Machine{broken("a", 2, asks(preserveAuto), preservedFor(preserveAuto, 0)), broken("b", 3)}, []string{"a", "b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: set(int32(len(tc.machines)), autoPreserve(tc.most)), Machines: tc.machines, Safety: frozen})
			var got []string
			for _, m := range d.Machines {
				if m.Annotations[machinev1alpha1.AnnotationPreserve] == preserveAuto {
					got = append(got, m.Name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAutoPreservationIsBoundedAndStays lets Machines fail in any order: the set preserves as many as it
// may, and never exchanges one for another.
func TestAutoPreservationIsBoundedAndStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(0, 4).Draw(t, "most")
		n := rapid.IntRange(1, 10).Draw(t, "machines")
		w := &world{now: now, set: set(int32(n), autoPreserve(int32(most)))}
		for i := range n {
			w.ms = append(w.ms, machine(fmt.Sprintf("m%02d", i), running, withVM, withNode))
		}
		has := map[string]bool{}
		for range 30 {
			if i := rapid.IntRange(0, len(w.ms)-1).Draw(t, "machine"); w.ms[i].Status.Phase == running {
				w.ms[i].Status.Phase, w.ms[i].Status.ReadySince = failed, nil
			}
			w.reconcile()
			now := map[string]bool{}
			for i := range w.ms {
				m := &w.ms[i]
				if preserveOf(*m) == preserveAuto {
					now[m.Name] = true
					preservedFor(preserveAuto, time.Hour)(m)
				}
				if !isFailed(*m) {
					m.Status.Phase = running
					withVM(m)
				}
			}
			for name := range has {
				if !now[name] {
					t.Fatalf("%s is no longer preserved", name)
				}
			}
			if has = now; len(has) > most {
				t.Fatalf("%d are preserved, of at most %d", len(has), most)
			}
		}
	})
}
