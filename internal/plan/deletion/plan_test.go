package deletion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

type option func(*machinev1alpha1.Machine)

func machine(name string, options ...option) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.Phase, m.Status.ReadySince = machinev1alpha1.MachineRunning, ptr.To(metav1.NewTime(noon.Add(-time.Hour)))
	for _, o := range options {
		o(m)
	}
	return m
}

// deleting makes a Machine one that is being deleted since noon, in the given stage.
func deleting(stage machinev1alpha1.DeletionStage, description string, pods ...string) option {
	return func(m *machinev1alpha1.Machine) {
		m.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		m.Status.Deletion = &machinev1alpha1.DeletionStatus{Stage: stage, Since: metav1.NewTime(noon)}
		m.Status.LastOperation = &machinev1alpha1.LastOperation{Description: description}
		for _, p := range pods {
			m.Status.Deletion.Pods = append(m.Status.Deletion.Pods, machinev1alpha1.DrainedPod{Namespace: "shop", Name: p})
		}
	}
}

// refused means that something other than a budget refuses the eviction of the pods.
func refused(m *machinev1alpha1.Machine) {
	for i := range m.Status.Deletion.Pods {
		m.Status.Deletion.Pods[i].Cause = machinev1alpha1.DrainEvictionRefused
	}
}

// since sets the beginning of the stage, as a time after noon.
func since(d time.Duration) option {
	return func(m *machinev1alpha1.Machine) { m.Status.Deletion.Since = metav1.NewTime(noon.Add(d)) }
}

func drain(forced bool) option {
	return func(m *machinev1alpha1.Machine) {
		m.Spec.Drain.Timeout.Duration = 30 * time.Minute
		m.Status.Drain = &machinev1alpha1.DrainStatus{StartTime: metav1.NewTime(noon), Forced: forced}
	}
}

const blocked = "Waiting for Node n: pod shop/web-0: its PodDisruptionBudget does not allow its eviction: The disruption budget web needs 1 healthy pods and has 1 currently"

func TestADeletedObjectReportsWhatItWaitsFor(t *testing.T) {
	draining := deleting(machinev1alpha1.DeletionDraining, blocked, "web-0")
	type want struct {
		Counts               Counts
		Reconciling, Stalled string
		Message, Event       string
		Again                time.Duration
	}
	cases := map[string]struct {
		at       time.Time
		machines []*machinev1alpha1.Machine
		owned    bool
		before   []metav1.Condition
		// finalizers of others on the object.
		finalizers []string
		want       want
	}{
		"ARefusedEvictionIsReportedBeforeABudget": {
			machines: []*machinev1alpha1.Machine{machine("a", draining, drain(false)), machine("b", deleting(machinev1alpha1.DeletionDraining, "Waiting for Node n: pod shop/db-0: cannot be evicted", "db-0"), refused, drain(true))},
			want: want{Counts{Terminating: 2}, "True EvictionRefused", "False NotStalled", "2 of 2 remaining Machines are being deleted. Machine b: Waiting for Node n: pod shop/db-0: cannot be evicted; the drain is forced. " +
				"Machine a: " + blocked + "; the drain is forced at 2026-01-01T12:30:00Z, the annotation drover.dev/force-drain: \"true\" on Machine a forces it now", "EvictionRefused", 0},
		},
		"NoMachineIsBeingDeletedYet": {
			machines: []*machinev1alpha1.Machine{machine("a"), machine("b")},
			want:     want{Counts{2, 2, 2, 0}, "True Deleting", "False NotStalled", "0 of 2 remaining Machines are being deleted", "Deleting", 0},
		},
		"AMachineThatBecameReadyJustNowIsNotAvailable": {
			machines: []*machinev1alpha1.Machine{machine("a", func(m *machinev1alpha1.Machine) { m.Status.ReadySince.Time = noon })},
			want:     want{Counts{1, 1, 0, 0}, "True Deleting", "False NotStalled", "0 of 1 remaining Machines are being deleted", "Deleting", 0},
		},
		"AMachineThatIsReadySinceTomorrowIsAvailable": {
			machines: []*machinev1alpha1.Machine{machine("a", func(m *machinev1alpha1.Machine) { m.Status.ReadySince.Time = noon.Add(24 * time.Hour) })},
			want:     want{Counts{1, 1, 1, 0}, "True Deleting", "False NotStalled", "0 of 1 remaining Machines are being deleted", "Deleting", 0},
		},
		"ABudgetHoldsTheDrainUntilItIsForced": {
			machines: []*machinev1alpha1.Machine{machine("a", draining, drain(false)), machine("b", deleting(machinev1alpha1.DeletionDeletingNode, "Waiting for Node m: it is deleted"))},
			want: want{
				Counts{0, 0, 0, 2}, "True DrainBlocked", "False NotStalled",
				"2 of 2 remaining Machines are being deleted. Machine a: " + blocked +
					`; the drain is forced at 2026-01-01T12:30:00Z, the annotation drover.dev/force-drain: "true" on Machine a forces it now. Machine b: Waiting for Node m: it is deleted`,
				"DrainBlocked", 0,
			},
		},
		"AMachineThatIsNotRunningIsNotReady": {
			machines: []*machinev1alpha1.Machine{
				machine("a", func(m *machinev1alpha1.Machine) { m.Status.Phase = machinev1alpha1.MachineFailed }),
				machine("b", func(m *machinev1alpha1.Machine) { m.Status.ReadySince = nil }),
			},
			want: want{Counts{2, 0, 0, 0}, "True Deleting", "False NotStalled", "0 of 2 remaining Machines are being deleted", "Deleting", 0},
		},
		"AMachineWhoseDeletionHasNotBegunIsCounted": {
			machines: []*machinev1alpha1.Machine{machine("a", draining, func(m *machinev1alpha1.Machine) { m.Status.Deletion = nil })},
			want:     want{Counts{0, 0, 0, 1}, "True Deleting", "False NotStalled", "1 of 1 remaining Machines are being deleted", "Deleting", 0},
		},
		"AMachineThatHasReportedNothingYetIsCounted": {
			machines: []*machinev1alpha1.Machine{machine("a", draining, func(m *machinev1alpha1.Machine) { m.Status.LastOperation = nil })},
			want:     want{Counts{0, 0, 0, 1}, "True Deleting", "False NotStalled", "1 of 1 remaining Machines are being deleted", "Deleting", 0},
		},
		"ADrainWithoutATimeoutIsForcedAfterTwoHours": {
			machines: []*machinev1alpha1.Machine{machine("a", draining, drain(false), func(m *machinev1alpha1.Machine) { m.Spec.Drain.Timeout.Duration = 0 })},
			want: want{Counts{0, 0, 0, 1}, "True DrainBlocked", "False NotStalled", "1 of 1 remaining Machines are being deleted. Machine a: " + blocked +
				`; the drain is forced at 2026-01-01T14:00:00Z, the annotation drover.dev/force-drain: "true" on Machine a forces it now`, "DrainBlocked", 0},
		},
		"ADrainThatNoPodHoldsIsNotBlocked": {
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionDraining, "Draining Node n"))},
			want:     want{Counts{0, 0, 0, 1}, "True Deleting", "False NotStalled", "1 of 1 remaining Machines are being deleted. Machine a: Draining Node n", "Deleting", 0},
		},
		"TheWorstOfSomeIsReportedFirstThenByName": {
			machines: []*machinev1alpha1.Machine{
				machine("c", deleting(machinev1alpha1.DeletionDeletingNode, "c")), machine("b", deleting(machinev1alpha1.DeletionDeletingNode, "b")),
				machine("d", draining),
			},
			want: want{Counts{0, 0, 0, 3}, "True DrainBlocked", "False NotStalled", "3 of 3 remaining Machines are being deleted. Machine d: " + blocked +
				`; the annotation drover.dev/force-drain: "true" on Machine d forces the drain. Machine b: b. Machine c: c`, "DrainBlocked", 0},
		},
		"ItLooksAgainWhenTheFirstVMIsLate": {
			at: noon.Add(2 * time.Minute),
			machines: []*machinev1alpha1.Machine{
				machine("a", deleting(machinev1alpha1.DeletionDeletingVM, "a"), since(time.Minute)), machine("b", deleting(machinev1alpha1.DeletionDeletingVM, "b")),
				machine("c", deleting(machinev1alpha1.DeletionDeletingVM, "c"), since(90*time.Second)), machine("d", deleting(machinev1alpha1.DeletionDeletingNode, "d")),
			},
			want: want{Counts{0, 0, 0, 4}, "True Deleting", "False NotStalled",
				"4 of 4 remaining Machines are being deleted. Machine a: a. Machine b: b. Machine c: c. 1 more Machines wait", "Deleting", 8 * time.Minute},
		},
		"PreTerminateHooksHaveTheirTimeoutFromTheirStageOn": {
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionPreTerminateHooks, "hooks"), since(time.Hour))},
			want: want{Counts{0, 0, 0, 1}, "True WaitingForHooks", "False NotStalled",
				"1 of 1 remaining Machines are being deleted. Machine a: hooks; from 2026-01-01T15:00:00Z they are not waited for", "WaitingForHooks", 0},
		},
		"PreDrainHooksHaveItFromTheDeletionOn": {
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionPreDrainHooks, "hooks"), since(time.Hour))},
			want: want{Counts{0, 0, 0, 1}, "True WaitingForHooks", "False NotStalled",
				"1 of 1 remaining Machines are being deleted. Machine a: hooks; from 2026-01-01T14:00:00Z they are not waited for", "WaitingForHooks", 0},
		},
		"AForcedDrainIsNotForcedAgain": {
			machines: []*machinev1alpha1.Machine{machine("a", draining, drain(true))},
			want: want{Counts{0, 0, 0, 1}, "True DrainBlocked", "False NotStalled",
				"1 of 1 remaining Machines are being deleted. Machine a: " + blocked + "; the drain is forced", "DrainBlocked", 0},
		},
		"HooksHoldItUntilTheirTimeout": {
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionPreDrainHooks, "Waiting for pre-drain hooks: backup"))},
			want: want{Counts{0, 0, 0, 1}, "True WaitingForHooks", "False NotStalled",
				"1 of 1 remaining Machines are being deleted. Machine a: Waiting for pre-drain hooks: backup; from 2026-01-01T14:00:00Z they are not waited for", "WaitingForHooks", 0},
		},
		"AVMHasTenMinutes": {
			at:       noon.Add(9 * time.Minute),
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionDeletingVM, "Waiting for VirtualMachine v: the VM is deleted"))},
			want: want{Counts{0, 0, 0, 1}, "True Deleting", "False NotStalled",
				"1 of 1 remaining Machines are being deleted. Machine a: Waiting for VirtualMachine v: the VM is deleted", "Deleting", time.Minute},
		},
		"AVMThatIsNotDeletedNeedsAUser": {
			at:       noon.Add(10 * time.Minute),
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionDeletingVM, "Waiting for VirtualMachine v: the VM is deleted"))},
			want: want{Counts{0, 0, 0, 1}, "False VMNotDeleted", "True VMNotDeleted",
				"1 of 1 remaining Machines are being deleted. Machine a: Waiting for VirtualMachine v: the VM is deleted since 2026-01-01T12:00:00Z; see the events of the VM resource; " +
					`the annotation drover.dev/force-delete: "true" on Machine a deletes the Machine without its VM`, "VMNotDeleted", 0},
		},
		"FinalizersOfOthersAreTheReason": {
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionDeletingNode, "held"), func(m *machinev1alpha1.Machine) { m.Status.Deletion.Finalizers = []string{"example.org/hold"} })},
			want:     want{Counts{0, 0, 0, 1}, "True WaitingForFinalizers", "False NotStalled", "1 of 1 remaining Machines are being deleted. Machine a: held", "WaitingForFinalizers", 0},
		},
		"APauseIsTheReason": {
			machines: []*machinev1alpha1.Machine{machine("a", deleting(machinev1alpha1.DeletionPaused, "paused"))},
			want:     want{Counts{0, 0, 0, 1}, "True DeletionPaused", "False NotStalled", "1 of 1 remaining Machines are being deleted. Machine a: paused", "DeletionPaused", 0},
		},
		"FinalizersOfOthersAreNamedOnceTheMachinesAreGone": {
			finalizers: []string{"example.org/backup", "example.org/hold"},
			want: want{Counts{}, "True WaitingForFinalizers", "False NotStalled",
				"all Machines are gone. Finalizers of other controllers keep the object, and whoever added them must remove them: example.org/backup, example.org/hold", "WaitingForFinalizers", 0},
		},
		"FinalizersOfOthersAreNotWaitedForWhileThereAreMachines": {
			machines: []*machinev1alpha1.Machine{machine("a", draining, drain(true))}, finalizers: []string{"example.org/hold"},
			want: want{Counts{0, 0, 0, 1}, "True DrainBlocked", "False NotStalled",
				"1 of 1 remaining Machines are being deleted. Machine a: " + blocked + "; the drain is forced", "DrainBlocked", 0},
		},
		"ThreeMachinesAreNamed": {
			machines: []*machinev1alpha1.Machine{machine("a", draining), machine("b", deleting(machinev1alpha1.DeletionDeletingNode, "b")),
				machine("c", deleting(machinev1alpha1.DeletionDeletingNode, "c")), machine("d", deleting(machinev1alpha1.DeletionDeletingNode, "d"))},
			want: want{Counts{0, 0, 0, 4}, "True DrainBlocked", "False NotStalled",
				"4 of 4 remaining Machines are being deleted. Machine a: " + blocked + `; the annotation drover.dev/force-drain: "true" on Machine a forces the drain. Machine b: b. Machine c: c. 1 more Machines wait`, "DrainBlocked", 0},
		},
		"TheEventIsOfTheObjectThatTheUserDeleted": {
			machines: []*machinev1alpha1.Machine{machine("a")}, owned: true,
			want: want{Counts{1, 1, 1, 0}, "True Deleting", "False NotStalled", "0 of 1 remaining Machines are being deleted", "", 0},
		},
		"TheEventIsSentOnce": {
			machines: []*machinev1alpha1.Machine{machine("a")}, before: []metav1.Condition{{Type: "Reconciling", Status: "True", Reason: "Deleting"}},
			want: want{Counts{1, 1, 1, 0}, "True Deleting", "False NotStalled", "0 of 1 remaining Machines are being deleted", "", 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := tc.at
			if at.IsZero() {
				at = noon
			}
			d := Plan(at, Observed{Generation: 3, Replicas: 2, MinReadySeconds: 60, IsRoot: !tc.owned, Machines: tc.machines, Conditions: tc.before, Finalizers: tc.finalizers})
			got := want{Counts: d.Counts, Again: d.CallAgain}
			for _, c := range d.Conditions {
				switch c.Type {
				case "Reconciling":
					got.Reconciling, got.Message = string(c.Status)+" "+c.Reason, c.Message
				case "Stalled":
					got.Stalled = string(c.Status) + " " + c.Reason
				}
				if c.ObservedGeneration != 3 {
					t.Errorf("condition %s is of generation %d", c.Type, c.ObservedGeneration)
				}
			}
			for _, e := range d.Events {
				got.Event += e.Reason
				if e.Warning != (e.Reason != machinev1alpha1.ReasonDeleting) {
					t.Errorf("the event %s is a warning: %t", e.Reason, e.Warning)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAHeldDeletionReportsWhatToDo(t *testing.T) {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	m.Status.Phase, m.Status.ReadySince = machinev1alpha1.MachineRunning, ptr.To(metav1.NewTime(noon.Add(-time.Hour)))
	for name, tc := range map[string]struct {
		replicas  int32
		available string
	}{
		"AllMachinesAreAvailable": {1, "True DeletionHeld: 1 of 1 Machines are available: none is created or replaced while the deletion is held"},
		"SomeAreNot":              {2, "False DeletionHeld: 1 of 2 Machines are available: none is created or replaced while the deletion is held"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(noon, Observed{Replicas: tc.replicas, IsRoot: true, Collected: "MachineDeployment web", Machines: []*machinev1alpha1.Machine{m}})
			const message = "MachineDeployment web does not exist any more, and no user deleted this object. Its Machines are kept. To delete them, set the annotation drover.dev/confirm-deletion=true"
			want := map[string]string{"Available": tc.available, "Reconciling": "False DeletionHeld: " + message, "Stalled": "True DeletionHeld: " + message}
			got := map[string]string{}
			for _, c := range d.Conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(d.Events) != 1 || !d.Events[0].Warning || d.Events[0].Message != message {
				t.Errorf("events %+v", d.Events)
			}
		})
	}
}

func TestConditionsOfBeforeTheDeletionDoNotOutliveIt(t *testing.T) {
	was := metav1.NewTime(noon.Add(-time.Hour))
	d := Plan(noon, Observed{Generation: 3, Replicas: 2, Conditions: []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: "Deleting", LastTransitionTime: was},
		{Type: "Available", Status: "True", Reason: "MinimumReplicasAvailable", LastTransitionTime: was},
		{Type: "ReplicaFailure", Status: "True", Reason: "QuotaExceeded", LastTransitionTime: was},
		{Type: "Reconciling", Status: "True", Reason: "Scaling", LastTransitionTime: was},
	}})
	got := map[string]string{}
	for _, c := range d.Conditions {
		got[c.Type] = string(c.Status) + " " + c.Reason + " " + c.LastTransitionTime.UTC().Format("15:04")
	}
	want := map[string]string{
		"Ready": "False Deleting 11:00", "Available": "False Deleting 12:00",
		"Reconciling": "True Deleting 11:00", "Stalled": "False NotStalled 12:00",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
