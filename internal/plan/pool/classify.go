package pool

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/aging"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/schedule"
)

func fleetOf(now time.Time, o Observed) *fleet {
	f := &fleet{Observed: o, now: now}
	f.taken, f.problem = take(o.Pool, o.Offer)
	var problem *shared.Problem
	f.surge, f.unavailable, problem = deployment.Bounds(f.size(), o.Pool.Spec.Strategy.Strategy)
	if f.problem == nil {
		f.problem = problem
	}
	if _, err := schedule.Parse(now, o.Pool.Spec.Rollout); err != nil && f.problem == nil {
		f.problem = &shared.Problem{Reason: machinev1alpha1.ReasonInvalidWindow, Message: err.Error() + "; the Machines that exist stay as they are until then"}
	}
	if p := aging.Problem(o.Pool.Spec.Rollout, machinev1alpha1.MachineSpec{}, 0); p != nil && f.problem == nil {
		f.problem = &shared.Problem{Reason: p.Reason, Message: p.Message + "; the Machines that exist stay as they are until then"}
	}
	if f.surge == 0 && f.unavailable == 0 {
		f.surge = 1 // Recreate and OnDelete have no bounds.
	}
	f.members = f.findMembers()
	for _, m := range f.members {
		m.desired = f.desired(m)
	}
	return f
}
