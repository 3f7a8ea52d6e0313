package machinegroup

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/machinegroup"
)

// Each status that is written wakes the MachineSet, and by it the MachineDeployment, which
// costs some ten writes and, with Crossplane's default circuit breaker, two tokens of
// each. So news of Machines are told at once as long as they are few, and then every
// [machinegroup.TellEvery]; sooner only when half of what the set waits for is there.
const tellBurst = 4

const (
	// arrivalsEvery so often at most a set is notified early because half of what it waits
	// for is there: with few Machines each of them would be half.
	arrivalsEvery = time.Second
	// goneEvery so often at most a set is notified of Machines that are gone.
	goneEvery = 500 * time.Millisecond
)

// onTheWay are how many Machines are in a phase that they leave by themselves: they wait for
// a VM, for a Node, or to be gone.
type onTheWay map[v1alpha1.MachinePhase]int

func onTheWayOf(machines []*v1alpha1.Machine) onTheWay {
	n := onTheWay{}
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

// arrived says whether half of those have left a phase that were in it.
func (was onTheWay) arrived(is onTheWay) bool {
	for phase, n := range was {
		if is[phase] <= n/2 {
			return true
		}
	}
	return false
}

// A pace is kept for each group.
type pace struct {
	mu  sync.Mutex
	now func() time.Time
	of  map[types.NamespacedName]*told
}

type told struct {
	limit *rate.Limiter
	// was on the way when the set was last notified, and when that was.
	was onTheWay
	at  time.Time
}

func newPace(now func() time.Time) *pace {
	return &pace{now: now, of: map[types.NamespacedName]*told{}}
}

// next takes a turn, or says after how long there is one.
func (p *pace) next(group types.NamespacedName, is onTheWay) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.of[group]
	if t == nil {
		t = &told{limit: rate.NewLimiter(rate.Every(machinegroup.TellEvery), tellBurst)}
		p.of[group] = t
	}
	r := t.limit.ReserveN(p.now(), 1)
	wait := r.DelayFrom(p.now())
	if wait == 0 {
		return 0
	}
	r.CancelAt(p.now())
	if t.was.arrived(is) {
		return min(wait, t.after(arrivalsEvery, p.now()))
	}
	return wait
}

// after is how long it is until an interval since the last notification is over.
func (t *told) after(interval time.Duration, now time.Time) time.Duration {
	return max(0, interval-now.Sub(t.at))
}

// nextGone is next for news of Machines that are gone.
func (p *pace) nextGone(group types.NamespacedName, is onTheWay) time.Duration {
	wait := p.next(group, is)
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(wait, p.of[group].after(goneEvery, p.now()))
}

// tell that the set knows now what is on the way.
func (p *pace) tell(group types.NamespacedName, is onTheWay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.of[group]; t != nil {
		t.was, t.at = is, p.now()
	}
}

func (p *pace) forget(group types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, group)
}
