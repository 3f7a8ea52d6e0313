package set

import (
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/plan/remediation"
)

// A stage adds to the decisions of earlier stages. It calls no other stage.
type stage func(*plan)

// stages of a plan, in their order.
var stages = []stage{
	(*plan).adopt,
	(*plan).deleteSetAside,
	(*plan).resumeReplacing,
	(*plan).resumeUpdates,
	(*plan).resumeReboots,
	(*plan).recover,
	(*plan).setAsideMarked,
	(*plan).scaleDown,
	(*plan).backOff,
	(*plan).retry,
	(*plan).handOver,
	(*plan).replace,
	(*plan).reboot,
	(*plan).remake,
	(*plan).create,
	(*plan).createWithoutVMs,
	(*plan).exhaust,
	(*plan).selectUpdates,
	(*plan).replaceAged,
}

// Plan computes the decision for the set at a time. Crossplane reconciles the set again when the set changes,
// when the digest of its Machines in the MachineGroup changes (internal/plan/group/digest.go), and after
// Decision.CallAgain at the latest.
func Plan(now time.Time, o Observed) Decision {
	f := fleetOf(now, o)
	p := newPlan(f)
	for _, decide := range stages {
		decide(p)
	}
	return p.decide()
}

func (p *plan) decide() Decision {
	d, allowed := Decision{Status: p.status()}, p.remediationAllowed()
	d.Conditions = p.conditions(allowed)

	for _, m := range slices.Concat(p.kept, p.dropped, p.setAside) {
		d.Machines = append(d.Machines, p.desired(m))
	}
	for _, name := range p.creates {
		d.Machines = append(d.Machines, p.ordered(name))
	}
	for _, m := range p.dropping {
		d.Delete = append(d.Delete, m.Name)
	}

	for _, m := range p.terminating {
		d.Terminating = append(d.Terminating, m.Name)
	}

	d.Vanished, d.Templates = p.vanished(d.Status), p.Templates
	d.IsTraced = slices.ContainsFunc(p.Machines, isTraced)
	d.Ready = p.isComplete(d.Status)
	d.Events = slices.Concat(p.conditionEvents(d.Conditions), remediation.Events(allowed, p.Set.Status.Conditions), p.events)
	d.Conditions = append(d.Conditions, p.kstatus(d.Status, d.Ready, d.Conditions, allowed)...)
	d.CallAgain = p.callAgain(d.Status, d.Ready)
	return d
}
