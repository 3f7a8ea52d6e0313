package pool

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

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

// turns reports whether the next decision about a member changes its turn.
func (p *plan) turns(i int, m *member) bool {
	n, was := p.next[i], m.decided
	return n.Template != was.Template || n.Suspended != was.Suspended || n.WaitsFor != was.WaitsFor
}

// recorded returns the recorded number of a member that its goal is compared with.
func (p *plan) recorded(m *member) int32 {
	if p.isAutoscaled() {
		return ptr.Deref(m.decided.MaxSize, 0)
	}
	return m.decided.DesiredReplicas
}
