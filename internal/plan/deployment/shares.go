package deployment

import (
	"slices"

	"k8s.io/utils/ptr"
)

// lost is the number of available Machines that a set loses if n more of its Machines are deleted
// than decided so far. The set deletes its unavailable Machines first.
func (p *plan) lost(s *set, n int32) int32 {
	return max(0, min(s.available(), s.desired-p.nextDesired[s]+n-p.unmissed(s)))
}

// unmissed Machines are those that a set deletes before available ones. They include preserved
// Failed Machines only in a rollout that replaces the set. Otherwise the set deletes preserved ones
// last.
func (f *fleet) unmissed(s *set) int32 {
	if f.isRolling() && s != f.newSet {
		return s.unavailable()
	}
	return max(0, s.unavailable()-s.Status.PreservedFailedReplicas)
}

// lowered is the number of Machines by which replicas was lowered since the sets were scaled.
func (f *fleet) lowered() int32 {
	return max(0, ptr.Deref(f.Deployment.Status.DesiredReplicas, 0)-f.bounds.replicas)
}

// awaitsMarks reports whether replicas was lowered in a rollout, and a set has not counted its
// marked Machines since. The cluster-autoscaler marks a Machine and lowers replicas within
// milliseconds: the sets would report the mark only after another Machine was chosen.
func (p *plan) awaitsMarks() bool {
	return p.lowered() > 0 && !p.isAlone() &&
		slices.ContainsFunc(p.sets, func(s *set) bool { return !s.hasCountedFor(p.bounds.replicas) })
}

// scaleDownAll deletes n Machines, marked ones first, and at least the given number of marked ones.
// It deletes unmarked available Machines only down to the least, and unavailable ones instead.
func (p *plan) scaleDownAll(n, marked int32) {
	marked = max(n, marked)
	for _, s := range p.sets {
		m := min(p.marked(s), marked)
		if m == 0 {
			continue
		}
		// A set cancels missing Machines before it deletes marked ones. So the missing ones are
		// canceled as well, unless that leaves fewer than replicas.
		// Counts that contradict each other, like more marked Machines than Machines, cancel none.
		missing := max(0, min(s.desired-s.Status.Replicas, p.nextDesired[s]-m))
		missing = min(missing, max(0, sum(p.sets, p.nextReplicas)-marked-p.bounds.replicas))
		marked -= m
		m += missing
		p.reduceDesired(s, m)
		n = max(0, n-m)
	}
	less := p.shares(n)
	if p.isProven() {
		less = p.oldestFirst(n)
	}
	spare := max(0, sum(p.sets, (*set).available)-p.bounds.least())
	for i, s := range p.sets {
		spare -= p.lost(s, less[i])
	}
	excess := int32(0)
	for i, s := range slices.Backward(p.sets) {
		lost := p.lost(s, less[i])
		keep := min(lost, less[i], max(0, -spare))
		if keep == 0 {
			continue
		}
		n := max(0, min(less[i], p.unmissed(s)-(s.desired-p.nextDesired[s])+lost-keep))
		spare += keep
		excess += less[i] - n
		less[i] = n
	}
	for i, s := range p.sets {
		m := min(max(0, p.unmissed(s)-(s.desired-p.nextDesired[s])-less[i]), excess)
		less[i] += m
		excess -= m
		p.reduceDesired(s, less[i])
	}
}

// oldestFirst takes n from the sets, from each as many as it has.
func (p *plan) oldestFirst(n int32) []int32 {
	out := make([]int32, len(p.sets))
	for i, s := range p.sets {
		out[i] = min(n, p.nextDesired[s])
		n -= out[i]
	}
	return out
}

// shares of n by the sizes of the sets: whole numbers that add up to n. The largest remainders are
// rounded up, and among equal ones that of the newest set. The newest set gets all if no set has
// any.
func (p *plan) shares(n int32) []int32 {
	size := func(i int) int64 { return int64(p.nextDesired[p.sets[i]]) }
	out := make([]int32, len(p.sets))
	all := int64(0)
	for i := range p.sets {
		all += size(i)
	}
	if all == 0 {
		out[len(out)-1] = n
		return out
	}
	left := n
	byRemainder := make([]int, len(p.sets))
	for i := range p.sets {
		out[i] = int32(int64(n) * size(i) / all)
		left -= out[i]
		byRemainder[i] = i
	}
	remainder := func(i int) int64 { return int64(n) * size(i) % all }
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
