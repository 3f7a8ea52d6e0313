package orphans

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// maxNamed is the number of VMs that a message names.
const maxNamed = 5

func (p *plan) found() shared.Condition {
	if was := meta.FindStatusCondition(p.Collector.Status.Conditions, machinev1alpha1.ConditionOrphansFound); p.problem() == "" && p.Inventory.Pending && was != nil {
		return shared.Condition{Type: was.Type, Status: string(was.Status), Reason: was.Reason, Message: was.Message}
	}
	c := shared.Condition{Type: machinev1alpha1.ConditionOrphansFound, Status: string(metav1.ConditionTrue)}
	n := len(p.taken) + len(p.left)
	all := fmt.Sprintf("%d VMs have no Machine", n)
	if n == 1 {
		all = "1 VM has no Machine"
	}
	switch {
	case p.problem() != "":
		c.Status, c.Reason, c.Message = string(metav1.ConditionUnknown), machinev1alpha1.ReasonInventoryUnavailable, p.problem()
		if p.InstallationProblem != nil {
			c.Reason = p.InstallationProblem.Reason
		}
	case p.Inventory.Pending:
		c.Status, c.Reason, c.Message = string(metav1.ConditionUnknown), machinev1alpha1.ReasonInventoryPending, "the cloud was not looked at yet"
	case n == 0:
		c.Status, c.Reason = string(metav1.ConditionFalse), machinev1alpha1.ReasonNoOrphans
	case !p.deletes():
		c.Reason = machinev1alpha1.ReasonReported
		c.Message = fmt.Sprintf("%s: %s; with spec.policy: Delete they would be deleted", all, list(p.taken, p.left))
	case p.tooMany():
		c.Reason = machinev1alpha1.ReasonTooManyOrphans
		c.Message = fmt.Sprintf("%s: %s; %d are not confirmed, and %d may be deleted without: the least of spec.maxOrphans, %d, and a fifth of the %d claimed VMs, but 1 in any case; if they are really of no use, name them in spec.confirmedOrphans",
			all, list(p.taken, p.left), p.open(), p.limit(), p.Collector.Spec.MaxOrphans, p.Inventory.Claimed)
	case p.unproven == n:
		c.Reason = machinev1alpha1.ReasonInstallationNotGone
		c.Message = fmt.Sprintf("%s: %s; %s", all, list(p.left), p.left[0].Message)
	case p.held() == n:
		c.Reason = machinev1alpha1.ReasonOrphansInUse
		if p.inUse+p.unseen == 0 {
			c.Reason = machinev1alpha1.ReasonNodesPending
		}
		c.Message = fmt.Sprintf("%s: %s; none is deleted: %s", all, list(p.left), p.describeHeld())
	default:
		c.Reason = machinev1alpha1.ReasonDeleting
		c.Message = fmt.Sprintf("%s: %s; they are deleted", all, list(p.taken, p.left))
		if p.held() > 0 {
			c.Message += ", except " + p.describeHeld()
		}
	}
	return c
}

// held is the number of orphans that are not deleted, regardless of the limit.
func (p *plan) held() int { return p.unproven + p.inUse + p.unseen + p.pending }

func (p *plan) describeHeld() string {
	var parts []string
	for _, h := range []struct {
		n    int
		that string
	}{
		{p.inUse, "whose Node is Ready"},
		{p.unseen, "of which it is not known whether a Node is Ready"},
		{p.pending, "whose Node is looked for"},
		{p.unproven, "of installations that are not proven to be gone"},
	} {
		if h.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", h.n, h.that))
		}
	}
	return strings.Join(parts, ", ")
}

// events reports the changes since the observed status.
func (p *plan) events(s machinev1alpha1.OrphanCollectorStatus, found shared.Condition) []shared.Event {
	var out []shared.Event
	if (p.problem() != "" || found.Reason == machinev1alpha1.ReasonTooManyOrphans) && found.IsNew(p.Collector.Status.Conditions) {
		out = append(out, shared.Event{Warning: true, Reason: found.Reason, Message: found.Message})
	}
	was := map[string]machinev1alpha1.Orphan{}
	for _, o := range p.Collector.Status.VirtualMachines {
		was[o.ExternalName] = o
	}
	became := map[machinev1alpha1.OrphanState][]machinev1alpha1.Orphan{}
	for _, o := range s.VirtualMachines {
		if was[o.ExternalName].State != o.State {
			became[o.State] = append(became[o.State], o)
		}
		delete(was, o.ExternalName)
	}
	var gone []machinev1alpha1.Orphan
	for _, o := range p.Collector.Status.VirtualMachines {
		if _, ok := was[o.ExternalName]; ok && o.State == machinev1alpha1.OrphanDeleting {
			gone = append(gone, o)
		}
	}
	for _, e := range []struct {
		of      []machinev1alpha1.Orphan
		warning bool
		reason  string
		message string
	}{
		{became[machinev1alpha1.OrphanFound], true, machinev1alpha1.EventOrphanFound, "No Machine has %s"},
		{became[machinev1alpha1.OrphanAdopted], false, machinev1alpha1.EventOrphanAdopted, "To be deleted, if a last look at the cloud finds it: %s"},
		{became[machinev1alpha1.OrphanDeleting], false, machinev1alpha1.EventDeletingOrphan, "Deleting %s"},
		{gone, false, machinev1alpha1.EventOrphanGone, "Gone: %s"},
	} {
		if len(e.of) > 0 {
			out = append(out, shared.Event{Warning: e.warning, Reason: e.reason, Message: fmt.Sprintf(e.message, list(e.of))})
		}
	}
	return append(out, p.resourceEvents(s.Resources)...)
}

// resourceEvents report unused resources that are not in the observed status yet.
func (p *plan) resourceEvents(now []machinev1alpha1.UnusedResource) []shared.Event {
	var names []string
	n := 0
	for _, r := range now {
		if slices.Contains(p.Collector.Status.Resources, r) {
			continue
		}
		if n++; n <= maxNamed {
			name := r.Type + " " + r.ID
			// A resource that several Machines share, such as a placement group, names none.
			if r.Machine != "" {
				name += fmt.Sprintf(" of Machine %s/%s", r.Namespace, r.Machine)
			}
			names = append(names, name)
		}
	}
	if n == 0 {
		return nil
	}
	if n > maxNamed {
		names = append(names, fmt.Sprintf("and %d more", n-maxNamed))
	}
	return []shared.Event{{Warning: true, Reason: machinev1alpha1.EventUnusedResourceFound, Message: "Nothing uses " + strings.Join(names, ", ") + "; they are not deleted"}}
}

// list names the first orphans and counts the remaining ones.
func list(orphans ...[]machinev1alpha1.Orphan) string {
	var names []string
	n := 0
	for _, part := range orphans {
		for _, o := range part {
			if n++; n <= maxNamed {
				name := fmt.Sprintf("VM %s of Machine %s/%s", o.ExternalName, o.Namespace, o.Machine)
				if o.Machine == "" {
					name = fmt.Sprintf("VM %s with the name %s of the namespace %s", o.ExternalName, o.Name, o.Namespace)
				}
				if o.NodeReady {
					name += fmt.Sprintf(" (Node %s is Ready)", o.Node)
				}
				names = append(names, name)
			}
		}
	}
	if n > maxNamed {
		names = append(names, fmt.Sprintf("and %d more", n-maxNamed))
	}
	return strings.Join(names, ", ")
}
