package set

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// toReplace reports whether a Machine is to be replaced: it failed, or a replacement was requested.
func (f *fleet) toReplace(m Machine) bool {
	return !f.isPreserved(m) && (isFailed(m) || asksForAnother(m))
}

// toRetry reports whether the creation of the Machine is to be retried with another Machine. The retry
// makes nothing unavailable, and the failed Machine is already counted in the budget.
func (f *fleet) toRetry(m Machine) bool {
	return isFailed(m) && !hadNode(m) && !f.isPreserved(m)
}

// waiting returns the Machines that are to be replaced and have no replacement under way.
func (p *plan) waiting() []Machine {
	paired := sets.New[string]()
	for _, r := range p.pairs() {
		paired.Insert(r.Machine, r.By)
	}
	var out []Machine
	for _, m := range p.all() {
		if p.toReplace(m) && !paired.Has(m.Name) {
			out = append(out, m)
		}
	}
	return out
}

// isRebootDue reports whether the Machine waits for its set to allow the reboot that its health requires.
func (f *fleet) isRebootDue(m Machine) bool {
	u := m.Status.Unhealthy
	return m.Status.Phase == machinev1alpha1.MachineUnknown && u != nil && u.Until == nil && u.RebootID != "" && !f.isPreserved(m)
}

// rebootsDue returns the Machines whose reboots are due and not allowed yet, by their names. Those that are to be replaced
// are not rebooted.
func (p *plan) rebootsDue() []Machine {
	var out []Machine
	for _, m := range p.all() {
		if p.isRebootDue(m) && !p.toReplace(m) && !p.rebooting.Has(m.Name) {
			out = append(out, m)
		}
	}
	return out
}

// isUnhealthy reports whether the Machine counts towards the share above which no Machine is replaced. A
// Machine whose VM is gone does not count: it can only be replaced. A VM that is reported as gone while its
// Node works does count: such a report may be wrong about all VMs.
func (f *fleet) isUnhealthy(m Machine) bool {
	switch {
	case f.isPreserved(m), failedForRoom(m), isConfirmedLost(m):
		return false
	case isFailed(m), m.Status.Phase == machinev1alpha1.MachineUnknown:
		return true
	}
	return isInFlight(m) && inError(m)
}

func (p *plan) unhealthy() int32 { return p.unhealthyOf(p.all()) }

func (f *fleet) unhealthyOf(ms []Machine) int32 {
	n := int32(0)
	for _, m := range ms {
		count(&n, f.isUnhealthy(m))
	}
	return n
}

func count(n *int32, yes bool) {
	if yes {
		*n++
	}
}

// isWithinLimits reports whether so few Machines are unhealthy that some may be replaced or rebooted. Those that this
// plan deletes still count.
func (p *plan) isWithinLimits() bool {
	return p.unlimited == nil && p.limits.Allows(p.unhealthy()+p.unhealthyOf(p.dropped))
}

// isStarting reports whether the Machine is starting, still to be created, or out of use for a reboot.
func (p *plan) isStarting(m Machine) bool {
	return m.Status.Phase.IsOnItsWay() || isRebooting(m) || p.rebooting.Has(m.Name) || !p.createsNone() && p.toRetry(m)
}

// starting is the number of Machines that are starting or still to be created. A Machine that failed before
// it had a Node is still to be created. A set of a deployment that creates no Machines counts its missing
// ones, which another set creates, until its replicas are lowered. A standalone one counts the Machines
// that it deletes instead, because its replicas stay.
func (p *plan) starting() int {
	n := max(0, p.wanted()+len(p.paired)-len(p.kept))
	if p.createsNone() && metav1.GetControllerOf(p.Set) == nil {
		n = len(p.dropping) + len(p.dropped)
	}
	for _, m := range p.all() {
		if p.isStarting(m) {
			n++
		}
	}
	return n
}

// aboveReplicas is the number of Machines that wait for their available replacements. They are above
// replicas all the while.
func (p *plan) aboveReplicas() int {
	if p.createsNone() {
		return 0
	}
	return len(p.replacing) + len(p.paired)
}

// nodeGrace is the time for which a VM without a Node may still turn out to have one. After a restore, all
// Machines return to VMs whose Nodes run, and learn of their Nodes after their VMs. In a set with Ready
// Machines, a Node is worth waiting for as long as joinPatience.
const nodeGrace = time.Minute

// graceForNodes is the time that a Machine with a VM may take to get a Node until it counts as booting.
func (p *plan) graceForNodes() time.Duration {
	if slices.ContainsFunc(p.all(), isReady) {
		return joinPatience
	}
	return nodeGrace
}

// untilBoots returns the time until a Machine counts as booting, with the grace for Nodes. It is false for a
// Machine that has a Node, or may have one.
func (f *fleet) untilBoots(m Machine, grace time.Duration) (time.Duration, bool) {
	if !m.Status.Phase.IsOnItsWay() || hadNode(m) || m.Status.Join.At(machinev1alpha1.JoinNodeRegistered) != nil {
		return 0, false
	}
	if !hasVM(m) {
		return 0, true
	}
	ran := m.Status.Join.At(machinev1alpha1.JoinVMRunning)
	if ran == nil {
		return 0, false
	}
	return grace - f.now.Sub(ran.Time), true
}

// booting is the number of missing Machines and of those that serve no pods. It is 0 unless a rollout
// replaces the set: only the rollout reads it.
func (p *plan) booting() int {
	if !p.isRolledOut() && !p.createsNone() {
		return 0
	}
	n, grace := p.missing(), p.graceForNodes()
	for _, m := range p.all() {
		if left, boots := p.untilBoots(m, grace); boots && left <= 0 {
			n++
		}
	}
	return n
}
