package deployment

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"
)

// isRescaled reports whether a user changed replicas during a rollout.
func (p *plan) isRescaled() bool {
	before := p.Deployment.Status.DesiredReplicas
	return before != nil && *before != p.bounds.replicas && !p.isAlone()
}

// awaitsMarks reports whether replicas was lowered in a rollout, and a set has not counted its
// marked Machines since. The cluster-autoscaler marks a Machine and lowers replicas within
// milliseconds: the sets would report the mark only after another Machine was chosen.
func (p *plan) awaitsMarks() bool {
	return p.lowered() > 0 && !p.isAlone() &&
		slices.ContainsFunc(p.sets, func(s *set) bool { return !s.hasCountedFor(p.bounds.replicas) })
}

// lowered is the number of Machines by which replicas was lowered since the sets were scaled.
func (f *fleet) lowered() int32 {
	return max(0, ptr.Deref(f.Deployment.Status.DesiredReplicas, 0)-f.bounds.replicas)
}

// rescale decides, after all sets have acted on their last numbers, which sets a change of replicas
// affects. On a scale-up, the new set grows, so that no Machine is created that the rollout would
// replace. If none of its Machines is available, the decision is not final: see scaleUpOnTrial. A
// scale-down affects the old sets, whose
// Machines the rollout deletes anyway. If the new set is not proven, it affects all sets in
// proportion, so that an unproven template gets no larger share. Marked Machines are deleted in any
// case, up to the number by which replicas was lowered, even if the surge has room for them: a
// client chose each of them, and the new set would otherwise never delete its own.
func (p *plan) rescale() {
	before := *p.Deployment.Status.DesiredReplicas
	toMost := p.bounds.most() - sum(p.sets, (*set).desiredReplicas)
	unsettled := slices.ContainsFunc(p.sets, func(s *set) bool { return !s.isSettled() })
	fewer := min(p.lowered(), sum(p.sets, p.marked))
	switch {
	case unsettled || p.awaitsMarks():
		p.waitToScale()
	case toMost < 0 || fewer > 0:
		p.scaleDownAll(max(0, -toMost), fewer)
	case p.Safety.Frozen && p.bounds.replicas > before:
		p.waitToScale()
	case p.bounds.replicas > before && p.isLimited():
		p.growInStep()
	case p.bounds.replicas > before && !p.hasProof():
		p.scaleUpOnTrial(toMost)
	default:
		p.rollingUpdate()
	}
}

// trialOfGrowth is the time for which the capacity of a scale-up may depend on a template of which
// no Machine was available yet, since the last progress of its rollout. The time for which Machines
// must be Ready is added.
const trialOfGrowth = 5 * time.Minute

// isOnTrial reports whether the new template may still prove itself: the rollout made progress
// lately, and no Machine of the template failed.
func (p *plan) isOnTrial() bool {
	if p.isReplacementHeld() || p.problem != nil || p.failureOf(p.newSet) != nil || p.newSet.Status.UnhealthyReplicas > 0 {
		return false
	}
	last := p.Deployment.Status.LastProgressTime
	return last == nil || p.Deployment.Status.Revision != p.revision || p.now.Sub(last.Time) < trialOfGrowth+time.Duration(p.Deployment.Spec.MinReadySeconds)*time.Second
}

// scaleUpOnTrial scales up for a template without an available Machine. During its trial, the new
// set gets the additional Machines, and the sets stay scaled for the previous replicas. A Machine
// that becomes available makes the decision final. If the trial ends without one, the new set
// returns the additional Machines, none of which is available, and all sets grow in proportion to
// their sizes, so that the capacity does not wait for a template that may be faulty.
func (p *plan) scaleUpOnTrial(toMost int32) {
	own, room := p.newBeforeGrowth(), p.room(p.bounds.most())
	switch {
	case p.isOnTrial():
		p.rollingUpdate()
		p.waitToScale()
	case p.newSet.desired > own:
		p.setDesired(p.newSet, own)
		p.waitToScale()
	case room < toMost && p.newSet.Status.TerminatingReplicas > 0:
		// The places of the returned Machines are free when their VMs are gone.
		p.waitToScale()
	default:
		p.scaleUpProportionally(min(max(0, toMost), room))
	}
}

// newBeforeGrowth is the number of Machines that the new set has at most without the growth: the
// places that the old sets leave in the bounds of the previous replicas.
func (p *plan) newBeforeGrowth() int32 {
	before, _ := boundsFor(*p.Deployment.Status.DesiredReplicas, p.Deployment.Spec.Strategy)
	return max(1, before.most()-sum(p.oldSets, (*set).desiredReplicas))
}

// isProven reports whether a change of replicas may affect the new set alone. The rollout must not
// be held, because a user who pauses it wants the proportion kept, and each desired Machine of the
// new set must be available. A rollout starts Machines all the time. So Machines that start or are
// not Ready for minReadySeconds do not count while another Machine of the set is available and none
// is unhealthy.
func (f *fleet) isProven() bool {
	if f.newSet != f.current || f.problem != nil || f.isHeld() {
		return false
	}
	s := f.newSet.Status
	onlyStart := s.AvailableReplicas > 0 && s.UnhealthyReplicas == 0 && f.newSet.desired-s.ReadyReplicas <= s.StartingReplicas
	return f.newSet.unavailable() == 0 || onlyStart
}

func (p *plan) scaleUpProportionally(n int32) {
	for i, share := range p.shares(n) {
		p.setDesired(p.sets[i], p.sets[i].desired+share)
	}
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
