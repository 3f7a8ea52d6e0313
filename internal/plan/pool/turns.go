package pool

import (
	"fmt"
	"slices"
	"strings"
)

// With failureDomains OneByOne, the template reaches one failure domain after the other. Whose turn it is, is recorded in the
// status first, and carried out when it is read back: a view that lags behind cannot take a template back.
//
// The turn ends when the rollout is complete, also if Machines fail or are added later. A failure domain without capacity is
// passed over as long as it misses no Machine: its rollout is paused meanwhile, and it gets a turn again when it has capacity.
// Without that, a rollout would wait for a cloud. With it, two failure domains would roll at the same time when the capacity is
// back.

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
		case !p.isOneByOne():
			continue
		case !m.wanted && (m.is == nil || !m.isRolling() || m.existing() == 0):
			continue
		case !m.wanted && suspended:
			next.Suspended = true
			waiting = append(waiting, i)
			continue
		case !m.wanted:
			// It is left in the middle of its rollout, which goes on: a paused one would keep the Machine that it has too many, and
			// with it the place that another failure domain needs to take over.
			current = append(current, i)
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
