package set

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	pending      = machinev1alpha1.MachinePending
	provisioning = machinev1alpha1.MachineProvisioning
	joining      = machinev1alpha1.MachineJoining
	running      = machinev1alpha1.MachineRunning
	unknown      = machinev1alpha1.MachineUnknown
	failed       = machinev1alpha1.MachineFailed
)

var frozen = shared.Safety{Frozen: true}

// A setOption changes a MachineSet.
type setOption func(*machinev1alpha1.MachineSet)

func set(replicas int32, options ...setOption) *machinev1alpha1.MachineSet {
	s := &machinev1alpha1.MachineSet{}
	s.Name, s.Namespace, s.UID, s.Generation = "set", "default", "uid-of-set", 7
	s.Spec.Replicas = replicas
	s.Spec.Selector.MatchLabels = map[string]machinev1alpha1.LabelValue{"pool": "a", "app": "web"}
	s.Spec.Template.Metadata.Labels = map[string]machinev1alpha1.LabelValue{"pool": "a", "app": "web"}
	s.Spec.Template.Spec.ClassRef.Name = "small"
	s.Spec.Template.Spec.Version = "v1.35.4"
	s.Status.Created, s.Status.ObservedGeneration = 100, 7
	readyAt(7)(s)
	for _, o := range options {
		o(s)
	}
	return s
}

func dropping(names ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Dropping = names }
}

func created(n int64) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Created = n }
}

func minReady(seconds int32) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Spec.MinReadySeconds = seconds }
}

func createsNone(s *machinev1alpha1.MachineSet) {
	s.Spec.Creation = machinev1alpha1.CreationDisabled
}

// A machineOption changes a Machine.
type machineOption func(*Machine)

func machine(name string, phase machinev1alpha1.MachinePhase, options ...machineOption) Machine {
	m := Machine{Machine: &machinev1alpha1.Machine{}}
	m.Name, m.UID = name, types.UID("uid-of-"+name)
	m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	m.Spec.ClassRef.Name, m.Spec.Version = "small", "v1.35.4"
	m.Status.Phase = phase
	switch phase {
	case joining, running, unknown:
		m.Status.ProviderID = "local:///zone-a/" + name
	}
	if phase == running {
		m.Status.ReadySince = ptr.To(metav1.NewTime(now.Add(-30 * time.Minute)))
	}
	for _, o := range options {
		o(&m)
	}
	return m
}

func terminating(m *Machine) { m.Terminating = true }
func marked(m *Machine) {
	m.Annotations = map[string]string{machinev1alpha1.AnnotationDeleteMachine: "now"}
}

func age(d time.Duration) machineOption {
	return func(m *Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-d)) }
}

func readyFor(d time.Duration) machineOption {
	return func(m *Machine) { m.Status.ReadySince = ptr.To(metav1.NewTime(now.Add(-d))) }
}

func nth(n int64) string { return names.Machine("set", "uid-of-set", n) }

func composed(d Decision) []string {
	out := []string{}
	for _, m := range d.Machines {
		out = append(out, m.Name)
	}
	return out
}

func reasons(d Decision) []string {
	out := []string{}
	for _, e := range d.Events {
		out = append(out, e.Reason)
	}
	return out
}

func TestPlan(t *testing.T) {
	type want struct {
		Composed, Dropping, Events              []string
		Replicas, Ready, Available, Terminating int32
		Created                                 int64
		SetReady                                bool
		Again                                   time.Duration
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		noClass  bool
		safety   shared.Safety
		want     want
	}{
		"WhatIsMissingIsCreated": {
			set:      set(3, created(0)),
			machines: []Machine{machine("a", running), machine("b", running)},
			want: want{
				Composed: []string{"a", "b", nth(0)}, Events: []string{"CreatedMachine"},
				Replicas: 3, Ready: 2, Available: 2, Created: 1, Again: shared.InFlight,
			},
		},
		"NamesThatExistAreSkippedEvenWhenTheyAreTerminating": {
			set:      set(2, created(0)),
			machines: []Machine{machine(nth(0), running, terminating), machine(nth(1), running)},
			want: want{
				Composed: []string{nth(1), nth(2)}, Events: []string{"CreatedMachine"},
				Replicas: 2, Ready: 1, Available: 1, Terminating: 1, Created: 3, Again: shared.InFlight,
			},
		},
		"MachinesThatWereCreatedAndNotCountedAreCounted": {
			set:      set(2, created(5)),
			machines: []Machine{machine(nth(5), joining), machine(nth(6), joining)},
			want: want{
				Composed: []string{nth(5), nth(6)}, Events: []string{"CreatedMachine"},
				Replicas: 2, Created: 7, Again: shared.InFlight,
			},
		},
		"AtRestNothingHappens": {
			set:      set(2),
			machines: []Machine{machine("a", running), machine("b", running)},
			want: want{
				Composed: []string{"a", "b"},
				Replicas: 2, Ready: 2, Available: 2, Created: 100, SetReady: true, Again: shared.AtRest,
			},
		},
		"WhatIsTooMuchIsWrittenDownFirst": {
			set:      set(1),
			machines: []Machine{machine("a", running), machine("b", running, age(time.Minute))},
			want: want{
				Composed: []string{"a", "b"}, Dropping: []string{"b"}, Events: []string{"DeletedMachine"},
				Replicas: 1, Ready: 1, Available: 1, Terminating: 1, Created: 100, SetReady: true, Again: shared.Soonest,
			},
		},
		"WhatIsWrittenDownIsGivenUp": {
			set:      set(1, dropping("b")),
			machines: []Machine{machine("a", running), machine("b", running)},
			want: want{
				Composed: []string{"a"}, Dropping: []string{"b"},
				Replicas: 1, Ready: 1, Available: 1, Terminating: 1, Created: 100, SetReady: true, Again: shared.InFlight,
			},
		},
		"AViewThatLagsBehindGivesUpNoOtherMachine": {
			set:      set(1, dropping("b")),
			machines: []Machine{machine("a", unknown), machine("b", running)},
			want: want{
				Composed: []string{"a"}, Dropping: []string{"b"},
				Replicas: 1, Terminating: 1, Created: 100, Again: shared.InFlight,
			},
		},
		"WhatIsWrittenDownIsGivenUpEvenWhenMoreIsWantedMeanwhile": {
			set:      set(2, dropping("b")),
			machines: []Machine{machine("a", running), machine("b", running)},
			want: want{
				Composed: []string{"a", nth(100)}, Dropping: []string{"b"}, Events: []string{"CreatedMachine"},
				Replicas: 2, Ready: 1, Available: 1, Terminating: 1, Created: 101, Again: shared.InFlight,
			},
		},
		"WhatIsTerminatingIsNoLongerWrittenDownNorComposed": {
			set:      set(1, dropping("b", "c")),
			machines: []Machine{machine("a", running), machine("b", running, terminating)},
			want: want{
				Composed: []string{"a"},
				Replicas: 1, Ready: 1, Available: 1, Terminating: 1, Created: 100, SetReady: true, Again: shared.InFlight,
			},
		},
		"ScaleDownPrefersMarkedMachines": {
			set:      set(1),
			machines: []Machine{machine("a", running, marked), machine("b", unknown)},
			want: want{
				Composed: []string{"b", "a"}, Dropping: []string{"a"}, Events: []string{"DeletedMachine"},
				Replicas: 1, Terminating: 1, Created: 100, Again: shared.Soonest,
			},
		},
		"AMarkedMachineStaysAsLongAsNothingIsTooMuch": {
			set:      set(1),
			machines: []Machine{machine("a", running, marked)},
			want: want{
				Composed: []string{"a"},
				Replicas: 1, Ready: 1, Available: 1, Created: 100, SetReady: true, Again: shared.AtRest,
			},
		},
		"AFailedMachineIsReplacedByDroppingItFirst": {
			set:      set(2),
			machines: []Machine{machine("a", running), machine("b", failed)},
			want: want{
				Composed: []string{"a", "b"}, Dropping: []string{"b"}, Events: []string{"ReplacingMachine"},
				Replicas: 1, Ready: 1, Available: 1, Terminating: 1, Created: 100, Again: shared.Soonest,
			},
		},
		"AFailedMachineThatIsDroppedIsMissing": {
			set:      set(2, dropping("b")),
			machines: []Machine{machine("a", running), machine("b", failed)},
			want: want{
				Composed: []string{"a", nth(100)}, Dropping: []string{"b"}, Events: []string{"CreatedMachine"},
				Replicas: 2, Ready: 1, Available: 1, Terminating: 1, Created: 101, Again: shared.InFlight,
			},
		},
		"OneFailedMachineIsReplacedAtATime": {
			set:      set(3),
			machines: []Machine{machine("a", failed, worked), machine("b", failed, worked), machine("c", running)},
			want: want{
				Composed: []string{"b", "c", "a"}, Dropping: []string{"a"}, Events: []string{"ReplacingMachine"},
				Replicas: 2, Ready: 1, Available: 1, Terminating: 1, Created: 100, Again: shared.Soonest,
			},
		},
		"AllThatFailedBeforeTheyJoinedAreGivenUpThoughAnotherIsOnItsWay": {
			set:      set(3),
			machines: []Machine{machine("a", provisioning), machine("b", failed), machine("c", failed, withVM)},
			want: want{
				Composed: []string{"a", "b", "c"}, Dropping: []string{"b", "c"}, Events: []string{"ReplacingMachine"},
				Replicas: 1, Terminating: 2, Created: 100, Again: shared.Soonest,
			},
		},
		"NoMachineIsReplacedWhileAnotherIsOnItsWay": {
			set:      set(2),
			machines: []Machine{machine("a", provisioning), machine("b", failed, worked)},
			want:     want{Composed: []string{"a", "b"}, Replicas: 2, Created: 100, Again: shared.InFlight},
		},
		"AMachineWithoutAPhaseIsOnItsWay": {
			set:      set(2),
			machines: []Machine{machine("a", ""), machine("b", failed, worked)},
			want:     want{Composed: []string{"a", "b"}, Replicas: 2, Created: 100, Again: shared.InFlight},
		},
		"AnUnknownMachineIsNotReplaced": {
			set:      set(1),
			machines: []Machine{machine("a", unknown)},
			want:     want{Composed: []string{"a"}, Replicas: 1, Created: 100, Again: shared.InFlight},
		},
		"FrozenCreatesNothing": {
			set: set(2), safety: frozen,
			machines: []Machine{machine("a", running)},
			want:     want{Composed: []string{"a"}, Replicas: 1, Ready: 1, Available: 1, Created: 100, Again: shared.InFlight},
		},
		"FrozenReplacesNothing": {
			set: set(1), safety: frozen,
			machines: []Machine{machine("a", failed)},
			want:     want{Composed: []string{"a"}, Replicas: 1, Created: 100, Again: shared.InFlight},
		},
		"FrozenScalesDown": {
			set: set(0), safety: frozen,
			machines: []Machine{machine("a", running)},
			want: want{
				Composed: []string{"a"}, Dropping: []string{"a"}, Events: []string{"DeletedMachine"},
				Terminating: 1, Created: 100, SetReady: true, Again: shared.Soonest,
			},
		},
		"ASetThatCreatesNoneCreatesNone": {
			set:      set(3, createsNone),
			machines: []Machine{machine("a", running), machine("b", running)},
			want:     want{Composed: []string{"a", "b"}, Replicas: 2, Ready: 2, Available: 2, Created: 100, Again: shared.AtRest},
		},
		"ASetThatCreatesNoneGivesUpWhatFailedForAnotherToReplace": {
			set:      set(2, createsNone),
			machines: []Machine{machine("a", failed), machine("b", running)},
			want: want{
				Composed: []string{"b", "a"}, Dropping: []string{"a"}, Events: []string{"ReplacingMachine"},
				Replicas: 1, Ready: 1, Available: 1, Terminating: 1, Created: 100, Again: shared.Soonest,
			},
		},
		"ASetThatCreatesNoneGivesUpNoneWhileOneComesUp": {
			set:      set(2, createsNone),
			machines: []Machine{machine("a", failed), machine("b", provisioning)},
			want:     want{Composed: []string{"a", "b"}, Replicas: 2, Created: 100, Again: shared.InFlight},
		},
		"ASetThatCreatesNoneGivesUpOneAtATime": {
			set:      set(2, createsNone, dropping("a")),
			machines: []Machine{machine("a", failed), machine("b", failed)},
			want:     want{Composed: []string{"b"}, Dropping: []string{"a"}, Replicas: 1, Terminating: 1, Created: 100, Again: shared.InFlight},
		},
		"ASetThatCreatesNoneDoesNotReplaceWhatItGaveUp": {
			set:      set(2, createsNone, dropping("a")),
			machines: []Machine{machine("a", failed, terminating), machine("b", running)},
			want:     want{Composed: []string{"b"}, Replicas: 1, Ready: 1, Available: 1, Terminating: 1, Created: 100, Again: shared.InFlight},
		},
		"ASetThatCreatesNoneScalesDown": {
			set:      set(1, createsNone),
			machines: []Machine{machine("a", running), machine("b", running, age(time.Minute))},
			want: want{
				Composed: []string{"a", "b"}, Dropping: []string{"b"}, Events: []string{"DeletedMachine"},
				Replicas: 1, Ready: 1, Available: 1, Terminating: 1, Created: 100, SetReady: true, Again: shared.Soonest,
			},
		},
		"WithoutAClassNothingIsCreatedAndNothingIsTouched": {
			set: set(2), noClass: true,
			machines: []Machine{machine("a", running)},
			want: want{
				Composed: []string{"a"}, Events: []string{"ClassNotFound"},
				Replicas: 1, Ready: 1, Available: 1, Created: 100, Again: shared.InFlight,
			},
		},
		"WithoutAClassNothingIsReplaced": {
			set: set(1), noClass: true,
			machines: []Machine{machine("a", failed)},
			want:     want{Composed: []string{"a"}, Events: []string{"ClassNotFound"}, Replicas: 1, Created: 100, Again: shared.InFlight},
		},
		"AMachineIsAvailableAfterMinReadySeconds": {
			set:      set(2, minReady(60)),
			machines: []Machine{machine("a", running, readyFor(60*time.Second)), machine("b", running, readyFor(59*time.Second))},
			want: want{
				Composed: []string{"a", "b"},
				Replicas: 2, Ready: 2, Available: 1, Created: 100, SetReady: true, Again: time.Second,
			},
		},
		"ItCallsAgainWhenTheNextMachineBecomesAvailable": {
			set:      set(2, minReady(600)),
			machines: []Machine{machine("a", running, readyFor(time.Minute)), machine("b", running, readyFor(2*time.Minute))},
			want: want{
				Composed: []string{"a", "b"},
				Replicas: 2, Ready: 2, Created: 100, SetReady: true, Again: 8 * time.Minute,
			},
		},
		"ARunningMachineWithoutReadySinceIsNotReady": {
			set:      set(1),
			machines: []Machine{machine("a", running, func(m *Machine) { m.Status.ReadySince = nil })},
			want:     want{Composed: []string{"a"}, Replicas: 1, Created: 100, Again: shared.InFlight},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Observed{Set: tc.set, Machines: tc.machines, Safety: tc.safety}
			if tc.noClass {
				o.Problem = noClass
			}
			d := Plan(now, o)
			got := want{
				Composed: composed(d), Dropping: d.Status.Dropping, Events: reasons(d),
				Replicas: d.Status.Replicas, Ready: d.Status.ReadyReplicas, Available: d.Status.AvailableReplicas,
				Terminating: d.Status.TerminatingReplicas, Created: d.Status.Created,
				SetReady: d.Ready, Again: d.CallAgain,
			}
			if diff := cmp.Diff(tc.want, got, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.Status.ObservedGeneration != 7 || d.Status.DecidedGeneration != 7 || d.Status.Selector != "app=web,pool=a" {
				t.Errorf("observedGeneration %d, selector %q", d.Status.ObservedGeneration, d.Status.Selector)
			}
			if diff := cmp.Diff(d, Plan(now, o)); diff != "" {
				t.Errorf("the same view gave another decision:\n%s", diff)
			}
		})
	}
}

var equateEmpty = cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })

// noClass is the problem of a set whose class does not exist.
var noClass = &shared.Problem{
	Reason:  machinev1alpha1.ReasonClassNotFound,
	Message: `spec.template.spec.classRef.name: there is no MachineClass "small" in namespace "default"`,
}

func TestEvents(t *testing.T) {
	message := func(d Decision, reason string) string {
		for _, e := range d.Events {
			if e.Reason == reason {
				return e.Message
			}
		}
		return ""
	}
	failedToJoin := func(m *Machine) {
		m.Status.FailureReason, m.Status.FailureMessage = machinev1alpha1.FailureJoinTimeout, "no Node joined within 20m"
	}
	many := []Machine{}
	for i := range 13 {
		many = append(many, machine(fmt.Sprintf("m%02d", i), running))
	}
	cases := map[string]struct {
		o      Observed
		reason string
		want   string
	}{
		"ADeletionSaysWhyItIsThisMachine": {
			o:      Observed{Set: set(1), Machines: []Machine{machine("a", running), machine("b", joining)}},
			reason: "DeletedMachine",
			want:   "Deleted Machine b (not ready, phase Joining): there were 2 and 1 are wanted",
		},
		"AReplacementSaysWhatFailed": {
			o:      Observed{Set: set(1), Machines: []Machine{machine("a", failed, failedToJoin)}},
			reason: "ReplacingMachine",
			want:   "Replacing Machine a, which failed with JoinTimeout: no Node joined within 20m",
		},
		"AnUnknownClassNamesFieldAndValue": {
			o:      Observed{Set: set(1), Problem: noClass},
			reason: "ClassNotFound",
			want:   `spec.template.spec.classRef.name: there is no MachineClass "small" in namespace "default"; no Machines are created until that is mended`,
		},
		"TenMachinesAreNamed": {
			o:      Observed{Set: set(0), Machines: many[:10]},
			reason: "DeletedMachine",
			want:   "Deleted 10 Machines: m00, m01, m02, m03, m04, m05, m06, m07, m08, m09: there were 10 and 0 are wanted",
		},
		"ASelectionForAnUpdateNamesTheMachinesAndTheirTemplate": {
			o:      Observed{Set: set(3, inPlace(2)), Machines: []Machine{machine("a", running, old), machine("b", running, old), machine("c", running, old)}},
			reason: "UpdatingMachine",
			want:   `Selected 2 Machines: a, b for an update in place to version v1.35.4 of class "small"`,
		},
		"AnUpdateThatSucceededIsAnEvent": {
			o:      Observed{Set: set(1, inPlace(1), updating("a")), Machines: []Machine{machine("a", running, old, asked("new", true), reports("new", machinev1alpha1.UpdateSucceeded))}},
			reason: "UpdatedMachine",
			want:   `Updated Machine a in place to version v1.35.4 of class "small"`,
		},
		"Once": {
			o:      Observed{Set: set(1, inPlace(1)), Machines: []Machine{machine("a", running, old, asked("new", true), reports("new", machinev1alpha1.UpdateSucceeded))}},
			reason: "UpdatedMachine",
		},
		"AnUpdateThatIsTakenBackIsNone": {
			o:      Observed{Set: set(1, inPlace(1), updating("a")), Machines: []Machine{machine("a", running, withNode, updatedTo("new"))}},
			reason: "UpdatedMachine",
		},
		"AMachineThatIsMadeAnewIsNamed": {
			o:      Observed{Set: set(1, inPlace(1)), Machines: []Machine{machine("a", provisioning, outdated)}},
			reason: "DeletedMachine",
			want:   "Deleted Machine a, made from an earlier template and without a VM yet",
		},
		"AMachineThatIsSetAsideSaysUntilWhen": {
			o:      Observed{Set: set(1), Machines: []Machine{machine("a", failed, keptAndMarked), machine("b", running)}},
			reason: "SetAsideMachine",
			want:   "Set aside Machine a: machine.drover.dev/delete-machine marks it for deletion, and machine.drover.dev/preserve keeps it until 2026-01-01T13:00:00Z; it does not count as a replica",
		},
		"AsFarAsItKnows": {
			o:      Observed{Set: set(1), Machines: []Machine{machine("a", failed, marked, annotated(machinev1alpha1.AnnotationPreserve, preserveNow)), machine("b", running)}},
			reason: "SetAsideMachine",
			want:   "Set aside Machine a: machine.drover.dev/delete-machine marks it for deletion, and machine.drover.dev/preserve keeps it; it does not count as a replica",
		},
		"ManyMachinesAreCounted": {
			o:      Observed{Set: set(0), Machines: many},
			reason: "DeletedMachine",
			want:   "Deleted 13 Machines: m00, m01, m02, m03, m04, m05, m06, m07, m08, m09, and 3 more: there were 13 and 0 are wanted",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := message(Plan(now, tc.o), tc.reason); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}

	t.Run("AnUnknownClassIsReportedOnce", func(t *testing.T) {
		s := set(1)
		c := Plan(now, Observed{Set: s, Problem: noClass}).Conditions[0]
		s.Status.Conditions = []metav1.Condition{{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message}}
		if d := Plan(now, Observed{Set: s, Problem: noClass}); len(d.Events) > 0 {
			t.Errorf("got %v", d.Events)
		}
	})
}

func TestTheOrderInWhichMachinesAreSeenMakesNoDifference(t *testing.T) {
	ms := []Machine{machine("b", running), machine("c", failed), machine("a", joining)}
	seen := slices.Clone(ms)
	slices.Reverse(seen)
	if diff := cmp.Diff(Plan(now, Observed{Set: set(3), Machines: ms}), Plan(now, Observed{Set: set(3), Machines: seen})); diff != "" {
		t.Errorf("another order gives another decision:\n%s", diff)
	}
	if ms[0].Name != "b" {
		t.Error("a plan changes what it is given")
	}
}

func TestMachinesOfATemplate(t *testing.T) {
	s := set(2, created(0), func(s *machinev1alpha1.MachineSet) {
		s.Labels = map[string]string{machinev1alpha1.LabelDeployment: "md"}
		s.Spec.Template.Metadata.Annotations = map[string]string{"a": "b", machinev1alpha1.AnnotationDeleteMachine: "no"}
		s.Spec.Template.Spec.Taints = []machinev1alpha1.Taint{{Key: "new", Effect: "NoSchedule"}}
		s.Spec.Template.Spec.Version = "v1.36.0"
		s.Spec.Template.Spec.FailureDomain = ptr.To("zone-b")
		s.Spec.Template.Spec.ClusterRef.Name = "other"
		s.Spec.Template.Spec.ProviderID = ptr.To("never")
	})
	old := machine("old", running, func(m *Machine) {
		m.Spec.ClassRef.Name = "large"
		m.Status.ProviderID = "local:///zone-a/vm-1"
		m.Annotations = map[string]string{"somebody": "else's", machinev1alpha1.AnnotationDeleteMachine: "now"}
	})
	d := Plan(now, Observed{Set: s, Machines: []Machine{old}})
	byName := map[string]Desired{}
	for _, m := range d.Machines {
		byName[m.Name] = m
	}
	existing, created := byName["old"], byName[nth(0)]

	meta := metav1.ObjectMeta{
		Namespace:   "default",
		Name:        nth(0),
		Labels:      map[string]string{"pool": "a", "app": "web", machinev1alpha1.LabelSet: "set", machinev1alpha1.LabelDeployment: "md"},
		Annotations: map[string]string{"a": "b"},
		Finalizers:  []string{machinev1alpha1.FinalizerTerminator},
	}
	t.Run("ANewOneIsAsTheTemplate", func(t *testing.T) {
		if diff := cmp.Diff(meta, created.ObjectMeta); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if created.Spec.Version != "v1.36.0" || created.Spec.ProviderID != nil || !created.Create {
			t.Errorf("got %+v", created)
		}
	})
	t.Run("AnExistingOneKeepsWhatItsVMWasMadeFrom", func(t *testing.T) {
		meta.Name = "old"
		if diff := cmp.Diff(meta, existing.ObjectMeta); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if existing.Spec.ClassRef.Name != "large" || existing.Spec.Version != "v1.35.4" || existing.Spec.FailureDomain != nil || existing.Spec.ClusterRef.Name != "" {
			t.Errorf("got %+v", existing)
		}
		if len(existing.Spec.Taints) != 1 {
			t.Errorf("taints reach all: got %v", existing.Spec.Taints)
		}
		if existing.Create {
			t.Error("what exists must never be created")
		}
	})
}

func TestTheMessageOfACreationNamesTheMachine(t *testing.T) {
	d := Plan(now, Observed{Set: set(1)})
	if want := "Created Machine " + nth(100); len(d.Events) != 1 || !strings.HasPrefix(d.Events[0].Message, want) {
		t.Errorf("got %v, want %q", d.Events, want)
	}
}
