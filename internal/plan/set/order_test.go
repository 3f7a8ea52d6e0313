package set

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	random = machinev1alpha1.DeleteRandom
	newest = machinev1alpha1.DeleteNewest
	oldest = machinev1alpha1.DeleteOldest
)

func order(o machinev1alpha1.DeletionOrder) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Spec.Deletion.Order = o }
}

func annotated(key, value string) machineOption {
	return func(m *Machine) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[key] = value
	}
}

func cost(value string) machineOption {
	return annotated(machinev1alpha1.AnnotationDeletionCost, value)
}

func outdated(m *Machine) { m.Spec.Version = "v1.34.0" }

func days(n float64) machineOption { return age(time.Duration(n * 24 * float64(time.Hour))) }

// TestWhoGoesFirst scales sets down and compares the deleted Machines.
func TestWhoGoesFirst(t *testing.T) {
	young, middle, old := machine("young", running, days(1)), machine("middle", running, days(5)), machine("old", running, days(10))
	must := machine("must", running, days(7), terminating)

	cases := map[string]struct {
		order    machinev1alpha1.DeletionOrder
		replicas int32
		minReady int32
		machines []Machine
		want     []string
	}{
		"NobodyGoesWhenNothingIsTooMuch":             {newest, 3, 0, []Machine{young, middle, old}, nil},
		"NobodyGoesWhenThereAreFewer":                {newest, 5, 0, []Machine{young, middle, old}, nil},
		"AllGoWhenNoneIsWanted":                      {newest, 0, 0, []Machine{young, middle, old}, []string{"young", "middle", "old"}},
		"WhatIsTerminatingIsGoneAlready":             {newest, 3, 0, []Machine{must, young, middle, old}, nil},
		"WhatIsTerminatingIsNotCountedAsOneThatGoes": {newest, 2, 0, []Machine{must, young, middle, old}, []string{"young"}},

		"NewestTakesTheYoungest":              {newest, 2, 0, []Machine{old, young, middle}, []string{"young"}},
		"NewestTakesTheTwoYoungest":           {newest, 1, 0, []Machine{old, young, middle}, []string{"young", "middle"}},
		"WithoutAnOrderTheYoungestGoes":       {"", 2, 0, []Machine{old, young, middle}, []string{"young"}},
		"OldestTakesTheOldest":                {oldest, 2, 0, []Machine{young, old, middle}, []string{"old"}},
		"OldestTakesTheTwoOldest":             {oldest, 1, 0, []Machine{young, old, middle}, []string{"old", "middle"}},
		"NewestTakesTheFirstNameOfTwoTwins":   {newest, 1, 0, []Machine{machine("b", running), machine("a", running)}, []string{"a"}},
		"OldestTakesTheFirstNameOfTwoTwins":   {oldest, 1, 0, []Machine{machine("b", running), machine("a", running)}, []string{"a"}},
		"AgeToTheSecondDecidesNotToTheMinute": {oldest, 1, 0, []Machine{machine("a", running, age(time.Minute)), machine("b", running, age(61*time.Second))}, []string{"b"}},

		"NewestTakesAMarkedOneFirst": {newest, 2, 0, []Machine{young, middle, machine("old", running, days(10), marked)}, []string{"old"}},
		"OldestTakesAMarkedOneFirst": {oldest, 2, 0, []Machine{machine("young", running, days(1), marked), middle, old}, []string{"young"}},
		"RandomTakesAMarkedOneFirst": {random, 2, 0, []Machine{young, machine("middle", running, marked), old}, []string{"middle"}},
		"TheValueOfTheMarkDoesNotMatter": {
			newest, 1, 0,
			[]Machine{young, machine("old", running, annotated(machinev1alpha1.AnnotationDeleteMachine, ""))},
			[]string{"old"},
		},
		"ExactlyTheMarkedOnesGo": {
			newest, 2, 0,
			[]Machine{young, machine("m1", running, marked), middle, machine("m2", running, marked)},
			[]string{"m1", "m2"},
		},
		"MarkedOnesGoBeforeFailedOnes":           {newest, 1, 0, []Machine{machine("a", running, marked), machine("b", failed)}, []string{"a"}},
		"MarkedOnesGoBeforeCheapOnes":            {newest, 1, 0, []Machine{machine("a", running, marked), machine("b", running, cost("-9"))}, []string{"a"}},
		"OfMarkedOnesThoseInTroubleGoFirst":      {newest, 1, 0, []Machine{machine("a", running, marked), machine("b", unknown, marked)}, []string{"b"}},
		"OfMarkedOnesTheOrderDecidesInTheEnd":    {oldest, 1, 0, []Machine{machine("a", running, days(1), marked), machine("b", running, days(2), marked)}, []string{"b"}},
		"WhenMoreGoThanAreMarkedTheOthersFollow": {newest, 1, 0, []Machine{young, middle, machine("old", running, days(10), marked)}, []string{"old", "young"}},

		"OneThatTheSetKeptByItselfGoesBeforeOneThatAUserKeeps": {
			newest, 1, 0,
			[]Machine{machine("a", failed, preservedFor(preserveNow, time.Hour)), machine("b", failed, asks(preserveAuto), preservedFor(preserveAuto, 2*time.Hour))},
			[]string{"b"},
		},
		"ALowerCostGoesFirst":               {newest, 1, 0, []Machine{young, machine("old", running, days(10), cost("-1"))}, []string{"old"}},
		"AHigherCostGoesLast":               {newest, 1, 0, []Machine{machine("young", running, days(1), cost("1")), old}, []string{"old"}},
		"CostsAreNumbersNotText":            {newest, 1, 0, []Machine{machine("a", running, cost("9")), machine("b", running, cost("10"))}, []string{"a"}},
		"NoCostIsAsGoodAsZero":              {oldest, 1, 0, []Machine{machine("a", running, days(1), cost("0")), machine("b", running, days(2))}, []string{"b"}},
		"AnUnreadableCostIsAsGoodAsZero":    {oldest, 1, 0, []Machine{machine("a", running, days(1), cost("much")), machine("b", running, days(2))}, []string{"b"}},
		"ACostThatIsTooLargeIsAsGoodAsZero": {oldest, 1, 0, []Machine{machine("a", running, days(2), cost("99999999999")), machine("b", running, days(1))}, []string{"a"}},
		"TroubleGoesBeforeCost":             {newest, 1, 0, []Machine{machine("a", running, cost("-1")), machine("b", unknown, cost("1"))}, []string{"b"}},
		"OfMachinesInTroubleTheCostDecides": {newest, 1, 0, []Machine{machine("a", unknown, days(1)), machine("b", unknown, days(2), cost("-1"))}, []string{"b"}},
		"CostGoesBeforeBeingOutdated":       {newest, 1, 0, []Machine{machine("a", running, outdated), machine("b", running, cost("-1"))}, []string{"b"}},

		"NewestTakesAFailedOneFirst":               {newest, 1, 0, []Machine{young, machine("old", failed, days(10))}, []string{"old"}},
		"OldestTakesAFailedOneFirst":               {oldest, 1, 0, []Machine{machine("young", failed, days(1)), old}, []string{"young"}},
		"RandomTakesAFailedOneFirst":               {random, 2, 0, []Machine{young, machine("middle", failed), old}, []string{"middle"}},
		"AFailedOneGoesBeforeOneWithoutAPhase":     {newest, 1, 0, []Machine{machine("a", ""), machine("b", failed)}, []string{"b"}},
		"OneWithoutAPhaseIsPending":                {oldest, 1, 0, []Machine{machine("a", "", days(1)), machine("b", pending, days(2))}, []string{"b"}},
		"APendingOneGoesBeforeAProvisioningOne":    {newest, 1, 0, []Machine{machine("a", provisioning), machine("b", pending)}, []string{"b"}},
		"AProvisioningOneGoesBeforeAJoiningOne":    {newest, 1, 0, []Machine{machine("a", joining), machine("b", provisioning)}, []string{"b"}},
		"AJoiningOneGoesBeforeAnUnknownOne":        {newest, 1, 0, []Machine{machine("a", unknown), machine("b", joining)}, []string{"b"}},
		"AnUnknownOneGoesBeforeARunningOne":        {newest, 1, 0, []Machine{young, machine("old", unknown, days(10))}, []string{"old"}},
		"OneThatIsNotAvailableGoesBeforeOneThatIs": {newest, 1, 60, []Machine{young, machine("old", running, days(10), readyFor(time.Second))}, []string{"old"}},
		"OneThatIsToBeReplacedGoesBeforeOthers":    {newest, 1, 0, []Machine{young, machine("old", running, days(10), unwanted)}, []string{"old"}},
		"ButNotBeforeOneThatIsNotAvailable":        {newest, 1, 60, []Machine{machine("a", running, unwanted), machine("b", running, readyFor(time.Second))}, []string{"b"}},
		"AFailedUpdateGoesBeforeOneThatGoesOn":     {newest, 1, 0, []Machine{machine("a", running, reports("x", machinev1alpha1.UpdateDraining)), machine("b", running, reports("x", machinev1alpha1.UpdateFailed))}, []string{"b"}},
		"AnUpdateGoesBeforeOneThatIsNotReady":      {newest, 1, 0, []Machine{machine("a", running, func(m *Machine) { m.Status.ReadySince = nil }), machine("b", running, reports("x", machinev1alpha1.UpdateDraining))}, []string{"b"}},

		"OutdatedOnesGoBeforeUpdatedOnes":      {newest, 1, 0, []Machine{young, machine("old", running, days(10), outdated)}, []string{"old"}},
		"TroubleGoesBeforeBeingOutdated":       {newest, 1, 0, []Machine{machine("a", running, outdated), machine("b", unknown)}, []string{"b"}},
		"OfOutdatedOnesTheOrderDecides":        {oldest, 1, 0, []Machine{machine("a", running, days(1), outdated), machine("b", running, days(2), outdated)}, []string{"b"}},
		"ManyAreTakenInTheOrderOfTheirTrouble": {newest, 1, 0, []Machine{old, machine("c", unknown), machine("a", failed), machine("b", joining)}, []string{"a", "b", "c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(tc.replicas, order(tc.order), minReady(tc.minReady))
			d := Plan(now, Observed{Set: s, Machines: slices.Clone(tc.machines), Safety: frozen})
			if diff := cmp.Diff(tc.want, d.Status.Dropping, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRandomIsTheSameForTheSameInput(t *testing.T) {
	var ms []Machine
	for i := range 20 {
		ms = append(ms, machine(fmt.Sprintf("m%02d", i), running, days(float64(i))))
	}
	dropped := func(ms []Machine, options ...setOption) []string {
		return Plan(now, Observed{Set: set(10, append(options, order(random))...), Machines: slices.Clone(ms)}).Status.Dropping
	}
	first := dropped(ms)
	rapid.Check(t, func(t *rapid.T) {
		if diff := cmp.Diff(first, dropped(rapid.Permutation(ms).Draw(t, "order"))); diff != "" {
			t.Fatalf("another choice for the same Machines:\n%s", diff)
		}
	})
	other := dropped(ms, func(s *machinev1alpha1.MachineSet) { s.UID = "another" })
	if cmp.Equal(first, other) || slices.IsSorted(first) || slices.IsSorted(other) {
		t.Errorf("sets of other UIDs choose the same, or by name: %v, %v", first, other)
	}
}

func TestADeletionSaysWhyItIsThisMachine(t *testing.T) {
	cases := map[string]struct {
		set         *machinev1alpha1.MachineSet
		goes, stays Machine
		want        string
	}{
		"Marked":       {set(1), machine("a", running, marked), machine("b", running), "marked by the annotation machine.drover.dev/delete-machine"},
		"BothMarked":   {set(1), machine("a", running, marked, age(time.Minute)), machine("b", running, marked), "newest"},
		"Cost":         {set(1), machine("a", running, cost("-5")), machine("b", running), "deletion cost -5"},
		"NoCost":       {set(1), machine("a", running), machine("b", running, cost("7")), "deletion cost 0"},
		"Phase":        {set(1), machine("a", joining), machine("b", running), "not ready, phase Joining"},
		"NoPhase":      {set(1), machine("a", ""), machine("b", running), "not ready, phase Pending"},
		"Replaced":     {set(1), machine("a", running, unwanted), machine("b", running), "to be replaced"},
		"Updating":     {set(1), machine("a", running, reports("x", machinev1alpha1.UpdateDraining)), machine("b", running), "being updated"},
		"UpdateFailed": {set(1), machine("a", running, reports("x", machinev1alpha1.UpdateFailed)), machine("b", running), "its update failed"},
		"Preserved":    {set(1), machine("a", running), machine("b", running, preservedFor(preserveNow, time.Hour)), "not preserved"},
		"PreservedFor": {set(1), machine("a", running, preservedFor(preserveNow, time.Hour)), machine("b", running, preservedFor(preserveNow, 2*time.Hour)), "preserved for less long"},
		"NotAvailable": {set(1, minReady(60)), machine("a", running, readyFor(time.Second)), machine("b", running), "not ready for minReadySeconds"},
		"Outdated":     {set(1), machine("a", running, outdated), machine("b", running), "not of the current template"},
		"Newest":       {set(1), machine("a", running, days(1)), machine("b", running, days(2)), "newest"},
		"Oldest":       {set(1, order(oldest)), machine("a", running, days(2)), machine("b", running, days(1)), "oldest"},
		"Twins":        {set(1), machine("a", running), machine("b", running), "first by name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: []Machine{tc.goes, tc.stays}})
			want := fmt.Sprintf("Deleted Machine a (%s): there were 2 and 1 are wanted", tc.want)
			if len(d.Events) != 1 || d.Events[0].Message != want {
				t.Errorf("got %v, want %q", d.Events, want)
			}
		})
	}
	d := Plan(now, Observed{Set: set(1, order(random)), Machines: []Machine{machine("a", running), machine("b", running)}})
	if len(d.Events) != 1 || !strings.Contains(d.Events[0].Message, "(at random)") {
		t.Errorf("got %v", d.Events)
	}
}

func TestMarkedMachinesAreCounted(t *testing.T) {
	ms := []Machine{machine("a", running, marked), machine("b", failed, marked), machine("c", running), machine("d", running, marked, terminating)}
	if got := Plan(now, Observed{Set: set(3), Machines: ms, Safety: frozen}).Status.MarkedReplicas; got != 2 {
		t.Errorf("got %d", got)
	}
}

// TestAScaleDownSparesAvailableMachines holds for any set: no available Machine is deleted while an
// unavailable one stays, unless a user marks the former or preserves the latter.
func TestAScaleDownSparesAvailableMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := set(rapid.Int32Range(0, 10).Draw(t, "replicas"), minReady(60), order(rapid.SampledFrom([]machinev1alpha1.DeletionOrder{newest, oldest, random}).Draw(t, "order")))
		available := map[string]bool{}
		var ms []Machine
		for i := range 10 {
			phase := rapid.SampledFrom([]machinev1alpha1.MachinePhase{"", pending, provisioning, joining, running, running, running, unknown, failed}).Draw(t, "phase")
			m := machine(fmt.Sprintf("m%02d", i), phase, days(rapid.Float64Range(0, 9).Draw(t, "age")), cost(rapid.SampledFrom([]string{"-9", "0", "9"}).Draw(t, "cost")))
			if phase == running {
				readyFor(rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "ready for"))(&m)
			}
			for _, o := range rapid.SliceOfDistinct(rapid.IntRange(0, 2), rapid.ID).Draw(t, "options") {
				[]machineOption{outdated, unwanted, func(m *Machine) { m.Status.Update = &machinev1alpha1.UpdateStatus{State: machinev1alpha1.UpdateFailed} }}[o](&m)
			}
			available[m.Name] = phase == running && m.Status.Update == nil && now.Sub(m.Status.ReadySince.Time) >= time.Minute
			ms = append(ms, m)
		}
		// A frozen set deletes excess Machines, and nothing else.
		dropped := Plan(now, Observed{Set: s, Machines: ms, Safety: frozen}).Status.Dropping
		for _, d := range dropped {
			for name, is := range available {
				if available[d] && !is && !slices.Contains(dropped, name) {
					t.Fatalf("%s is deleted, which is available, and %s stays, which is not", d, name)
				}
			}
		}
	})
}

// TestARolloutDeletesAPreservedMachineLikeAnyOther: its MachineDeployment counts on the set to delete
// unavailable Machines first.
func TestARolloutDeletesAPreservedMachineLikeAnyOther(t *testing.T) {
	marks := func(key string) setOption {
		return func(s *machinev1alpha1.MachineSet) { s.Spec.NodeMarks.Taints = []machinev1alpha1.Taint{{Key: key}} }
	}
	for name, tc := range map[string]struct {
		set  *machinev1alpha1.MachineSet
		want string
	}{
		"AScaleDownTakesItLast":    {set(1), "b"},
		"ARolloutTakesItFirst":     {set(1, marks(machinev1alpha1.TaintOutdated)), "a"},
		"AnotherTaintIsNoRollout":  {set(1, marks("example.com/slow")), "b"},
		"AScaleToZeroTakesAllOfIt": {set(0), "b a"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: []Machine{machine("a", failed, worked, kept), machine("b", running)}})
			if got := strings.Join(d.Status.Dropping, " "); got != tc.want {
				t.Errorf("the set deletes %q, want %q", got, tc.want)
			}
		})
	}
}
