package set

import (
	"fmt"
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/aging"
)

// replaceAged replaces the Machine that the MachineDeployment names, if all Machines are available and nothing else is in
// progress: a Machine that failed is replaced first, and the replacement of an earlier one is over.
func (p *plan) replaceAged() {
	a := p.Set.Spec.Aging
	if a == nil || a.Replace == "" || !p.mayCreate() || !p.mayReplace() || !p.isWhole() {
		return
	}
	m, there := p.find(a.Replace)
	if !there || !p.isAged(m) {
		return
	}
	if a.Order == machinev1alpha1.CreateFirst {
		r := machinev1alpha1.Replacement{Machine: m.Name, By: p.reserve()}
		p.paired = append(p.paired, r)
		p.events = append(p.events, agedEvent(m, a, r.By))
		return
	}
	p.events = append(p.events, agedEvent(m, a, ""))
	p.dropReplaced(m)
}

// isWhole reports whether the set has all its Machines, all of them are available, and none is about to be created,
// deleted, updated or rebooted.
func (p *plan) isWhole() bool {
	settled := len(p.kept) == int(p.Set.Spec.Replicas) && p.exhausted == nil && len(p.pairs())+len(p.creates)+len(p.dropped)+len(p.dropping)+
		len(p.terminating)+len(p.setAside)+len(p.updating)+len(p.selected)+len(p.takesOn)+len(p.rebooting)+len(p.unreported()) == 0
	return settled && !slices.ContainsFunc(p.all(), func(m Machine) bool { return !p.isAvailable(m) })
}

// nextAged is the Machine that is due next, nil without an age.
func (p *plan) nextAged() *machinev1alpha1.AgingMachine {
	a := p.Set.Spec.Aging
	if a == nil {
		return nil
	}
	var ms []*machinev1alpha1.Machine
	for _, m := range p.all() {
		if p.mayAge(m) {
			ms = append(ms, m.Machine)
		}
	}
	return aging.Next(ms, a.MaxAge.Duration)
}

func agedEvent(m Machine, a *machinev1alpha1.MachineSetAging, by string) shared.Event {
	e := shared.Event{Reason: machinev1alpha1.EventReplacingMachine, Message: "Replacing Machine " + m.Name}
	if by != "" {
		e.Message += " by " + by
	}
	e.Message += fmt.Sprintf(", which is due since %s by its maximum age of %s", aging.Due(m.Machine, a.MaxAge.Duration).Format(time.RFC3339), a.MaxAge.Duration)
	return e
}
