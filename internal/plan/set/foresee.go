package set

import "time"

// An Order of the active Machines of a set, for tools that predict the effect of a change.
type Order struct {
	// Deletion has all Machines in the order in which a scale-down or a rollout deletes them.
	Deletion []string
	// Outdated are those that an update in place has to update, in its order.
	Outdated []string
}

// OrderOf the Machines, by the criteria of the planner. It decides nothing.
func OrderOf(now time.Time, o Observed) Order {
	f := fleetOf(now, o)
	p := newPlan(f)
	var out Order
	for _, m := range p.worstFirst(p.kept) {
		out.Deletion = append(out.Deletion, m.Name)
		if p.toUpdate(m) {
			out.Outdated = append(out.Outdated, m.Name)
		}
	}
	return out
}
