package pool

import (
	"fmt"
	"slices"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// With failureDomains OneByOne, the template reaches one failure domain after the other. Whose turn it is, is recorded in the
// status first, and carried out when it is read back: a view that lags behind cannot take a template back.
//
// The turn ends when the rollout is complete, also if Machines fail or are added later. A failure domain without capacity is
// passed over as long as it misses no Machine: its rollout is paused meanwhile, and it gets a turn again when it has capacity.
// Without that, a rollout would wait for a cloud. With it, two failure domains would roll at the same time when the capacity is
// back.

func (f *fleet) isOneByOne() bool {
	return f.Pool.Spec.Strategy.FailureDomains == machinev1alpha1.FailureDomainsOneByOne
}

// applyTurn keeps the template of a member whose turn it is not, and pauses one that is suspended.
func (f *fleet) applyTurn(m *member, s *machinev1alpha1.MachineDeploymentSpec) {
	m.target = templateOf(*s)
	if !f.isOneByOne() || m.is == nil {
		return
	}
	if m.isWaiting = templateOf(m.is.Spec) != m.target && m.decided.Template != m.target; m.isWaiting {
		s.Template = deployment.Keep(m.is.Spec.Template, s.Template)
		s.Rollout.After = m.is.Spec.Rollout.After
	}
	if m.decided.Suspended {
		s.Paused = true
	}
}

// templateOf identifies the part of a spec that starts a rollout.
func templateOf(s machinev1alpha1.MachineDeploymentSpec) string {
	return deployment.HashOfSpec(&machinev1alpha1.MachineDeployment{Spec: s})
}

// isRolledOut reports whether the rollout of the pool's template was complete in a member. It may scale, or replace Machines
// that failed, since then.
func (m *member) isRolledOut() bool {
	return !m.isWaiting && templateOf(m.is.Spec) == m.target && deployment.IsRecorded(m.is.MachineDeployment) && !m.isRolling()
}

// isRolling reports whether a member has a rollout that is not complete, of whatever template. The conditions are written after
// the rest of the status, and may be those of an earlier template.
func (m *member) isRolling() bool {
	n := len(m.status().Revisions)
	return n == 0 || m.status().Revisions[n-1].Outcome != machinev1alpha1.RevisionComplete
}

// isOutOfCapacity reports whether the rollout of a member waits for the cloud, and misses no Machine meanwhile.
func (m *member) isOutOfCapacity() bool {
	return m.exhausted() != nil && m.status().AvailableReplicas >= m.decided.DesiredReplicas
}

// assignTurns decides which member may roll.
func (p *plan) assignTurns() {
	if p.problem != nil {
		return
	}
	var current, waiting []int
	for i, m := range p.members {
		next := &p.next[i]
		suspended := next.Suspended
		next.Template, next.Suspended, next.WaitsFor = "", false, ""
		switch {
		case !p.isOneByOne() || !m.wanted:
			continue
		case m.isWaiting:
			// The rollout of an earlier template would go on beside that of another member.
			next.Suspended = m.isRolling()
			waiting = append(waiting, i)
			continue
		}
		next.Template = m.target
		switch {
		case m.is == nil || m.isRolledOut():
		case suspended || m.isOutOfCapacity():
			next.Suspended = true
			waiting = append(waiting, i)
		default:
			current = append(current, i)
		}
	}
	if len(current) == 0 {
		if i := p.nextTurn(waiting); i >= 0 {
			n := waiting[i]
			current, waiting = []int{n}, slices.Delete(waiting, i, i+1)
			p.next[n].Template, p.next[n].Suspended = p.members[n].target, false
		}
	}
	for _, i := range waiting {
		p.next[i].WaitsFor = p.members[current[0]].domain
	}
}

// nextTurn returns which of the waiting members is next: one that has capacity goes before one that has none, then one in the
// middle of a rollout goes before the others, and then the first one. It is -1 if none waits.
func (p *plan) nextTurn(waiting []int) int {
	order := []func(*member) bool{
		func(m *member) bool { return m.exhausted() == nil && m.isRolling() },
		func(m *member) bool { return m.exhausted() == nil },
		func(*member) bool { return true },
	}
	for _, goes := range order {
		if i := slices.IndexFunc(waiting, func(i int) bool { return goes(p.members[i]) }); i >= 0 {
			return i
		}
	}
	return -1
}

// turns reports whether the next decision about a member changes its turn.
func (p *plan) turns(i int, m *member) bool {
	n, was := p.next[i], m.decided
	return n.Template != was.Template || n.Suspended != was.Suspended || n.WaitsFor != was.WaitsFor
}

// turnsText names the members that wait for another one, "" if none does.
func (p *plan) turnsText() string {
	var out []string
	for i, m := range p.members {
		next := p.next[i]
		switch {
		case next.WaitsFor == "":
		case m.exhausted() != nil:
			out = append(out, fmt.Sprintf("failure domain %q, which is exhausted (%s), waits for %q", m.domain, m.exhausted().Code, next.WaitsFor))
		default:
			out = append(out, fmt.Sprintf("failure domain %q waits for %q", m.domain, next.WaitsFor))
		}
	}
	return strings.Join(out, ", ")
}
