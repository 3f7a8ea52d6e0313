package set

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// deletedAgo makes the Machine one that is being deleted for some time.
func deletedAgo(d time.Duration) machineOption {
	return func(m *Machine) {
		m.Terminating, m.DeletionTimestamp = true, &metav1.Time{Time: now.Add(-d)}
	}
}

func TestReplacedMachinesAreListed(t *testing.T) {
	rolled := func(s *machinev1alpha1.MachineSet) { s.Spec.Replicas = 0; rolledOut(s) }
	of := func(name string, reason machinev1alpha1.ReplacementReason, ago time.Duration) machinev1alpha1.ReplacedMachine {
		return machinev1alpha1.ReplacedMachine{Time: metav1.NewTime(now.Add(-ago)), Machine: name, Node: name, Reason: reason}
	}
	withFailure := func(e machinev1alpha1.ReplacedMachine) machinev1alpha1.ReplacedMachine {
		e.FailureReason = machinev1alpha1.FailureNodeUnhealthy
		return e
	}
	withDrain := func(e machinev1alpha1.ReplacedMachine, d time.Duration) machinev1alpha1.ReplacedMachine {
		e.DrainDuration = &metav1.Duration{Duration: d}
		return e
	}
	rebooted := func(m *Machine) {
		m.Status.Reboot = &machinev1alpha1.RebootStatus{State: machinev1alpha1.RebootFailed, StartTime: metav1.NewTime(now.Add(-5 * time.Minute)), ByHealth: "KernelDeadlock is True", Message: "no proof"}
	}
	withCause := func(e machinev1alpha1.ReplacedMachine) machinev1alpha1.ReplacedMachine {
		e.FailureReason, e.Message = machinev1alpha1.FailureNodeUnhealthy, "KernelDeadlock is True: no proof"
		return e
	}
	a := machine("a", running, worked)
	released := machinev1alpha1.ReleasedMachine{Name: "b", Node: "b", DeletionTime: metav1.NewTime(now.Add(-time.Minute)), DrainDuration: &metav1.Duration{Duration: 9 * time.Second}}
	for name, tc := range map[string]struct {
		set  *machinev1alpha1.MachineSet
		o    Observed
		want []machinev1alpha1.ReplacedMachine
		// members that vanished.
		vanished []string
	}{
		"AMachineThatFailed": {
			set: set(2, budget("1", "100%")), o: Observed{Machines: []Machine{a, machine("b", failed, worked)}},
			want: []machinev1alpha1.ReplacedMachine{withFailure(of("b", machinev1alpha1.ReplacedFailed, 0))},
		},
		"AMachineThatFailedWithItsLastReboot": {
			set: set(2, budget("1", "100%")), o: Observed{Machines: []Machine{a, machine("b", failed, worked, rebooted)}},
			want: []machinev1alpha1.ReplacedMachine{withCause(of("b", machinev1alpha1.ReplacedRebootFailed, 5*time.Minute)), withFailure(of("b", machinev1alpha1.ReplacedFailed, 0))},
		},
		"AScaleDownOfAMachineThatWasRebootedIsAReboot": {
			set: set(1, dropping("b")), o: Observed{Machines: []Machine{a, machine("b", running, worked, rebooted, deletedAgo(0))}},
			want: []machinev1alpha1.ReplacedMachine{withCause(of("b", machinev1alpha1.ReplacedRebootFailed, 5*time.Minute))},
		},
		"AMachineThatNeverHadANodeIsNone": {
			set: set(2), o: Observed{Machines: []Machine{a, machine("b", failed)}},
		},
		"AMachineWhoseReplacementWasRequested": {
			set: set(2, budget("1", "100%")), o: Observed{Machines: []Machine{a, machine("b", running, worked, unwanted)}},
			want: []machinev1alpha1.ReplacedMachine{of("b", machinev1alpha1.ReplacedRequested, 0)},
		},
		"AMachineOfARollout": {
			set: set(0, rolled), o: Observed{Machines: []Machine{a}},
			want: []machinev1alpha1.ReplacedMachine{of("a", machinev1alpha1.ReplacedRollout, 0)},
		},
		"AScaleDownIsNone":                          {set: set(0), o: Observed{Machines: []Machine{a}}},
		"AScaleDownThatIsCarriedOutIsNone":          {set: set(1, dropping("b")), o: Observed{Machines: []Machine{a, machine("b", running, worked, deletedAgo(0))}}},
		"AScaleDownThatIsUnderWayIsNone":            {set: set(1, deletingBefore("b")), o: Observed{Machines: []Machine{a, machine("b", running, worked, deletedAgo(0))}}},
		"AScaleDownThatIsOverIsNone":                {set: set(1), o: Observed{Machines: []Machine{a}, Released: []machinev1alpha1.ReleasedMachine{released}}},
		"AScaleDownThatIsOverBeforeItWasSeenIsNone": {set: set(1, dropping("b")), o: Observed{Machines: []Machine{a}, Released: []machinev1alpha1.ReleasedMachine{released}, Members: members("b")}},
		"AMachineThatAnotherClientDeletes": {
			set: set(2), o: Observed{Machines: []Machine{a, machine("b", running, worked, deletedAgo(time.Minute))}, Members: members("a", "b")},
			want:     []machinev1alpha1.ReplacedMachine{of("b", machinev1alpha1.ReplacedDeleted, time.Minute)},
			vanished: []string{"b"},
		},
		"AMachineThatAnotherClientDeletedAndThatIsGone": {
			set: set(2), o: Observed{Machines: []Machine{a}, Released: []machinev1alpha1.ReleasedMachine{released}, Members: members("a", "b")},
			want:     []machinev1alpha1.ReplacedMachine{withDrain(of("b", machinev1alpha1.ReplacedDeleted, time.Minute), 9*time.Second)},
			vanished: []string{"b"},
		},
		"AMachineThatIsGoneAndNotReportedStaysAMember": {
			set: set(2), o: Observed{Machines: []Machine{a}, Members: members("a", "b"), IsBehind: true}, vanished: []string{"b"},
		},
		"AMachineThatIsGoneAndWillNotBeReportedIsForgotten": {
			set: set(2), o: Observed{Machines: []Machine{a}, Members: members("a", "b")},
		},
		"TheDrainOfAMachineThatIsGoneGetsItsDuration": {
			set: set(1, listed(withFailure(of("b", machinev1alpha1.ReplacedFailed, time.Minute)))), o: Observed{Machines: []Machine{a}, Released: []machinev1alpha1.ReleasedMachine{released}},
			want: []machinev1alpha1.ReplacedMachine{withDrain(withFailure(of("b", machinev1alpha1.ReplacedFailed, time.Minute)), 9*time.Second)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Set = tc.set
			d := Plan(now, tc.o)
			if diff := cmp.Diff(tc.want, d.Status.Replacements); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var vanished []string
			for _, m := range d.Vanished {
				vanished = append(vanished, m.Name)
			}
			if diff := cmp.Diff(tc.vanished, vanished); diff != "" {
				t.Errorf("vanished -want +got:\n%s", diff)
			}
			again := tc.o
			again.Set = tc.set.DeepCopy()
			again.Set.Status.Replacements, again.Set.Status.Dropping, again.Set.Status.Deleting = d.Status.Replacements, d.Status.Dropping, d.Status.Deleting
			if diff := cmp.Diff(d.Status.Replacements, Plan(now.Add(time.Hour), again).Status.Replacements); diff != "" {
				t.Errorf("from the same view again, -was +is:\n%s", diff)
			}
		})
	}
}

func members(names ...string) (out []machinev1alpha1.GroupMember) {
	for _, n := range names {
		out = append(out, machinev1alpha1.GroupMember{Name: n, Template: "t"})
	}
	return out
}

func deletingBefore(names ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Deleting = names }
}

func listed(all ...machinev1alpha1.ReplacedMachine) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Replacements = all }
}

func TestAMachineIsDeletingUntilItsGroupReportedIt(t *testing.T) {
	s := set(1, dropping("b"), deletingBefore("c"))
	for name, tc := range map[string]struct {
		behind bool
		want   []string
	}{
		"NotReported": {true, []string{"b", "c"}},
		"Reported":    {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: s, Machines: []Machine{machine("a", running, worked)}, IsBehind: tc.behind})
			if diff := cmp.Diff(tc.want, d.Status.Deleting); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAMachineThatIsGoneIsTerminatingUntilItsGroupReportedIt lets a MachineDeployment keep an old set: only the
// report has the time of the deletion and the Node.
func TestAMachineThatIsGoneIsTerminatingUntilItsGroupReportedIt(t *testing.T) {
	for name, tc := range map[string]struct {
		set  *machinev1alpha1.MachineSet
		o    Observed
		want int32
	}{
		"NotReported":                {set(0), Observed{Members: members("b"), IsBehind: true}, 1},
		"Reported":                   {set(0), Observed{Members: members("b")}, 0},
		"TheSetDeletedIt":            {set(0, deletingBefore("b")), Observed{Members: members("b"), IsBehind: true}, 0},
		"ItIsThereAndBeingDeleted":   {set(0), Observed{Machines: []Machine{machine("b", running, worked, deletedAgo(time.Minute))}, Members: members("b"), IsBehind: true}, 1},
		"ItIsThereAndHasNoSet":       {set(0), Observed{Orphans: []Machine{machine("b", running)}, Members: members("b"), IsBehind: true}, 0},
		"ItIsOrderedAndNotSeenSoFar": {set(1, creating("b")), Observed{Members: members("b"), IsBehind: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Set = tc.set
			if got := Plan(now, tc.o).Status.TerminatingReplicas; got != tc.want {
				t.Errorf("%d Machines are terminating, want %d", got, tc.want)
			}
		})
	}
}

func TestAVanishedMachineStaysAMemberWithItsTemplate(t *testing.T) {
	s := set(1)
	d := Plan(now, Observed{
		Set: s, Machines: []Machine{machine("z", running, worked)}, IsBehind: true,
		Members: members("a"), Templates: []machinev1alpha1.GroupTemplate{{Name: "t"}, {Name: "unused"}},
	})
	g, err := Group(s, d)
	if err != nil {
		t.Fatal(err)
	}
	var templates []string
	for _, tp := range g.Spec.Templates {
		if tp.Name == "t" || tp.Name == "unused" {
			templates = append(templates, tp.Name)
		}
	}
	if g.Spec.Machines[0].Name != "a" || g.Spec.Machines[0].Create || len(g.Spec.Machines) != 2 || !cmp.Equal(templates, []string{"t"}) {
		t.Errorf("machines %+v, templates %v", g.Spec.Machines, templates)
	}
}
