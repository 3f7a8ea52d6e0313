package set

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// resumeReboots keeps the Machines listed that were allowed to reboot before, until their reboots have ended. One that has
// not begun may be called off.
func (p *plan) resumeReboots() {
	for _, m := range p.all() {
		mayBegin := p.isRebootDue(m) && !p.Safety.Frozen && !p.toReplace(m)
		if p.recorded.rebooting.Has(m.Name) && (mayBegin || isRebootedByHealth(m)) {
			p.rebooting.Insert(m.Name)
		}
	}
}

// reboot allows reboots that are due, as long as the budget of replacements lasts: a Machine that reboots is starting. The
// reboot begins when the decision was recorded. It needs no class: nothing is created.
func (p *plan) reboot() {
	due := p.rebootsDue()
	if len(due) == 0 || p.Safety.Frozen || !p.isWithinLimits() {
		return
	}
	starting, above := p.starting(), p.aboveReplicas()
	for _, m := range due {
		inFlight := above
		if p.recorded.replacements.Has(m.Name) {
			inFlight-- // The Machine that it replaces waits for it, and it must not wait for that one.
		}
		if max(starting, inFlight) >= int(p.limits.InFlight) {
			continue
		}
		p.rebooting.Insert(m.Name)
		p.events = append(p.events, shared.Event{
			Reason:  machinev1alpha1.EventRebootingMachine,
			Message: fmt.Sprintf("Machine %s is to be rebooted: its Node is unhealthy", m.Name),
		})
		starting++
	}
}

// allowsReboots reports whether this plan allows a reboot: its permission follows once the status lists it.
func (p *plan) allowsReboots() bool {
	return len(p.rebooting.Difference(p.recorded.rebooting)) > 0
}

// namesOfReboots are sorted, as the status lists them.
func (p *plan) namesOfReboots() []string {
	if len(p.rebooting) == 0 {
		return nil
	}
	return sets.List(p.rebooting)
}
