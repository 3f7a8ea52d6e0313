package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A scaling decides the number of Machines of each set. Totals include terminating Machines.
type scaling struct {
	applies func(*plan) bool
	scale   func(*plan)
}

// scalings of which the first that applies decides.
var scalings = []scaling{
	{func(p *plan) bool { return p.isAlone() && p.updatesInPlace() }, (*plan).scaleInPlace},
	{func(p *plan) bool { return p.isAlone() && p.wasComplete() }, (*plan).scaleAlone},
	{strategyIs(machinev1alpha1.Recreate), (*plan).recreate},
	{strategyIs(machinev1alpha1.OnDelete), (*plan).onDelete},
	{(*plan).isRescaled, (*plan).rescale},
	{func(*plan) bool { return true }, (*plan).rollingUpdate},
}

// scale the sets.
func (p *plan) scale() {
	if p.newSet == nil {
		return
	}
	for _, s := range scalings {
		if s.applies(p) {
			s.scale(p)
			return
		}
	}
}

// scaleAlone scales without a rollout: users need the Machines, so it does not wait for the end of
// terminating ones.
func (p *plan) scaleAlone() { p.scaleNew(p.bounds.replicas) }
