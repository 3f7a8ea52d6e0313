package set

import (
	"slices"

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

// moves reports whether a set that is not ready has anything to wait for.
func (p *plan) moves() bool {
	if p.missing() > 0 && !p.createsNone() && !p.backingOff() {
		return true
	}
	return slices.ContainsFunc(p.all(), func(m Machine) bool {
		return !isReady(m) && !updateFailed(m) && !(isFailed(m) && p.isPreserved(m))
	})
}
