package set

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// dueReboot makes the Machine one whose health requires a reboot.
func dueReboot(m *Machine) {
	worked(m)
	m.Status.Unhealthy = &machinev1alpha1.Unhealthiness{Since: metav1.NewTime(now.Add(-time.Hour)), RebootID: "health-" + m.Name}
}

func granted(m *Machine) {
	m.Annotations = map[string]string{machinev1alpha1.AnnotationRebootGranted: "health-" + m.Name}
}

// inReboot makes the Machine one whose reboot is in progress, which its health or a user caused.
func inReboot(byHealth string) machineOption {
	return func(m *Machine) {
		worked(m)
		granted(m)
		m.Status.Phase = machinev1alpha1.MachineRebooting
		m.Status.Reboot = &machinev1alpha1.RebootStatus{ID: "health-" + m.Name, State: machinev1alpha1.RebootRebooting, ByHealth: byHealth}
	}
}

func rebooting(names ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Rebooting = names }
}

func TestRebootsShareTheBudgetOfReplacements(t *testing.T) {
	const all = "100%"
	runs := func(n int) []Machine { return some(n, "r", running) }
	for name, tc := range map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		safety   shared.Safety
		problem  *shared.Problem
		// listed are the Machines in status.rebooting, and granted those with the annotation reboot-granted.
		listed, granted []string
		dropping        []string
		waiting         int32
	}{
		"OneAtATimeByDefault": {
			set: set(4, budget("1", all)), machines: append(runs(2), some(2, "d", unknown, dueReboot)...), listed: []string{"da"}, waiting: 1,
		},
		"AlsoOfAReplacementThatIsWaitedFor": {
			set:      set(1, createFirst, budget("1", all), replacing("a", "by")),
			machines: []Machine{machine("a", failed, worked), machine("by", unknown, dueReboot)}, listed: []string{"by"},
		},
		"AndNotBesideAReplacementThatIsWaitedFor": {
			set:      set(2, createFirst, budget("1", all), replacing("a", "by")),
			machines: []Machine{machine("a", failed, worked), machine("by", pending), machine("d", unknown, dueReboot)}, waiting: 1,
		},
		"AsManyAsMaxInFlight": {
			set: set(5, budget("2", all)), machines: append(runs(2), some(3, "d", unknown, dueReboot)...), listed: []string{"da", "db"}, waiting: 1,
		},
		"ItBeginsWhenTheDecisionIsRecorded": {
			set: set(4, budget("1", all), rebooting("db")), machines: append(runs(2), some(2, "d", unknown, dueReboot)...),
			listed: []string{"db"}, granted: []string{"db"}, waiting: 1,
		},
		"OneInProgressTakesTheBudget": {
			set: set(3, budget("1", all), rebooting("b")), machines: append(runs(1), machine("b", running, inReboot("bad")), machine("d", unknown, dueReboot)),
			listed: []string{"b"}, granted: []string{"b"}, waiting: 1,
		},
		"OneThatAUserRequestedTakesItToo": {
			set: set(3, budget("1", all)), machines: append(runs(1), machine("b", running, inReboot("")), machine("d", unknown, dueReboot)), waiting: 1,
		},
		"AMachineThatStartsTakesItToo": {
			set: set(3, budget("1", all)), machines: append(runs(1), machine("j", joining), machine("d", unknown, dueReboot)), waiting: 1,
		},
		"AReplacementWaitsForAReboot": {
			set: set(3, budget("1", all), rebooting("b")), machines: append(runs(1), machine("b", running, inReboot("bad")), machine("f", failed, worked)),
			listed: []string{"b"}, granted: []string{"b"}, waiting: 1,
		},
		"AFailedMachineIsReplacedFirst": {
			set: set(3, budget("1", all)), machines: append(runs(1), machine("d", unknown, dueReboot), machine("f", failed, worked)), dropping: []string{"f"}, waiting: 1,
		},
		"NoneWhileTooManyAreUnhealthy": {
			set: set(4, budget("4", "25%")), machines: append(runs(2), some(2, "d", unknown, dueReboot)...), waiting: 2,
		},
		"NoneWithoutABudget": {
			set: set(2, budget("0", all)), machines: append(runs(1), machine("d", unknown, dueReboot)), waiting: 1,
		},
		"NoneInAFrozenSet": {
			set: set(2, budget("1", all)), machines: append(runs(1), machine("d", unknown, dueReboot)), safety: shared.Safety{Frozen: true}, waiting: 1,
		},
		"AFreezeCallsOffOneThatHasNotBegun": {
			set: set(2, budget("1", all), rebooting("d")), machines: append(runs(1), machine("d", unknown, dueReboot)), safety: shared.Safety{Frozen: true}, waiting: 1,
		},
		"AFreezeDoesNotEndOneThatHasBegun": {
			set: set(2, budget("1", all), rebooting("b")), machines: append(runs(1), machine("b", running, inReboot("bad"))), safety: shared.Safety{Frozen: true},
			listed: []string{"b"}, granted: []string{"b"},
		},
		"AClassThatIsMissingHoldsNone": {
			set: set(2, budget("1", all)), machines: append(runs(1), machine("d", unknown, dueReboot)), problem: &shared.Problem{Reason: "ClassNotFound"}, listed: []string{"d"},
		},
		"NoneOfAPreservedMachine": {
			set: set(2, budget("1", all)), machines: append(runs(1), machine("d", unknown, dueReboot, kept)),
		},
		"NoneOfAMachineThatIsToBeReplaced": {
			set: set(2, budget("1", all)), machines: append(runs(1), machine("d", unknown, dueReboot, unwanted)), dropping: []string{"d"},
		},
		"ANodeThatIsHealthyAgainCallsItOff": {
			set: set(2, budget("1", all), rebooting("ra")), machines: append(runs(1), machine("d", unknown, dueReboot)), listed: []string{"d"},
		},
		"TheEndOfARebootFreesTheBudget": {
			set: set(2, budget("1", all), rebooting("ra")), machines: append(some(1, "r", running, granted), machine("d", unknown, dueReboot)), listed: []string{"d"},
		},
		"NoneOfAMachineThatAScaleDownDeletes": {
			set: set(1, budget("1", all)), machines: append(runs(1), machine("d", unknown, dueReboot)), dropping: []string{"d"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines, Safety: tc.safety, Problem: tc.problem})
			var has []string
			for _, m := range d.Machines {
				if v, ok := m.Annotations[machinev1alpha1.AnnotationRebootGranted]; ok {
					has = append(has, m.Name)
					if v != "health-"+m.Name {
						t.Errorf("Machine %s has the permission %q", m.Name, v)
					}
				}
			}
			slices.Sort(has)
			if diff := cmp.Diff(tc.listed, d.Status.Rebooting); diff != "" {
				t.Errorf("status.rebooting -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.granted, has); diff != "" {
				t.Errorf("permissions -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.dropping, d.Status.Dropping); diff != "" {
				t.Errorf("status.dropping -want +got:\n%s", diff)
			}
			if n := d.Status.ReplaceableReplicas + d.Status.RebootableReplicas; n != tc.waiting {
				t.Errorf("%d wait, want %d", n, tc.waiting)
			}
		})
	}
}
