package pool

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	offers "github.com/drover-dev/drover/internal/plan/offer"
)

// A Deployment is a MachineDeployment of the pool.
type Deployment struct {
	*machinev1alpha1.MachineDeployment
	// Observed is false for a MachineDeployment that the pool's references do not name. See
	// shared.Child.
	Observed bool
	// Terminating means that the MachineDeployment is being deleted.
	Terminating bool
	// ScaledByOthers means that another field manager owns spec.replicas.
	ScaledByOthers bool
}

// Observed is the view of the step.
type Observed struct {
	Pool *machinev1alpha1.NodePool
	// Namespace of the MachineDeployments.
	Namespace string
	// Offer of the platform, and the classes that it names, by the keys of their references. They are nil while it is not
	// known which of them exist.
	Offer   fn.Pool
	Classes map[string]offers.Spec
	// Deployments that the pool controls, in any order, and those without an owner that have its
	// label.
	Deployments []Deployment
}

// A Desired MachineDeployment.
type Desired struct {
	*machinev1alpha1.MachineDeployment
	// OmitReplicas means that another field manager decides spec.replicas.
	OmitReplicas bool
	Ready        bool
}

// A Decision is the output of the step.
type Decision struct {
	Deployments []Desired
	Status      machinev1alpha1.NodePoolStatus
	shared.Report
}

// stages of a plan, in their order. The first is for a pool with a size, and the second for autoscaling.
var stages = []func(*plan){(*plan).resize, (*plan).divideBounds, (*plan).assignTurns}

// Plan decides the MachineDeployments of a pool.
func Plan(now time.Time, o Observed) Decision {
	p := &plan{fleet: fleetOf(now, o)}
	for _, m := range p.members {
		next := m.decided
		next.Name, next.MachineDeployment = m.domain, m.name
		p.next = append(p.next, next)
	}
	for _, decide := range stages {
		decide(p)
	}
	for i, m := range p.members {
		if p.differs(i, m) {
			p.next[i].Decision++
		}
	}
	return p.decide()
}

// A plan collects the decisions of the stages.
type plan struct {
	*fleet

	// goal of each failure domain, nil for an invalid pool.
	goal map[*member]int32
	// next decision about each member, in the order of the members.
	next []machinev1alpha1.PoolDomain
}

func (p *plan) time() *metav1.Time {
	t := metav1.NewTime(p.now.Truncate(time.Second))
	return &t
}

func (p *plan) decide() Decision {
	d := Decision{}
	for i, m := range p.members {
		// A member without a MachineDeployment is composed only after its decision was recorded,
		// and only in a valid pool. A member that is gone is not composed any more, so that it is
		// deleted.
		if m.is == nil && (!m.isRecorded || p.problem != nil) || m.isGone() || m.isLetGo() {
			continue
		}
		p.offerSizes(m, p.next[i])
		d.Deployments = append(d.Deployments, Desired{
			MachineDeployment: m.desired, Ready: m.isComplete(),
			OmitReplicas: m.isScaledByOthers(),
		})
	}
	d.Status = p.status()
	d.Ready = p.isComplete()
	d.Conditions = p.conditions(d.Status)
	d.Events = p.events(d.Conditions)
	d.CallAgain = p.callAgain(d.Status)
	return d
}

// hasDecided reports whether this plan has a decision that must still be carried out.
func (p *plan) hasDecided() bool {
	for i, m := range p.members {
		if !m.isForgotten() && (!m.isRecorded || p.differs(i, m) || p.turns(i, m)) {
			return true
		}
	}
	return false
}

// differs reports whether the next decision about a member differs from the recorded one.
func (p *plan) differs(i int, m *member) bool {
	n, was := p.next[i], m.decided
	return n.DesiredReplicas != was.DesiredReplicas || !equal(n.MaxSize, was.MaxSize) || !equal(n.MinSize, was.MinSize)
}

func equal(a, b *int32) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// isComplete reports whether the pool matches its spec. While failure domains are exhausted, it
// must match its goals.
func (p *plan) isComplete() bool {
	if p.problem != nil || p.hasDecided() {
		return false
	}
	for _, m := range p.members {
		if !m.wanted || m.isWaiting || !m.isComplete() || p.recorded(m) != p.goal[m] {
			return false
		}
	}
	return true
}

func (p *plan) callAgain(s machinev1alpha1.NodePoolStatus) time.Duration {
	// The plan after this one reports the generation as observed.
	if s.ObservedGeneration < p.Pool.Generation || p.hasDecided() {
		return shared.Soonest
	}
	again := shared.AtRest
	if !p.isComplete() || s.TerminatingReplicas > 0 {
		again = shared.InFlight
	}
	for _, m := range p.members {
		// The room that the failure domain lost is then assigned to another one.
		if t := m.decided.LoweredTime; t != nil && p.isAutoscaled() && !m.isLowered(p.now) {
			again = min(again, max(shared.Soonest, t.Add(autoscalerDelay).Sub(p.now)))
		}
	}
	return again
}
