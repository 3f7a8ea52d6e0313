package orphans

import (
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

type plan struct {
	Observed

	resources []Resource
	searches  []Search
	// orphans that are adopted or deleted, and those that are only reported.
	taken, left []machinev1alpha1.Orphan
	// unproven, inUse, unseen and pending count orphans that are only reported: see hold.
	unproven, inUse, unseen, pending int
	// waiting for the end of a Machine or VM resource, or for a search. No event requeues the
	// collector then.
	waiting bool
}

// problem returns the reason why nothing can be decided, "" if there is none.
func (p *plan) problem() string {
	if p.InstallationProblem != nil {
		return p.InstallationProblem.Message
	}
	return p.Inventory.Problem
}

// blind reports whether nothing can be decided now.
func (p *plan) blind() bool { return p.problem() != "" || p.Inventory.Pending }

func (p *plan) deletes() bool {
	return p.Collector.Spec.Policy == machinev1alpha1.OrphanDelete && p.Collector.DeletionTimestamp == nil
}

// limit is the number of orphans that may be deleted without a confirmation.
func (p *plan) limit() int {
	return min(int(p.Collector.Spec.MaxOrphans), max(1, int(p.Inventory.Claimed)/fleetPerOrphan))
}

// tooMany reports whether there are so many orphans that a user must confirm them first.
func (p *plan) tooMany() bool { return p.open() > p.limit() }

// open counts the orphans whose deletion has neither begun nor been confirmed.
func (p *plan) open() int {
	n := 0
	for _, a := range p.Adopted {
		if !a.Terminating && !a.stands() && p.isProven(a.VM) && !p.isConfirmed(a.VM) {
			n++
		}
	}
	for _, u := range p.Inventory.Unclaimed {
		if p.isOrphan(u) && p.isProven(u.VM) && !p.isConfirmed(u.VM) {
			n++
		}
	}
	return n
}

// isProven reports whether no other control plane can run the VM: its installation is this one, or
// one that is proven to be gone.
func (p *plan) isProven(vm VM) bool {
	return vm.Installation == p.Installation || p.Gone[vm.Installation]
}

// isConfirmed reports whether a user confirmed that the VM may be deleted.
func (p *plan) isConfirmed(vm VM) bool {
	return slices.Contains(p.Collector.Spec.ConfirmedOrphans, vm.ExternalName)
}

// isHeld reports whether an orphan waits for a confirmation by a user.
func (p *plan) isHeld(vm VM) bool { return p.tooMany() && !p.isConfirmed(vm) }

const (
	// maxInFlight is the number of orphans that are deleted at once.
	maxInFlight = 10
	// maxListed is the number of orphans that the status names.
	maxListed = 20
	// fleetPerOrphan is the number of claimed VMs that must exist for each orphan that is deleted
	// without a confirmation.
	fleetPerOrphan = 5
)

// mayBeOrphan reports whether an unclaimed VM that is not adopted has neither a Machine nor a VM
// resource by its tags.
func (p *plan) mayBeOrphan(u Unclaimed) bool {
	return !u.stands() && u.confirmed(p.Collector.Spec.GracePeriod.Duration) && !p.isAdopted(u.VM)
}

// isOrphan reports whether a VM that is not adopted is an orphan. The search for its Node also
// finds the Machine whose VM has this name. Until that is done, a VM whose tags name no Machine is
// no orphan.
func (p *plan) isOrphan(u Unclaimed) bool {
	return p.mayBeOrphan(u) && u.Node.Machine == "" && (u.Owner.isNamed() || u.Node.Looked)
}

func (p *plan) isAdopted(vm VM) bool {
	return slices.ContainsFunc(p.Adopted, func(a Adopted) bool { return a.ExternalName == vm.ExternalName })
}
