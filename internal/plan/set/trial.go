package set

import (
	"math"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// proves reports whether the Machine got further with the template than a Machine that failed for the
// reason. For a failure without a VM, the provider ID is enough: it is the earliest proof.
func (f *fleet) proves(m Machine, reason machinev1alpha1.FailureReason) bool {
	return hasVM(m) && !isFailed(m) && !f.isOutdated(m) && (hadNode(m) || failedWithoutVM(reason))
}

// lastSuccess returns the creation time of the youngest Machine that got further than a Machine that failed
// for the reason. Earlier failures prove nothing any more.
func (p *plan) lastSuccess(reason machinev1alpha1.FailureReason) time.Time {
	var last time.Time
	for _, m := range p.all() {
		if p.proves(m, reason) && m.CreationTimestamp.After(last) {
			last = m.CreationTimestamp.Time
		}
	}
	return last
}

// room is how many Machines may be created in addition to those on trial. The first Machine of a template
// tries it out alone. A VM that exists, a proven class, or a first attempt that hangs makes room for all
// Machines that the set wants: from then on, the rate limits of the provider and the cloud limit the
// creations. After failed attempts, the trial starts with one Machine more than have proven the template,
// halved by each failure in a row. There is no room while a creation is refused that started after the last
// successful one.
//
// A Machine on trial that hangs proves nothing, good or bad. After failed attempts it makes room for two
// more, so that a trial doubles each time that all of it hangs.
func (p *plan) room() int {
	succeeded := p.lastSuccess(machinev1alpha1.FailureCreateFailed)
	refused := func(m Machine) bool { return isInFlight(m) && inError(m) && m.CreationTimestamp.After(succeeded) }
	if slices.ContainsFunc(p.all(), refused) {
		return 0
	}
	proven := 0
	for _, m := range p.all() {
		if p.proves(m, p.lastFailure()) {
			proven++
		}
	}
	patience := p.patience()
	slow := func(m Machine) bool { return p.isOnTrial(m) && p.untilHangs(m, patience) <= 0 }
	if p.backoff == nil && (proven > 0 || p.isClassProven() || p.isFirstTry() && slices.ContainsFunc(p.all(), slow)) {
		return math.MaxInt32
	}
	room := 1
	if p.backoff != nil {
		room = max(1, (proven+1)>>min(p.backoff.Failures, 30))
	}
	for _, m := range p.all() {
		switch {
		case !p.isOnTrial(m):
		case p.untilHangs(m, patience) <= 0:
			room++
		default:
			room--
		}
	}
	return max(0, room)
}

// isOnTrial reports whether the Machine belongs to the current attempt, and it is not known yet whether it
// gets further than the Machines that failed.
func (p *plan) isOnTrial(m Machine) bool {
	if failedWithoutVM(p.lastFailure()) {
		return isInFlight(m) && !p.failedBefore(m)
	}
	return m.Status.Phase.IsOnItsWay() && !p.failedBefore(m)
}

// A Machine on trial hangs if it has waited for this long, and the provider reports no error.
const (
	// firstPatience is the time for the first VM of a template. As a rule, a cloud refuses a VM that it
	// cannot create within seconds of the request. If the set waited for the first VM of a cloud whose VMs
	// take minutes, it would need twice the time that the cloud needs.
	firstPatience = 10 * time.Second
	// vmPatience is the time for a VM that was refused, and for VMs after failed attempts. The requests for
	// a template that is refused in the end double each time that this passes.
	vmPatience = time.Minute
	// joinPatience is the time for a Node, after failed joins. It is less than the longest
	// backoff: the next creation is never further away than that.
	joinPatience = 5 * time.Minute
)

// isFirstTry reports whether no attempt has failed, no VM in flight was refused, and no Machine of the set
// is being deleted: a set that loses the Machines that it creates does not create more sooner.
func (p *plan) isFirstTry() bool {
	refused := func(m Machine) bool { return isInFlight(m) && m.Status.RefusedUntil != nil }
	return p.backoff == nil && len(p.terminating) == 0 && !slices.ContainsFunc(p.all(), refused)
}

// patience is the time that the VM of a Machine on trial may take.
func (p *plan) patience() time.Duration {
	if p.isFirstTry() {
		return firstPatience
	}
	return vmPatience
}

// untilHangs is how long the Machine may still wait until it counts as hanging, with the patience for VMs.
// It is infinite for a Machine whose VM is not requested yet: that Machine does not wait for the provider,
// and further Machines would wait as well.
func (p *plan) untilHangs(m Machine, patience time.Duration) time.Duration {
	switch {
	case m.Status.Phase == "" || m.Status.Phase == machinev1alpha1.MachinePending || isInFlight(m) && inError(m):
		return math.MaxInt64
	case !failedWithoutVM(p.lastFailure()):
		patience = joinPatience
	}
	return patience - p.now.Sub(shared.StartsSince(m.Machine, m.Status.RefusedUntil))
}

// isClassProven reports whether Machines of the template's class run in its failure domain: in another set
// or, with another version, in this one.
func (p *plan) isClassProven() bool {
	t := p.Set.Spec.Template.Spec
	return p.Set.Annotations[machinev1alpha1.AnnotationClassProven] == "true" || slices.ContainsFunc(p.all(), func(m Machine) bool {
		return m.Status.Phase == machinev1alpha1.MachineRunning && m.Spec.ClassRef.Equal(t.ClassRef) && ptr.Equal(m.Spec.FailureDomain, t.FailureDomain)
	})
}
