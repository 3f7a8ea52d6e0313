package orphans

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// maxInFlight is the number of orphans that are deleted at once.
	maxInFlight = 10
	// maxListed is the number of orphans that the status names.
	maxListed = 20
	// fleetPerOrphan is the number of claimed VMs that must exist for each orphan that is deleted
	// without a confirmation.
	fleetPerOrphan = 5
)

// A VM at a cloud, and the Machine that it was created for by its tags.
type VM struct {
	ExternalName string
	ProviderID   string
	// Installation that created it.
	Installation string
	// Cluster is the name of the configuration of the target cluster that it was created for.
	Cluster string
	Owner   Owner
}

// An Owner is the Machine that a VM was created for. At a cloud whose tags name no Machine, only
// the name of the VM identifies it: Machine and UID are empty.
type Owner struct {
	Namespace, Machine string
	UID                types.UID
	// VMName is the name of the VM and of its VM resource, empty if it is unknown.
	VMName string
}

// isNamed reports whether the tags of the VM name the Machine.
func (o Owner) isNamed() bool { return o.Machine != "" }

// Standing reports which objects of an Owner exist. If one exists, the VM is no orphan.
type Standing struct {
	// Machine with the Owner's name and UID exists.
	Machine bool
	// Resource means that the VM resource of this Machine exists.
	Resource bool
}

// An Unclaimed VM is one that the inventory reports.
type Unclaimed struct {
	VM
	FirstSeen   time.Time
	ConfirmedAt *time.Time
	Standing
	Node Node
}

// confirmed reports whether two reads, the grace period apart, found it unclaimed.
func (u Unclaimed) confirmed(grace time.Duration) bool {
	return u.ConfirmedAt != nil && u.ConfirmedAt.Sub(u.FirstSeen) >= grace
}

// An Adopted VM is one for which the collector composes a VM resource.
type Adopted struct {
	VM
	Standing
	Node Node
	// Observed is false if the collector's references do not name the resource: see [shared.Child].
	Observed bool
	// Terminating means that the resource is being deleted.
	Terminating bool
	// MayDelete means that the resource may delete the VM.
	MayDelete bool
	// Seen means that the provider found the VM, and Missing that it did not.
	Seen, Missing bool
	// Trouble is the provider's error, "" if there is none.
	Trouble string
}

// Inventory is the report of the collector's inventory.
type Inventory struct {
	// Problem is the reason why nothing can be decided by the report, "" if it is usable.
	Problem string
	// Pending means that the report does not answer the latest request yet: nothing can be decided
	// until it does.
	Pending bool
	// Count of all unclaimed VMs, and the ones that the report names.
	Count     int32
	Unclaimed []Unclaimed
	// Claimed is the number of claimed VMs.
	Claimed int32
	// Unused resources other than VMs. They have been unused for the grace period.
	Unused []Unused
}

// An Unused resource is not a VM. HasMachine means that the Machine exists that it was created for:
// a Machine may have its network interface before its VM.
type Unused struct {
	machinev1alpha1.UnusedResource
	HasMachine bool
}

// Observed is the view of the step.
type Observed struct {
	Collector    *machinev1alpha1.OrphanCollector
	Installation string
	// InstallationProblem is the reason why Installation is unknown.
	InstallationProblem *shared.Problem
	// Gone are the former installations that are proven not to run any more.
	Gone      map[string]bool
	Inventory Inventory
	Adopted   []Adopted
}

// A Resource is the desired state of a VM resource.
type Resource struct {
	VM
	// MayDelete gives it the right to delete the VM.
	MayDelete bool
}

// Ignored returns the external names of VMs that the inventory need not report: those that have a
// resource of the collector, or will have one. Each change of them requests a new read of the
// cloud, so that no decision uses an old report.
func (d Decision) Ignored() []string {
	out := slices.Clone(d.terminating)
	for _, r := range d.Resources {
		out = append(out, r.ExternalName)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A Search for the Node of a VM.
type Search struct {
	VM
	// MayDelete is that of the VM's Resource. A change of it requests a new search, because each
	// pass requires a search that was carried out after the previous pass.
	Adopted, MayDelete bool
}

// Decision is the output of the step.
type Decision struct {
	Resources []Resource
	// Searches for the Nodes of VMs.
	Searches []Search
	Status   machinev1alpha1.OrphanCollectorStatus
	// Ready means that the inventory's report is usable.
	shared.Report

	terminating []string
}

// Plan decides which unclaimed VMs are adopted and deleted.
func Plan(o Observed) Decision {
	p := &plan{Observed: o}
	p.judgeAdopted()
	p.judgeUnclaimed()
	p.adopt()

	d := Decision{Resources: p.resources, Searches: p.searches}
	d.CallAgain = shared.AtRest
	for _, a := range o.Adopted {
		if a.Terminating {
			d.terminating = append(d.terminating, a.ExternalName)
		}
	}
	if p.waiting || len(o.Adopted)+len(p.resources) > 0 || p.blind() {
		d.CallAgain = shared.InFlight
	}
	d.Status = p.status()
	found := p.found()
	d.Conditions = []shared.Condition{found}
	d.Ready = p.problem() == "" && found.Reason != machinev1alpha1.ReasonInventoryPending
	d.Events = p.events(d.Status, found)
	return d
}

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

func (s Standing) stands() bool { return s.Machine || s.Resource }

func (a Adopted) stands() bool { return a.Standing.stands() || a.Node.Machine != "" }

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

// judgeAdopted takes each adopted VM one pass further, or releases it.
func (p *plan) judgeAdopted() {
	for _, a := range p.Adopted {
		r := Resource{VM: a.VM, MayDelete: a.MayDelete}
		state := machinev1alpha1.OrphanAdopted
		message := a.Trouble
		keep := true
		switch {
		case a.Terminating:
			keep, state = false, machinev1alpha1.OrphanDeleting
			if !a.MayDelete {
				continue // It is released.
			}
		case !a.Observed:
			// The references must name it again before it can be changed.
		case a.stands() || !p.deletes() || !p.isProven(a.VM) || a.Node.Ready:
			// The right to delete is removed first, then the resource.
			keep, r.MayDelete = a.MayDelete, false
			if !keep {
				continue
			}
		case a.Missing:
			keep = false // The VM does not exist any more.
		case p.blind():
			message = cmp.Or(p.problem(), message)
		case p.isHeld(a.VM):
			message, r.MayDelete = tooMany, false
		case !a.Node.Looked:
		case !p.mayGo(a.VM, a.Node):
			message, r.MayDelete = a.Node.hold(), false
		case !a.Seen:
		case !a.MayDelete:
			r.MayDelete = true
		default:
			keep, state = false, machinev1alpha1.OrphanDeleting
		}
		if keep {
			p.resources = append(p.resources, r)
			p.searches = append(p.searches, Search{VM: a.VM, Adopted: true, MayDelete: r.MayDelete})
		}
		p.taken = append(p.taken, orphan(a.VM, a.Node, state, message))
	}
}

// judgeUnclaimed finds the orphans among the unclaimed VMs.
func (p *plan) judgeUnclaimed() {
	for _, u := range p.Inventory.Unclaimed {
		switch {
		case p.mayBeOrphan(u):
			p.waiting = p.waiting || !u.Node.Looked
			p.searches = append(p.searches, Search{VM: u.VM})
			if p.isOrphan(u) && !p.blind() {
				p.left = append(p.left, orphan(u.VM, u.Node, machinev1alpha1.OrphanFound, p.hold(u)))
			}
		case u.Owner != (Owner{}) && u.confirmed(p.Collector.Spec.GracePeriod.Duration):
			p.waiting = true
		}
	}
}

// hold explains why an orphan is not deleted regardless of the limit, empty if it may be deleted.
func (p *plan) hold(u Unclaimed) string {
	switch {
	case !p.isProven(u.VM):
		p.unproven++
		return unproven(u.Installation)
	case p.mayGo(u.VM, u.Node):
		return ""
	case u.Node.Ready:
		p.inUse++
	case u.Node.Problem != "":
		p.unseen++
	default:
		p.pending++
	}
	return u.Node.hold()
}

const tooMany = "held: there are more orphans than may be deleted without a confirmation"

func unproven(installation string) string {
	return fmt.Sprintf("not deleted: the ConfigMap %s/%s does not have it that installation %q was replaced or lost",
		machinev1alpha1.NamespaceOfInstallations, machinev1alpha1.ConfigMapOfInstallations, installation)
}

// adopt orphans, up to maxInFlight.
func (p *plan) adopt() {
	if !p.deletes() || p.blind() {
		return
	}
	room := max(0, maxInFlight-len(p.taken))
	for _, u := range p.Inventory.Unclaimed {
		i := slices.IndexFunc(p.left, func(o machinev1alpha1.Orphan) bool { return o.ExternalName == u.ExternalName })
		if i < 0 || room == 0 || p.left[i].Message != "" || p.isHeld(u.VM) {
			continue
		}
		room--
		p.left = slices.Delete(p.left, i, i+1)
		p.resources = append(p.resources, Resource{VM: u.VM})
		p.searches[p.searchOf(u.VM)].Adopted = true
		p.taken = append(p.taken, orphan(u.VM, u.Node, machinev1alpha1.OrphanAdopted, ""))
	}
}

func (p *plan) searchOf(vm VM) int {
	return slices.IndexFunc(p.searches, func(s Search) bool { return s.ExternalName == vm.ExternalName })
}

// maxMessage is the length to which a provider's error is shortened in the status.
const maxMessage = 256

func orphan(vm VM, node Node, state machinev1alpha1.OrphanState, message string) machinev1alpha1.Orphan {
	return machinev1alpha1.Orphan{
		ExternalName: vm.ExternalName, ProviderID: vm.ProviderID,
		Name: vm.Owner.VMName, Namespace: vm.Owner.Namespace, Machine: vm.Owner.Machine,
		Node: node.Name, NodeReady: node.Ready,
		State: state, Message: text.Shorten(message, maxMessage),
	}
}

// status keeps the recorded orphans while nothing can be decided.
func (p *plan) status() machinev1alpha1.OrphanCollectorStatus {
	was := p.Collector.Status
	s := machinev1alpha1.OrphanCollectorStatus{
		ObservedGeneration: p.Collector.Generation,
		Installation:       cmp.Or(p.Installation, was.Installation),
		Unclaimed:          p.Inventory.Count,
	}
	all := p.taken
	byName := func(a, b machinev1alpha1.Orphan) int { return cmp.Compare(a.ExternalName, b.ExternalName) }
	slices.SortFunc(all, byName)
	left := p.left
	if p.blind() {
		s.Unclaimed = was.Unclaimed
		for _, o := range was.VirtualMachines {
			if o.State == machinev1alpha1.OrphanFound && !slices.ContainsFunc(all, func(a machinev1alpha1.Orphan) bool { return a.ExternalName == o.ExternalName }) {
				left = append(left, o)
			}
		}
	}
	slices.SortFunc(left, byName)
	all = append(all, left...)
	s.Orphans = int32(len(all))
	if p.blind() {
		s.Orphans = max(s.Orphans, was.Orphans)
	}
	s.VirtualMachines = all[:min(len(all), maxListed)]
	s.Resources = p.unused()
	return s
}

// unused returns the unused resources other than VMs. They are never deleted: see docs/orphans.md.
func (p *plan) unused() []machinev1alpha1.UnusedResource {
	if p.blind() {
		return p.Collector.Status.Resources
	}
	var out []machinev1alpha1.UnusedResource
	for _, u := range p.Inventory.Unused {
		if !u.HasMachine && len(out) < maxListed {
			out = append(out, u.UnusedResource)
		}
	}
	return out
}
