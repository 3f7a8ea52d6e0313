package set

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// reached sets the time of a milestone of the join.
func reached(name machinev1alpha1.JoinMilestone, ago time.Duration) machineOption {
	return func(m *Machine) {
		if m.Status.Join == nil {
			m.Status.Join = &machinev1alpha1.JoinStatus{}
		}
		m.Status.Join.Milestones = append(m.Status.Join.Milestones, machinev1alpha1.ReachedMilestone{Name: name, Time: metav1.NewTime(now.Add(-ago))})
	}
}

func rolledOut(s *machinev1alpha1.MachineSet) {
	s.Spec.NodeMarks.Taints = []machinev1alpha1.Taint{{Key: machinev1alpha1.TaintOutdated, Effect: "PreferNoSchedule"}}
}

func TestMachinesThatBootAreCountedInARollout(t *testing.T) {
	runsFor := func(d time.Duration) machineOption { return reached(machinev1alpha1.JoinVMRunning, d) }
	restored := func(m *Machine) {
		m.Spec.ProviderID, m.Status = ptr.To("local:///zone-a/a"), machinev1alpha1.MachineStatus{}
	}
	for name, tc := range map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		want     int32
		again    time.Duration
	}{
		"AMissingMachine":                   {set(1, rolledOut), nil, 1, 0},
		"AMissingMachineThatIsNotCreated":   {set(1, rolledOut, createsNone), nil, 1, 0},
		"AMachineWithoutAVM":                {set(1, rolledOut), []Machine{machine("a", provisioning)}, 1, 0},
		"OneWhoseVMRunsForAMinute":          {set(1, rolledOut), []Machine{machine("a", joining, runsFor(time.Minute))}, 1, 0},
		"NotBefore":                         {set(1, rolledOut), []Machine{machine("a", joining, runsFor(59*time.Second))}, 0, time.Second},
		"BesideAReadyMachineItGetsMoreTime": {set(2, rolledOut), []Machine{machine("a", joining, runsFor(299*time.Second)), machine("b", running, worked)}, 0, time.Second},
		"AndCountsAfterThat":                {set(2, rolledOut), []Machine{machine("a", joining, runsFor(300*time.Second)), machine("b", running, worked)}, 1, 0},
		"NotOneWhoseVMIsNotKnownToRun":      {set(1, rolledOut), []Machine{machine("a", joining)}, 0, 0},
		"NotOneWithANode":                   {set(1, rolledOut), []Machine{machine("a", joining, runsFor(time.Hour), reached(machinev1alpha1.JoinNodeRegistered, time.Minute))}, 0, 0},
		"NotOneThatReturnsToItsVM":          {set(1, rolledOut), []Machine{machine("a", pending, restored)}, 0, 0},
		"NotOneThatRuns":                    {set(1, rolledOut), []Machine{machine("a", running, worked)}, 0, 0},
		"NoneOutsideOfARollout":             {set(2), []Machine{machine("a", provisioning)}, 0, 0},
		"OnesOfAnOldSetOfTheStrategyByUser": {set(1, createsNone), []Machine{machine("a", provisioning)}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines})
			if got := d.Status.BootingReplicas; got != tc.want {
				t.Errorf("%d Machines boot, want %d", got, tc.want)
			}
			if tc.again > 0 && d.CallAgain != tc.again {
				t.Errorf("called again after %s, want %s", d.CallAgain, tc.again)
			}
		})
	}
}
