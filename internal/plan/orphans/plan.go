package orphans

import (
	"cmp"
	"fmt"
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/text"
)

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
