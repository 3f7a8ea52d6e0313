package machinegroup

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

// A notification is a change of the group's status: it enqueues the MachineSet and then the
// MachineDeployment. That costs some twenty writes and, with Crossplane's default circuit breaker,
// two tokens of each. So changes are reported together: the more a set can do about them, the sooner.
const (
	// settleFor: for this time after a change, more changes of the same kind follow. A notification
	// waits until none came for this time, unless no Machine is pending any more.
	settleFor = 300 * time.Millisecond
	// settleAtMost is the longest time that a notification waits for further changes.
	settleAtMost = 1500 * time.Millisecond
	// goneEvery is the shortest interval between two notifications that Machines are gone.
	goneEvery = 500 * time.Millisecond
	// arrivalsEvery is the shortest interval between two notifications that half of the Machines that
	// the set waits for have arrived: if there are few, each is half.
	arrivalsEvery = time.Second
)

// pendingCounts has the number of Machines by the phases that they leave on their own: they wait for
// a VM, for a Node, or for the end of their deletion.
type pendingCounts map[v1alpha1.MachinePhase]int

func countPending(machines []*v1alpha1.Machine) pendingCounts {
	n := pendingCounts{}
	for _, m := range machines {
		switch phase := m.Status.Phase; {
		case m.DeletionTimestamp != nil:
			n[v1alpha1.MachineTerminating]++
		case phase == "" || phase == v1alpha1.MachinePending || phase == v1alpha1.MachineProvisioning:
			n[v1alpha1.MachineProvisioning]++
		case phase == v1alpha1.MachineJoining:
			n[v1alpha1.MachineJoining]++
		}
	}
	return n
}

// arrivals is how many Machines have left a phase since they were counted: none, some, half of the
// Machines in a phase, or all.
type arrivals int

const (
	noArrival arrivals = iota
	someArrived
	halfArrived
	// allArrived means that no Machine is pending any more.
	allArrived
)

func (was pendingCounts) total() (n int) {
	for _, of := range was {
		n += of
	}
	return n
}

func (was pendingCounts) arrivals(is pendingCounts) arrivals {
	if was.total() > 0 && is.total() == 0 {
		return allArrived
	}
	a := noArrival
	for phase, n := range was {
		switch {
		case n > 0 && is[phase] <= n/2:
			return halfArrived
		case is[phase] < n:
			a = someArrived
		}
	}
	return a
}

// A pace limits the notifications of each group's set.
type pace struct {
	mu     sync.Mutex
	now    func() time.Time
	groups map[types.NamespacedName]*notifications
}

// notifications of one set. A restart loses them: the next change is then reported at once.
type notifications struct {
	// at is the time of the last one, and pending the Machines that were pending then.
	at      time.Time
	pending pendingCounts
	// changedAt is the time of the first change since, zero if there was none.
	changedAt time.Time
	// latest are the Machines that were pending after the latest change, at latestAt.
	latest   pendingCounts
	latestAt time.Time
}

func newPace(now func() time.Time) *pace {
	return &pace{now: now, groups: map[types.NamespacedName]*notifications{}}
}

// delay returns the time until a change may be reported, 0 if it may be now. The flag gone reports
// that Machines are gone of which the set was not notified yet.
func (p *pace) delay(name types.NamespacedName, is pendingCounts, gone bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	n := p.groups[name]
	if n == nil {
		n = &notifications{}
		p.groups[name] = n
	}
	if n.changedAt.IsZero() {
		n.changedAt = now
	}
	if n.latestAt.IsZero() || !maps.Equal(n.latest, is) {
		n.latest, n.latestAt = is, now
	}
	// Machines that were created or deleted together change one after another.
	settled := n.latestAt.Add(settleFor)
	if latest := n.changedAt.Add(settleAtMost); settled.After(latest) {
		settled = latest
	}
	interval := group.NotifyEvery
	a := n.pending.arrivals(is)
	if a == allArrived { // No further changes follow.
		settled = now
	}
	switch {
	case gone && a == someArrived:
		settled, interval = n.changedAt.Add(arrivalsEvery), goneEvery
	case gone:
		interval = goneEvery
	case a >= halfArrived:
		interval = arrivalsEvery
	case a == someArrived:
		settled = n.changedAt.Add(group.NotifyEvery)
	}
	return max(0, settled.Sub(now), n.at.Add(interval).Sub(now))
}

// notified records that all changes have been reported.
func (p *pace) notified(name types.NamespacedName, is pendingCounts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[name] = &notifications{at: p.now(), pending: is}
}

func (p *pace) forget(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.groups, name)
}
