package pool

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/history"
)

// fleet is the facts: the view of a pool, and the recorded decisions.
type fleet struct {
	Observed
	now   time.Time
	taken taken
	// problem is the reason why the pool does not change, nil if there is none.
	problem *shared.Problem
	// surge and unavailable limit the Machines that move between failure domains at a time.
	surge, unavailable int32
	// members: wanted ones in the order of their failure domains, and then unwanted ones.
	members []*member
}

// size of the pool, or the largest one with autoscaling.
func (f *fleet) size() int32 { return sizeOf(f.Pool.Spec) }

func (f *fleet) isAutoscaled() bool { return f.Pool.Spec.Autoscaling != nil }

func (f *fleet) findMembers() []*member {
	existing := make([]*Deployment, 0, len(f.Deployments))
	for i := range f.Deployments {
		existing = append(existing, &f.Deployments[i])
	}
	slices.SortFunc(existing, func(a, b *Deployment) int { return strings.Compare(a.Name, b.Name) })
	var out []*member
	for _, domain := range f.taken.domains {
		name := f.nameOf(domain, existing)
		i := slices.IndexFunc(existing, func(d *Deployment) bool { return d.Name == name })
		m := &member{domain: domain, name: name, wanted: true}
		if i >= 0 {
			m.is = existing[i]
			existing = slices.Delete(existing, i, i+1)
		}
		out = append(out, m)
	}
	// Without a valid spec it is unknown which failure domains are wanted: all are kept.
	for _, d := range existing {
		out = append(out, &member{domain: domainOf(d), name: d.Name, is: d, wanted: f.problem != nil})
	}
	out = append(out, f.unseen(out)...)
	for _, m := range out {
		f.recall(m)
		m.isUnlisted = !history.Has(f.now, f.Pool.Status.Replacements, m.status().Replacements)
	}
	// An invalid pool gets no additional MachineDeployments.
	return slices.DeleteFunc(out, func(m *member) bool { return f.problem != nil && m.is == nil && !m.isRecorded })
}

// unseen returns members with a recorded decision whose MachineDeployment is not in the view. It
// may exist although the view does not have it yet. Without such members, their Machines would be
// created a second time in another failure domain. A member without desired Machines may still have
// those of an earlier decision, or of the autoscaler. Only names that this pool generates count:
// any other name in the status was edited or restored.
func (f *fleet) unseen(seen []*member) (out []*member) {
	for _, d := range f.Pool.Status.FailureDomains {
		if slices.ContainsFunc(seen, func(m *member) bool { return m.name == d.MachineDeployment }) {
			continue
		}
		if remembered(d) > 0 && d.MachineDeployment == names.MachineDeployment(f.Pool.Name, f.Pool.UID, d.Name) {
			out = append(out, &member{domain: d.Name, name: d.MachineDeployment, wanted: f.problem != nil})
		}
	}
	return out
}

// nameOf returns the name of a failure domain's MachineDeployment: the recorded one, that of an
// existing one, or else a new name.
func (f *fleet) nameOf(domain string, existing []*Deployment) string {
	for _, d := range f.Pool.Status.FailureDomains {
		if d.Name == domain && (d.MachineDeployment == names.MachineDeployment(f.Pool.Name, f.Pool.UID, domain) ||
			slices.ContainsFunc(existing, func(e *Deployment) bool { return e.Name == d.MachineDeployment && domainOf(e) == domain })) {
			return d.MachineDeployment
		}
	}
	for _, d := range existing {
		if domainOf(d) == domain {
			return d.Name
		}
	}
	return names.MachineDeployment(f.Pool.Name, f.Pool.UID, domain)
}

// recall the recorded decision about a member. Without a record, as after a restore, the observed
// replicas are the decision.
func (f *fleet) recall(m *member) {
	all := f.Pool.Status.FailureDomains
	i := slices.IndexFunc(all, func(d machinev1alpha1.PoolDomain) bool { return d.MachineDeployment == m.name })
	if m.isRecorded = i >= 0; m.isRecorded {
		m.decided = *all[i].DeepCopy()
		f.bound(m)
		return
	}
	m.decided = machinev1alpha1.PoolDomain{DesiredReplicas: m.replicas(), Decision: m.decisionSeen()}
}

// bound a decision that was read back. The autoscaler decides the number of Machines until another
// decision is recorded. A number above the limits of this size was edited, or belongs to a larger
// size.
func (f *fleet) bound(m *member) {
	d := &m.decided
	if m.isScaledByOthers() {
		d.DesiredReplicas = m.replicas()
		return
	}
	most := max(f.size()+f.surge, m.replicas())
	if d.DesiredReplicas > most {
		d.Most = max(d.Most, d.DesiredReplicas)
	}
	d.DesiredReplicas = min(max(0, d.DesiredReplicas), most)
}

func domainOf(d *Deployment) string { return ptr.Deref(d.Spec.Template.Spec.FailureDomain, "") }

// sum over members.
func sum(members []*member, n func(*member) int32) (out int32) {
	for _, m := range members {
		out += n(m)
	}
	return out
}
