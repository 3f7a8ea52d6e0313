package pool

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// stages of a plan, in their order. The first is for a pool with a size, and the second for autoscaling.
var stages = []func(*plan){(*plan).resize, (*plan).divideBounds, (*plan).assignTurns}

// Plan decides the MachineDeployments of a pool.
func Plan(now time.Time, o Observed) Decision {
	p := &plan{fleet: fleetOf(now, o)}
	for _, m := range p.members {
		next := m.decided
		next.Name, next.MachineDeployment = m.domain, m.name
		p.next = append(p.next, next)
	}
	for _, decide := range stages {
		decide(p)
	}
	for i, m := range p.members {
		if p.differs(i, m) {
			p.next[i].Decision++
		}
	}
	return p.decide()
}

func (p *plan) decide() Decision {
	d := Decision{}
	for i, m := range p.members {
		// A member without a MachineDeployment is composed only after its decision was recorded,
		// and only in a valid pool. A member that is gone is not composed any more, so that it is
		// deleted.
		if m.is == nil && (!m.isRecorded || p.problem != nil) || m.isGone() || m.isLetGo() {
			continue
		}
		p.offerSizes(m, p.next[i])
		d.Deployments = append(d.Deployments, Desired{
			MachineDeployment: m.desired, Ready: m.isComplete(),
			OmitReplicas: m.isScaledByOthers(),
		})
	}
	d.Status = p.status()
	d.Ready = p.isComplete()
	d.Conditions = p.conditions(d.Status)
	d.Events = p.events(d.Conditions)
	d.CallAgain = p.callAgain(d.Status)
	return d
}

func (p *plan) callAgain(s machinev1alpha1.NodePoolStatus) time.Duration {
	// The plan after this one reports the generation as observed.
	if s.ObservedGeneration < p.Pool.Generation || p.hasDecided() {
		return shared.Soonest
	}
	again := shared.AtRest
	if !p.isComplete() || s.TerminatingReplicas > 0 {
		again = shared.InFlight
	}
	if after := p.Pool.Spec.Rollout.After; p.isOneByOne() && p.isAhead(after) {
		again = min(again, max(shared.Soonest, after.Sub(p.now)))
	}
	for _, m := range p.members {
		// The room that the failure domain lost is then assigned to another one.
		if t := m.decided.LoweredTime; t != nil && p.isAutoscaled() && !m.isLowered(p.now) {
			again = min(again, max(shared.Soonest, t.Add(autoscalerDelay).Sub(p.now)))
		}
	}
	return again
}
