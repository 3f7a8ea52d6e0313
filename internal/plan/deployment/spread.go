package deployment

import "slices"

// rescaled means that a user changed replicas in the middle of a rollout.
func (p *plan) rescaled() bool {
	before := p.Deployment.Status.DesiredReplicas
	return before != nil && *before != p.bounds.replicas && !p.alone()
}

// rescale decides once, as soon as all sets have acted on their last numbers, which sets a
// change of replicas concerns. Growth is the new set's, so that no Machine is created that
// the rollout replaces, unless the new set is not proven: then all sets grow in proportion
// to their sizes, and the capacity does not wait for the new template. A scale-down
// concerns the old sets, whose Machines the rollout deletes anyway, or, if the new set is not
// proven, all sets in proportion: an unproven template has no larger share than before.
func (p *plan) rescale(head *set, rest []*set) {
	sets := p.live()
	toMost := p.bounds.most() - sum(sets, (*set).hasToHave)
	grows := p.bounds.replicas > *p.Deployment.Status.DesiredReplicas
	unsettled := slices.ContainsFunc(sets, func(s *set) bool { return !s.settled() })
	switch {
	case unsettled || toMost > 0 && p.Safety.Frozen:
		p.scaledFor = *p.Deployment.Status.DesiredReplicas
	case toMost > 0 && grows && !p.isProven(head):
		p.spreadMore(sets, min(toMost, p.room(p.bounds.most())))
	case toMost < 0:
		p.spreadLess(head, sets, -toMost)
	default:
		p.raise(head)
		p.lower(head, rest)
	}
}

// isProven reports whether growth may go to the new set alone. Nothing holds the rollout, as
// a user who pauses it wants its proportion kept, and each Machine that the set shall have is
// available. A rollout starts Machines all the time: while another Machine of the set is
// available and none is unhealthy, those that start or are not ready for minReadySeconds do
// not count.
func (p *plan) isProven(head *set) bool {
	if head != p.current || p.problem != nil || p.held() {
		return false
	}
	s := head.Status
	onlyStart := s.AvailableReplicas > 0 && s.UnhealthyReplicas == 0 && head.told-s.ReadyReplicas <= s.StartingReplicas
	return head.unavailable() == 0 || onlyStart
}

func (p *plan) spreadMore(sets []*set, n int32) {
	for i, share := range shares(sets, n) {
		p.tell(sets[i], sets[i].told+share)
	}
}

// spreadLess takes marked Machines first, and never more available ones than there
// are above the least: others then take their place.
func (p *plan) spreadLess(head *set, sets []*set, n int32) {
	for _, s := range sets {
		m := min(s.marked(), n)
		p.tellLess(s, m)
		n -= m
	}
	less := shares(sets, n)
	if p.isProven(head) {
		less = oldestFirst(sets, n)
	}
	spare := max(0, sum(sets, (*set).available)-p.bounds.least())
	for i, s := range sets {
		spare -= s.lost(less[i])
	}
	excess := int32(0)
	for i, s := range slices.Backward(sets) {
		back := min(s.lost(less[i]), less[i], max(0, -spare))
		less[i] -= back
		spare += back
		excess += back
	}
	for i, s := range sets {
		m := min(max(0, s.unavailable()-(s.told-s.wants)-less[i]), excess)
		less[i] += m
		excess -= m
		p.tellLess(s, less[i])
	}
}

// lost is how many available Machines a set loses when it is told n less than it
// already is: it gives up others first.
func (s *set) lost(n int32) int32 {
	return max(0, s.told-s.wants+n-s.unavailable())
}

// oldestFirst takes n from the sets, from each as much as it has.
func oldestFirst(sets []*set, n int32) []int32 {
	out := make([]int32, len(sets))
	for i, s := range sets {
		out[i] = min(n, s.wants)
		n -= out[i]
	}
	return out
}

// shares of n by the sizes of the sets: whole numbers that add up to n, the largest
// remainders rounded up, and of equal ones the newest set's. All of it is the newest
// set's when none has any.
func shares(sets []*set, n int32) []int32 {
	out := make([]int32, len(sets))
	all := int64(0)
	for _, s := range sets {
		all += int64(s.wants)
	}
	if all == 0 {
		out[len(out)-1] = n
		return out
	}
	left := n
	byRemainder := make([]int, len(sets))
	for i, s := range sets {
		out[i] = int32(int64(n) * int64(s.wants) / all)
		left -= out[i]
		byRemainder[i] = i
	}
	remainder := func(i int) int64 { return int64(n) * int64(sets[i].wants) % all }
	slices.SortFunc(byRemainder, func(a, b int) int {
		if d := remainder(b) - remainder(a); d != 0 {
			return int(max(-1, min(1, d)))
		}
		return b - a
	})
	for _, i := range byRemainder[:left] {
		out[i]++
	}
	return out
}
