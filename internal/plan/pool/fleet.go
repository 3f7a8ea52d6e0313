package pool

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// fleet is the facts: what is observed of a pool, and what was decided before.
type fleet struct {
	Observed
	now   time.Time
	taken taken
	// problem is why the pool stays as it is, nil if it does not.
	problem *shared.Problem
	// surge and unavailable bound what moves between failure domains.
	surge, unavailable int32
	// members that are wanted, in the order of their failure domains, and then the others.
	members []*member
}

func fleetOf(now time.Time, o Observed) *fleet {
	f := &fleet{Observed: o, now: now}
	f.taken, f.problem = take(o.Pool, o.Offer)
	var problem *shared.Problem
	f.surge, f.unavailable, problem = deployment.Bounds(f.size(), o.Pool.Spec.Strategy)
	if f.problem == nil {
		f.problem = problem
	}
	if f.surge == 0 && f.unavailable == 0 {
		f.surge = 1 // Recreate and OnDelete say nothing about sizes.
	}
	f.members = f.findMembers()
	for _, m := range f.members {
		m.desired = f.desired(m)
	}
	return f
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
	// Without a valid spec nobody knows what is wanted: all stays.
	for _, d := range existing {
		out = append(out, &member{domain: domainOf(d), name: d.Name, is: d, wanted: f.problem != nil})
	}
	out = append(out, f.unseen(out)...)
	for _, m := range out {
		f.recall(m)
	}
	// A pool that is not valid gets no other MachineDeployments.
	return slices.DeleteFunc(out, func(m *member) bool { return f.problem != nil && m.is == nil && !m.isRecorded })
}

// unseen members were decided on, and their MachineDeployments may exist without being in the view
// yet. Without them, their Machines would be made a second time elsewhere. One that is to have no
// Machines any more may have those of an earlier decision, or those that the autoscaler made. The name
// has to be the one that the pool gives: another one in the status was edited, or restored.
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

// remembered number of Machines that a failure domain may have by its decisions, or by what the
// autoscaler may still decide.
func remembered(d machinev1alpha1.PoolDomain) int32 {
	return max(d.DesiredReplicas, d.Most, ptr.Deref(d.MaxSize, 0), d.PreviousMaxSize)
}

// nameOf the MachineDeployment of a failure domain: that of the one that was decided on, or that
// is there, or a new one.
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

// recall what was decided about a member. What was not, such as that of a pool that was restored,
// is as it is.
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

// bound what was read back. The autoscaler decides on the number of Machines until another decision
// is recorded. A number that no spec of this size leads to was edited, or is of a larger size.
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
