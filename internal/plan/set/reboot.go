package set

import (
	"fmt"
	"time"

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

// rebootTimeoutProblems reports a timeout of reboots that is shorter than a Machine of the set took to boot: its reboots have
// more time. Without spec.health.reboot, the timeout is no wish of the user.
func (f *fleet) rebootTimeoutProblems() []shared.Problem {
	reboot := f.Set.Spec.Template.Spec.Health.Reboot
	if reboot == nil {
		return nil
	}
	slowest, boot := "", shared.Timeout(reboot.Timeout, machinev1alpha1.DefaultRebootTimeout)
	for _, m := range f.active {
		if first := shared.FirstBoot(m.Status.Join); first > boot {
			slowest, boot = m.Name, first
		}
	}
	if slowest == "" {
		return nil
	}
	return []shared.Problem{{
		Reason: machinev1alpha1.ReasonRebootTimeoutShort,
		Message: fmt.Sprintf("spec.template.spec.health.reboot.timeout: %s is shorter than the %s that Machine %s took from its running VM to its Ready Node; each reboot has at least the time of the first boot of its Machine, %s at most",
			shared.Timeout(reboot.Timeout, machinev1alpha1.DefaultRebootTimeout), boot.Round(time.Second), slowest, time.Hour),
	}}
}

// namesOfReboots are sorted, as the status lists them.
func (p *plan) namesOfReboots() []string {
	if len(p.rebooting) == 0 {
		return nil
	}
	return sets.List(p.rebooting)
}
