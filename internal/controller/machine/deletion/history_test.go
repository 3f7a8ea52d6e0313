package deletion

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

// TestInAnyHistoryADeletionKeepsItsOrder plays providers that delete or hang, hooks that come and go, a user who
// forces the deletion, and a controller that has only the status.
func TestInAnyHistoryADeletionKeepsItsOrder(t *testing.T) {
	order := []v1alpha1.DeletionStage{
		v1alpha1.DeletionPreDrainHooks, v1alpha1.DeletionPreTerminateHooks, v1alpha1.DeletionDeletingDependents, v1alpha1.DeletionDeletingVM, v1alpha1.DeletionDeletingCompanions,
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		now := time.Unix(100_000, 0)
		s := State{Self: finalizer.State{Deleting: true, Held: true, Foreground: true}, DeletedAt: now, HookTimeout: time.Hour}
		for i := range r.IntN(2) {
			s.VMs = append(s.VMs, Resource{Kind: "VM", Name: fmt.Sprint(i), Held: true})
		}
		for i := range r.IntN(3) {
			s.Companions = append(s.Companions, Resource{Kind: "Card", Name: fmt.Sprint(i), Held: true, Order: i})
		}
		for i := range r.IntN(4) {
			s.Dependents = append(s.Dependents, Resource{Kind: "Attachment", Name: fmt.Sprint(i), Held: true, Order: 3 + i, AfterVM: true})
		}
		var dependentsSince time.Time
		overdue := 0
		for step := 0; len(s.VMs)+len(s.Companions)+len(s.Dependents) > 0; step++ {
			isCalm := step > 40
			if step > 400 {
				t.Fatalf("seed %d: the deletion does not end: %+v", seed, s)
			}
			s.Now, s.PreTerminate, s.PreDrain = now, nil, nil
			if !isCalm && r.IntN(4) == 0 {
				s.PreTerminate = []string{"backup"}
			}
			if !isCalm && r.IntN(4) == 0 {
				s.PreDrain = []string{"backup"}
			}
			s.ForceDelete = s.ForceDelete || !isCalm && r.IntN(60) == 0
			p := Plan(s)
			if p.Step == finalizer.Remove {
				t.Fatalf("seed %d, step %d: the Machine goes although something is left", seed, step)
			}
			stage := p.Deletion.Stage
			if slices.Index(order, stage) < slices.Index(order, s.Stage) {
				t.Fatalf("seed %d, step %d: from %s back to %s", seed, step, s.Stage, stage)
			}
			if stage == v1alpha1.DeletionDeletingDependents && s.Stage != stage {
				dependentsSince = now
			}
			overdue += min(len(p.Overdue), 1)
			for _, v := range p.Release {
				switch {
				case s.ForceDelete:
				case v.Kind == "VM" && len(s.Dependents) > 0 && (dependentsSince.IsZero() || now.Sub(dependentsSince) < DependentsTimeout):
					t.Fatalf("seed %d, step %d: the VM is released before %+v", seed, step, s.Dependents)
				case v.Kind == "Card" && len(s.VMs)+len(s.Dependents) > 0:
					t.Fatalf("seed %d, step %d: a companion is released before %+v and %+v", seed, step, s.VMs, s.Dependents)
				case v.Kind != "VM" && slices.ContainsFunc(slices.Concat(s.Companions, s.Dependents), func(o Resource) bool { return o.Order > v.Order && o.AfterVM == v.AfterVM }):
					t.Fatalf("seed %d, step %d: %+v is released before one that was created later", seed, step, v)
				}
			}
			if s.Stage != stage {
				s.Stage, s.Since = stage, p.Deletion.Since.Time
			}
			released := func(list []Resource) []Resource {
				var out []Resource
				for _, v := range list {
					if slices.Contains(p.Release, v) {
						v.Held, v.Deleting = false, true
					} else if !v.Held && (isCalm || r.IntN(4) == 0) || slices.Contains(p.Abandon, v) {
						continue
					}
					out = append(out, v)
				}
				return out
			}
			s.VMs, s.Companions, s.Dependents = released(s.VMs), released(s.Companions), released(s.Dependents)
			now = now.Add(time.Duration(r.IntN(120)) * time.Second)
			if isCalm {
				now = now.Add(time.Hour)
			}
		}
		if overdue > 1 {
			t.Errorf("seed %d: %d events of one timeout", seed, overdue)
		}
	}
}
