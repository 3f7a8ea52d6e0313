package set

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

// inPlace makes the set one that updates in place to v1.35.4 under the ID "new".
func inPlace(maxUnavailable int32, options ...func(*machinev1alpha1.MachineSetInPlaceUpdate)) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		s.Spec.InPlaceUpdate = &machinev1alpha1.MachineSetInPlaceUpdate{
			ID: "new", MaxUnavailable: maxUnavailable, Timeout: metav1.Duration{Duration: 20 * time.Minute},
		}
		for _, o := range options {
			o(s.Spec.InPlaceUpdate)
		}
	}
}

func manually(u *machinev1alpha1.MachineSetInPlaceUpdate) {
	u.Orchestration = machinev1alpha1.OrchestrationManual
}
func paused(u *machinev1alpha1.MachineSetInPlaceUpdate)    { u.Paused = true }
func withoutID(u *machinev1alpha1.MachineSetInPlaceUpdate) { u.ID = "" }

func updating(names ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Updating = names }
}

func labeled(key, value string) machineOption {
	return func(m *Machine) {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[key] = value
	}
}

// old makes the Machine one of an earlier template, and updatedTo one that was updated.
func old(m *Machine) {
	withNode(m)
	outdated(m)
	labeled(machinev1alpha1.LabelUpdatedTo, "old")(m)
}

func updatedTo(id string) machineOption { return labeled(machinev1alpha1.LabelUpdatedTo, id) }

// asked makes the Machine one whose spec has an update.
func asked(id string, selected bool) machineOption {
	return func(m *Machine) {
		m.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: id, Version: "v1.35.4", ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Selected: selected}
	}
}

func reports(id string, state machinev1alpha1.UpdateState) machineOption {
	return func(m *Machine) {
		m.Status.Update = &machinev1alpha1.UpdateStatus{ID: id, State: state}
		if state != machinev1alpha1.UpdateCandidate {
			m.Status.Phase, m.Status.ReadySince = machinev1alpha1.MachineUpdating, ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		}
	}
}

func requested(m *Machine) { m.Status.Update.Requested = true }

func composedAs(d Decision, name string) Desired {
	for _, m := range d.Machines {
		if m.Name == name {
			return m
		}
	}
	return Desired{}
}

func TestWhichMachinesAreSelectedForAnUpdate(t *testing.T) {
	const (
		candidate = machinev1alpha1.UpdateCandidate
		draining  = machinev1alpha1.UpdateDraining
		succeeded = machinev1alpha1.UpdateSucceeded
		broken    = machinev1alpha1.UpdateFailed
	)
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		noClass  bool
		safety   shared.Safety
		want     []string
	}{
		"AsManyAsMayBeUnavailable": {
			set:      set(3, inPlace(2)),
			machines: []Machine{machine("a", running, old), machine("b", running, old), machine("c", running, old)},
			want:     []string{"a", "b"},
		},
		"NoneWhenNoneMayBeUnavailable": {
			set:      set(2, inPlace(0)),
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
		},
		"OneAboveReplicasSparesOne": {
			set:      set(1, inPlace(0)),
			machines: []Machine{machine("a", running, old, marked), machine("b", running, old)},
		},
		"AnUnavailableOneOfAnyKindCounts": {
			set:      set(3, inPlace(1)),
			machines: []Machine{machine("a", running, old), machine("b", running, old), machine("c", joining, updatedTo("new"))},
		},
		"AMissingOneCounts": {
			set:      set(3, inPlace(1)),
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
		},
		"OneThatIsUnavailableAnywayCostsNothing": {
			set:      set(3, inPlace(1)),
			machines: []Machine{machine("a", running, old), machine("b", unknown, old), machine("c", running, old)},
			want:     []string{"b"},
		},
		"ThoseInTroubleGoFirst": {
			set:      set(3, inPlace(2)),
			machines: []Machine{machine("a", running, old), machine("b", unknown, old), machine("c", running, old)},
			want:     []string{"a", "b"},
		},
		"AMarkedOneThatIsAvailableHoldsNoneBackThatIsNot": {
			set:      set(3, inPlace(1)),
			machines: []Machine{machine("a", running, old, marked), machine("b", unknown, old), machine("c", running, old)},
			want:     []string{"b"},
		},
		"NoneWhileTooManyAreUnavailable": {
			set:      set(4, inPlace(1)),
			machines: []Machine{machine("a", running, old), machine("b", unknown, old), machine("c", unknown, old), machine("d", running, old)},
		},
		"WhatIsSelectedStaysSelected": {
			set:      set(2, inPlace(1), updating("b")),
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
			want:     []string{"b"},
		},
		"WhatWasReportedStaysSelectedThoughTheStatusForgotIt": {
			set:      set(2, inPlace(1)),
			machines: []Machine{machine("a", running, old), machine("b", running, old, asked("new", true), reports("new", draining))},
			want:     []string{"b"},
		},
		"AFailedUpdateBlocksTheNext": {
			set:      set(2, inPlace(1), updating("b")),
			machines: []Machine{machine("a", running, old), machine("b", running, old, asked("new", true), reports("new", broken))},
			want:     []string{"b"},
		},
		"OneThatSucceededIsNoLongerUpdated": {
			set:      set(3, inPlace(1), updating("b")),
			machines: []Machine{machine("a", running, old), machine("b", running, old, asked("new", true), reports("new", succeeded))},
		},
		"OneThatIsStillCordonedAfterItsUpdateCounts": {
			set:      set(2, inPlace(1)),
			machines: []Machine{machine("a", running, old), machine("b", running, updatedTo("new"), reports("new", succeeded))},
		},
		"TheNextFollowsOneThatIsBack": {
			set:      set(2, inPlace(1)),
			machines: []Machine{machine("a", running, old), machine("b", running, updatedTo("new"), withNode)},
			want:     []string{"a"},
		},
		"ASelectedOneThatIsGoneIsForgotten": {
			set:      set(2, inPlace(1), updating("x")),
			machines: []Machine{machine("a", running, updatedTo("new"), withNode), machine("b", running, updatedTo("new"), withNode)},
		},
		"WhilePausedNoneIsSelected": {
			set:      set(2, inPlace(1, paused)),
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
		},
		"WhilePausedWhatIsSelectedGoesOn": {
			set:      set(2, inPlace(1, paused), updating("a")),
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
			want:     []string{"a"},
		},
		"WhileFrozenNoneIsSelected": {
			set: set(2, inPlace(1)), safety: frozen,
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
		},
		"WithoutTheClassNoneIsSelected": {
			set: set(2, inPlace(1)), noClass: true,
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
		},
		"OneThatHasNotJoinedIsLeftToJoin": {
			set:      set(1, inPlace(1)),
			machines: []Machine{machine("a", joining, outdated)},
		},
		"ManuallyNoneIsSelectedByItself": {
			set:      set(2, inPlace(1, manually)),
			machines: []Machine{machine("a", running, old, reports("new", candidate)), machine("b", running, old, reports("new", candidate))},
		},
		"ManuallyTheOneIsWhoseNodeIsLabelled": {
			set:      set(2, inPlace(1, manually)),
			machines: []Machine{machine("a", running, old, reports("new", candidate)), machine("b", running, old, reports("new", candidate), requested)},
			want:     []string{"b"},
		},
		"ManuallyTheOneIsThatIsAnnotated": {
			set:      set(2, inPlace(1, manually)),
			machines: []Machine{machine("a", running, old), machine("b", running, old, annotated(machinev1alpha1.LabelUpdateSelected, "true"))},
			want:     []string{"b"},
		},
		"ManuallyTheOneIsThatIsAnnotatedWithTheUpdate": {
			set: set(2, inPlace(1, manually)),
			machines: []Machine{
				machine("a", running, old, annotated(machinev1alpha1.LabelUpdateSelected, "another")),
				machine("b", running, old, annotated(machinev1alpha1.LabelUpdateSelected, "new")),
			},
			want: []string{"b"},
		},
		"ManuallyWhatWasSelectedForAnotherUpdateIsNot": {
			set:      set(1, inPlace(1, manually)),
			machines: []Machine{machine("a", running, old, reports("earlier", candidate), requested)},
		},
		"ManuallyTheBoundHoldsToo": {
			set: set(2, inPlace(1, manually)),
			machines: []Machine{
				machine("a", running, old, annotated(machinev1alpha1.LabelUpdateSelected, "true")),
				machine("b", running, old, annotated(machinev1alpha1.LabelUpdateSelected, "true")),
			},
			want: []string{"a"},
		},
		"AnotherIDIsAnUpdateThoughTheVersionIsTheSame": {
			set:      set(1, inPlace(1)),
			machines: []Machine{machine("a", running, withNode, updatedTo("old"))},
			want:     []string{"a"},
		},
		"AMachineWithoutALabelHasTheTemplateOfItsSet": {
			set:      set(1, inPlace(1)),
			machines: []Machine{machine("a", running, withNode, labeled(machinev1alpha1.LabelTemplateHash, "new"))},
		},
		"WithoutAnIDTheVersionDecides": {
			set:      set(2, inPlace(2, withoutID)),
			machines: []Machine{machine("a", running, withNode), machine("b", running, withNode, outdated)},
			want:     []string{"b"},
		},
		"OneThatBeganAnotherUpdateIsUpdatedBack": {
			set:      set(1, inPlace(1), updating("a")),
			machines: []Machine{machine("a", running, withNode, updatedTo("new"), asked("other", true), reports("other", draining))},
			want:     []string{"a"},
		},
		"OneThatWasOnlyACandidateOfAnotherUpdateIsNot": {
			set:      set(1, inPlace(1)),
			machines: []Machine{machine("a", running, withNode, updatedTo("new"), asked("other", false), reports("other", candidate))},
		},
		"ASetThatReplacesUpdatesNone": {
			set:      set(2),
			machines: []Machine{machine("a", running, old), machine("b", running, old)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Observed{Set: tc.set, Machines: tc.machines, Safety: tc.safety}
			if tc.noClass {
				o.Problem = noClass
			}
			d := Plan(now, o)
			if diff := cmp.Diff(tc.want, d.Status.Updating, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnUpdateIsWrittenToItsMachine(t *testing.T) {
	small := machinev1alpha1.ClassReference{Name: "small"}
	retry := "new-" + names.Hash("1")[:8]
	update := func(id string, selected bool) *machinev1alpha1.MachineUpdate {
		return &machinev1alpha1.MachineUpdate{ID: id, Version: "v1.35.4", ClassRef: small, Selected: selected, Timeout: metav1.Duration{Duration: 20 * time.Minute}}
	}
	cases := map[string]struct {
		set     *machinev1alpha1.MachineSet
		machine Machine
		want    *machinev1alpha1.MachineUpdate
		version string
		label   string
	}{
		"AsACandidateFirst":               {set(1, inPlace(0)), machine("a", running, old), update("new", false), "v1.34.0", "old"},
		"NotAsSelectedUntilThatIsWritten": {set(1, inPlace(1)), machine("a", running, old), update("new", false), "v1.34.0", "old"},
		"AsSelectedWhenItIsReadBack":      {set(1, inPlace(1), updating("a")), machine("a", running, old), update("new", true), "v1.34.0", "old"},
		"TheVersionFollowsTheAgentsSuccess": {
			set(1, inPlace(1), updating("a")), machine("a", running, old, asked("new", true), reports("new", machinev1alpha1.UpdateSucceeded)), nil, "v1.35.4", "new",
		},
		"NotTheSuccessOfAnother": {
			set(1, inPlace(1), updating("a")), machine("a", running, old, asked("other", true), reports("other", machinev1alpha1.UpdateSucceeded)), update("new", true), "v1.34.0", "old",
		},
		"AFailedOneStaysSelected": {
			set(1, inPlace(1), updating("a")), machine("a", running, old, asked("new", true), reports("new", machinev1alpha1.UpdateFailed)), update("new", true), "v1.34.0", "old",
		},
		"ARetryIsAnotherUpdate": {
			set(1, inPlace(1), updating("a")),
			machine("a", running, old, asked("new", true), reports("new", machinev1alpha1.UpdateFailed), annotated(machinev1alpha1.AnnotationUpdateRetry, "1")),
			update(retry, true), "v1.34.0", "old",
		},
		"ARetryThatSucceededIsTheUpdate": {
			set(1, inPlace(1), updating("a")),
			machine("a", running, old, asked(retry, true), reports(retry, machinev1alpha1.UpdateSucceeded), annotated(machinev1alpha1.AnnotationUpdateRetry, "1")),
			nil, "v1.35.4", "new",
		},
		"NothingWhenItIsUpToDate":        {set(1, inPlace(1)), machine("a", running, withNode, updatedTo("new")), nil, "v1.35.4", "new"},
		"NothingOfASetThatReplaces":      {set(1), machine("a", running, old, asked("new", false)), nil, "v1.34.0", "old"},
		"NothingWithoutALabelIfItHadOne": {set(1), machine("a", running), nil, "v1.35.4", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := composedAs(Plan(now, Observed{Set: tc.set, Machines: []Machine{tc.machine}}), "a")
			if diff := cmp.Diff(tc.want, m.Spec.InPlaceUpdate); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if m.Spec.Version != tc.version || m.Labels[machinev1alpha1.LabelUpdatedTo] != tc.label {
				t.Errorf("version %s, labels %v", m.Spec.Version, m.Labels)
			}
		})
	}

	t.Run("ANewMachineIsOfTheNewTemplate", func(t *testing.T) {
		d := Plan(now, Observed{Set: set(2, inPlace(1)), Machines: []Machine{machine("a", running, updatedTo("new"), withNode)}})
		m := composedAs(d, nth(100))
		if m.Spec.Version != "v1.35.4" || m.Spec.InPlaceUpdate != nil || m.Labels[machinev1alpha1.LabelUpdatedTo] != "new" {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("OneWithoutAVMIsMadeAnew", func(t *testing.T) {
		o := Observed{Set: set(1, inPlace(1)), Machines: []Machine{machine("a", provisioning, outdated)}}
		d := Plan(now, o)
		if !slices.Equal(d.Status.Dropping, []string{"a"}) || !slices.Equal(reasons(d), []string{"DeletedMachine"}) {
			t.Errorf("dropping %v, events %v", d.Status.Dropping, d.Events)
		}
		o.Safety = frozen
		if d := Plan(now, o); len(d.Status.Dropping) > 0 {
			t.Errorf("dropping %v, of which none may be created now", d.Status.Dropping)
		}
	})
}

func TestAMachineThatIsUpdatedIsNotAvailable(t *testing.T) {
	d := Plan(now, Observed{Set: set(4, inPlace(2), updating("b")), Machines: []Machine{
		machine("a", running, old),
		machine("b", running, old, asked("new", true), reports("new", machinev1alpha1.UpdateDraining)),
		machine("c", running, withNode, updatedTo("new")),
		machine("d", running, withNode, updatedTo("new")),
	}})
	s := d.Status
	// Machine a is selected now, and must no longer count as available.
	if s.Replicas != 4 || s.ReadyReplicas != 3 || s.AvailableReplicas != 2 || s.UpdatedReplicas != 2 || s.UpdatedAvailableReplicas != 2 {
		t.Errorf("got %+v", s)
	}
	if d.Ready || d.CallAgain != shared.Soonest || !slices.Equal(reasons(d), []string{"UpdatingMachine"}) {
		t.Errorf("ready %t, calls again after %s, events %v", d.Ready, d.CallAgain, d.Events)
	}
}

func TestASetSaysHowFarItsUpdatesAre(t *testing.T) {
	broken := func(m *Machine) {
		reports("new", machinev1alpha1.UpdateFailed)(m)
		m.Status.Update.Message = "no space left"
	}
	cases := map[string]struct {
		machine Machine
		reason  string
		message string
	}{
		"AllAreUpToDate": {machine("a", running, withNode, updatedTo("new")), "UpToDate", ""},
		"OneIsUpdated":   {machine("a", running, old, asked("new", true), reports("new", machinev1alpha1.UpdateDraining)), "Updating", ""},
		"OneFailed":      {machine("a", running, old, asked("new", true), broken), "UpdateFailed", "The update failed of Machine a (no space left)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: set(1, inPlace(1)), Machines: []Machine{tc.machine}})
			c := condition(d, machinev1alpha1.ConditionUpdated)
			if c.Reason != tc.reason || c.Message != tc.message || (c.Status == "True") != (tc.reason == "UpToDate") || d.Ready != (c.Status == "True") {
				t.Errorf("got %+v, ready %t", c, d.Ready)
			}
		})
	}
	if d := Plan(now, Observed{Set: set(1), Machines: []Machine{machine("a", running)}}); condition(d, machinev1alpha1.ConditionUpdated).Type != "" {
		t.Error("a set that replaces has the condition too")
	}
	failing := Plan(now, Observed{Set: set(1, inPlace(1), updating("a")), Machines: []Machine{machine("a", running, old, asked("new", true), broken)}})
	if failing.CallAgain != shared.AtRest {
		t.Errorf("a failed update is looked at again after %s", failing.CallAgain)
	}
}

// TestUpdatesInPlaceStayWithinTheirBoundAndEnd lets Machines go through their updates in any order, while
// some updates fail and some VMs are lost. As long as only updates make Machines unavailable, replicas -
// maxUnavailable Machines are available at any time.
func TestUpdatesInPlaceStayWithinTheirBoundAndEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "machines")
		unavailable := rapid.IntRange(1, n).Draw(t, "maxUnavailable")
		w := &world{now: now, set: set(int32(n), inPlace(int32(unavailable)))}
		for i := range n {
			w.ms = append(w.ms, machine(fmt.Sprintf("m%02d", i), running, old))
		}
		for range 40 * n {
			w.reconcile()
			i := rapid.IntRange(0, n-1).Draw(t, "machine")
			w.agent(i, rapid.Bool().Draw(t, "fails"))
			available := 0
			for _, m := range w.ms {
				if m.Status.Phase == running {
					available++
				}
			}
			if available < n-unavailable {
				t.Fatalf("%d of %d are available, of which %d may be missing", available, n, unavailable)
			}
		}
		for range 4 * n {
			for i := range n {
				w.reconcile()
				w.agent(i, false)
			}
		}
		if d := w.reconcile(); !d.Ready || d.Status.UpdatedReplicas != int32(n) || len(d.Status.Updating) > 0 {
			t.Fatalf("does not end: %+v", d.Status)
		}
	})
}

// agent takes the i-th Machine one step further in its update.
func (w *world) agent(i int, fails bool) {
	m := &w.ms[i]
	want := m.Spec.InPlaceUpdate
	switch u := m.Status.Update; {
	case want == nil:
		m.Status.Update, m.Status.Phase = nil, running
	case !want.Selected:
		m.Status.Update = &machinev1alpha1.UpdateStatus{ID: want.ID, State: machinev1alpha1.UpdateCandidate}
	case u == nil || u.State == machinev1alpha1.UpdateCandidate:
		reports(want.ID, machinev1alpha1.UpdateDraining)(m)
	case fails:
		u.State = machinev1alpha1.UpdateFailed
	default:
		u.State = machinev1alpha1.UpdateSucceeded
	}
}
