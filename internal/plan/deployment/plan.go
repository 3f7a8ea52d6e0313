package deployment

import (
	"slices"
	"time"
)

// A stage adds to the decisions of the earlier stages. It calls no other stage.
type stage func(*plan)

// stages of a plan, in their order.
var stages = []stage{
	(*plan).updateRevisions,
	(*plan).scale,
	(*plan).assignBudget,
	(*plan).pruneEmptySets,
}

// Plan decides the MachineSets of a deployment.
func Plan(now time.Time, o Observed) Decision {
	p := newPlan(fleetOf(now, o))
	for _, decide := range stages {
		decide(p)
	}
	return p.decide()
}

// pruneEmptySets of old templates: the status has the revisions for rollbacks. A set that is not
// observed must be composed again before it can be deleted. A set with Machines that it set aside
// is kept, because its deletion would delete them too. Crossplane deletes a set before it writes the
// status, so a set is kept until the status has its replacements.
func (p *plan) pruneEmptySets() {
	p.sets = slices.DeleteFunc(p.sets, func(s *set) bool { return p.isPrunable(s) && p.hasReplacementsOf(s) })
}

func (p *plan) decide() Decision {
	d := Decision{Analysis: p.analysisRun(), Turn: p.rolloutTurn(), Status: p.status()}
	for _, s := range p.sets {
		d.Sets = append(d.Sets, Desired{MachineSet: p.composed(s), Ready: s.isReady()})
	}
	// The template of the spec is not rolled out if it was rejected.
	d.Ready = p.isComplete() && !p.isSpecRejected()
	d.Conditions = p.conditions(d.Status)
	d.CallAgain = p.callAgain(d.Status)
	if until, held := p.holdMessages(d.Conditions); held {
		d.CallAgain = min(d.CallAgain, until)
	}
	d.Events = p.allEvents(d.Conditions)
	return d
}
