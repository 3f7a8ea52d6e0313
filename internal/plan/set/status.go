package set

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// status counts the Machines that are left once the plan is carried out: its readers must not rely on a
// Machine that is about to be deleted. A Machine that is gone counts as terminating until the MachineGroup reported
// it: a MachineDeployment deletes an old set that has no Machines, and with it the only memory of that Machine.
func (p *plan) status() machinev1alpha1.MachineSetStatus {
	s := machinev1alpha1.MachineSetStatus{
		ObservedGeneration:  shared.ObservedGeneration(p.Set.Generation, p.Set.Status.ObservedGeneration, p.Set.Status.Conditions),
		DecidedGeneration:   p.Set.Generation,
		Selector:            p.Set.Spec.Selector.String(),
		Replicas:            int32(len(p.kept) + len(p.creates)),
		UpdatedReplicas:     int32(len(p.creates)),
		TerminatingReplicas: int32(len(p.terminating) + len(p.dropping) + len(p.dropped) + len(p.unreported())),
		Created:             p.created,
		Backoff:             p.backoff,
		Exhausted:           p.exhausted,
		StartingReplicas:    int32(p.starting()),
		BootingReplicas:     int32(p.booting()),
		UnhealthyReplicas:   p.unhealthy(),
		ReplaceableReplicas: int32(len(p.waiting())),
		RebootableReplicas:  int32(len(p.rebootsDue())),
		Replacing:           p.pairs(),
		Aging:               p.nextAged(),
		Updating:            p.updating,
		Rebooting:           p.namesOfReboots(),
		Adopting:            p.adopting,
		Creating:            slices.Concat(sets.List(p.expected), p.creates),
	}
	slices.Sort(s.Creating)
	for _, m := range p.all() {
		available, updated := p.isAvailable(m), !p.isOutdated(m)
		count(&s.ReadyReplicas, isReady(m))
		count(&s.AvailableReplicas, available)
		count(&s.UpdatedReplicas, updated)
		count(&s.UpdatedAvailableReplicas, updated && available)
		count(&s.MarkedReplicas, isMarked(m))
		count(&s.PreservedFailedReplicas, isFailed(m) && p.isPreserved(m))
	}
	s.SetAside = namesOf(p.setAside)
	// A Machine that was set aside stays listed by name until it is gone: the selector does not match it.
	for _, m := range slices.Concat(p.dropped, p.dropping, p.terminating) {
		if p.recorded.setAside.Has(m.Name) {
			s.SetAside = append(s.SetAside, m.Name)
		}
	}
	slices.Sort(s.SetAside)
	s.Dropping = append(namesOf(p.dropping), namesOf(p.dropped)...)
	s.Deleting = p.deleting()
	s.Replacements = p.replacements()
	return s
}

// isComplete reports whether all Machines of the spec are ready and, with updates in place, of the current
// template.
func (p *plan) isComplete(s machinev1alpha1.MachineSetStatus) bool {
	return s.Replicas == p.Set.Spec.Replicas && s.ReadyReplicas == p.Set.Spec.Replicas &&
		(!p.updatesInPlace() || s.UpdatedReplicas == s.Replicas)
}

func count(n *int32, yes bool) {
	if yes {
		*n++
	}
}

// generationObservedWithin is the longest time until a set that a MachineDeployment controls
// reports a new generation as observed.
const generationObservedWithin = 5 * time.Second

// callAgain returns the delay until the next reconcile: at once to carry out recorded decisions, soon while
// anything is in flight, and otherwise at the time when the next Machine becomes available, may be created,
// or is no longer preserved.
func (p *plan) callAgain(s machinev1alpha1.MachineSetStatus, ready bool) time.Duration {
	if len(p.dropped)+len(p.selected)+len(p.takesOn)+len(p.paired) > 0 || p.allowsReboots() {
		return shared.Soonest
	}
	again := shared.AtRest
	// A generation is reported as observed one plan after the plan that decided by it. A MachineDeployment
	// scales its sets several times per rollout and reads decidedGeneration. For its sets, a reconcile that
	// only reports the generation therefore waits for the next change, or a few seconds.
	if s.ObservedGeneration < p.Set.Generation {
		if metav1.GetControllerOfNoCopy(p.Set) == nil {
			return shared.Soonest
		}
		again = generationObservedWithin
	}
	if left, byHand := p.untilFreezeStalls(); byHand && left > 0 {
		again = min(again, left)
	}
	if !ready && p.moves() || len(p.terminating)+len(p.dropping) > 0 {
		again = min(again, shared.InFlight)
	}
	again = min(again, p.untilStuck())
	if p.lacksProfile() {
		again = min(again, shared.InFlight) // Nothing reports that a profile was created.
	}
	if p.backingOff() {
		again = min(again, p.backoff.Until.Sub(p.now))
	}
	if e := p.exhausted; e != nil && e.Until != nil {
		again = min(again, e.Until.Sub(p.now))
	}
	isMissing, patience := p.missing() > 0, p.patience()
	isReplaced, grace := p.isRolledOut() || p.createsNone(), p.graceForNodes()
	for _, m := range p.all() {
		if left := p.untilHangs(m, patience); isMissing && p.isOnTrial(m) && left > 0 {
			again = min(again, left)
		}
		if left, boots := p.untilBoots(m, grace); isReplaced && boots && left > 0 {
			again = min(again, left)
		}
		if isReady(m) && p.untilAvailable(m) > 0 {
			again = min(again, p.untilAvailable(m))
		}
		if isFailed(m) && m.Status.Preservation != nil && p.isPreserved(m) {
			again = min(again, m.Status.Preservation.Until.Sub(p.now))
		}
	}
	for _, m := range p.setAside {
		if m.Status.Preservation != nil {
			again = min(again, m.Status.Preservation.Until.Sub(p.now))
		}
	}
	return again
}

// moves reports whether a set that is not ready has anything to wait for.
func (p *plan) moves() bool {
	if p.missing() > 0 && !p.createsNone() && !p.backingOff() {
		return true
	}
	return slices.ContainsFunc(p.all(), func(m Machine) bool {
		return !isReady(m) && !updateFailed(m) && !(isFailed(m) && p.isPreserved(m))
	})
}
