package set

import (
	"fmt"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// crowds are sets of n Machines of which a third is in trouble.
var crowds = map[string]func(n int) Observed{
	"failed before they joined": func(n int) Observed {
		return crowd(n, set(int32(n)), neverJoined)
	},
	"lost, one replaced at a time": func(n int) Observed {
		return crowd(n, set(int32(n), budget("1", "100%")), worked, lost)
	},
	"lost, all replaced at once": func(n int) Observed {
		return crowd(n, set(int32(n), budget("100%", "100%")), worked, lost)
	},
	"failed, all replaced first": func(n int) Observed {
		return crowd(n, set(int32(n), budget("100%", "100%"), createFirst), worked)
	},
	"waiting for their replacements": func(n int) Observed {
		var pairs []string
		for i := 0; i < n/3; i += 2 {
			pairs = append(pairs, crowded(i), crowded(i+1))
		}
		return crowd(n, set(int32(n-n/6), budget("100%", "100%"), createFirst, replacing(pairs...)), worked)
	},
	"starting, with one missing": func(n int) Observed {
		o := crowd(n, set(int32(n+1)))
		for _, m := range o.Machines[:n/3] {
			m.Status.Phase, m.CreationTimestamp.Time = provisioning, now.Add(-time.Second)
		}
		return o
	},
	"being deleted": func(n int) Observed {
		var names []string
		for i := range n / 3 {
			names = append(names, crowded(i))
		}
		return crowd(n, set(int32(n), dropping(names...)), worked)
	},
}

func crowded(i int) string { return fmt.Sprintf("m%05d", i) }

func crowd(n int, s *machinev1alpha1.MachineSet, trouble ...machineOption) Observed {
	o := Observed{Set: s}
	for i := range n {
		if i < n/3 {
			o.Machines = append(o.Machines, machine(crowded(i), failed, trouble...))
		} else {
			o.Machines = append(o.Machines, machine(crowded(i), running, worked))
		}
	}
	return o
}

// neverJoined makes the Machine one that failed after it had got a VM.
func neverJoined(m *Machine) {
	m.CreationTimestamp.Time = now.Add(-20 * time.Minute)
	m.Status.FailureReason, m.Status.ProviderID = machinev1alpha1.FailureJoinTimeout, "local:///zone-a/"+m.Name
}

// TestTheWorkOfAPlanGrowsWithTheNumberOfMachines and not faster: the number of passes over the
// Machines of a set does not depend on their number, nor on how many of them are in trouble.
func TestTheWorkOfAPlanGrowsWithTheNumberOfMachines(t *testing.T) {
	passes := func(o Observed) int {
		p := newPlan(fleetOf(now, o))
		for _, decide := range stages {
			decide(p)
		}
		p.decide()
		return p.steps / len(o.Machines)
	}
	for name, of := range crowds {
		t.Run(name, func(t *testing.T) {
			few, many := passes(of(30)), passes(of(600))
			if few <= 0 || many > few || few > 60 {
				t.Errorf("%d passes over 30 Machines, and %d over 600", few, many)
			}
		})
	}
}

// BenchmarkPlan plans a set of 5000 Machines of which a third is in trouble.
func BenchmarkPlan(b *testing.B) {
	for name, of := range crowds {
		b.Run(name, func(b *testing.B) {
			o := of(5000)
			for b.Loop() {
				Plan(now, o)
			}
		})
	}
}
