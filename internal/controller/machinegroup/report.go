package machinegroup

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Each status that is written wakes the MachineSet, which costs some writes and, with
// Crossplane's default circuit breaker, two tokens. So news of Machines are told at
// once as long as they are few, and then so often.
const (
	tellEvery = time.Second
	tellBurst = 10

	// afterConflict the cache has what it lacked.
	afterConflict = 50 * time.Millisecond
)

// report the status, if it says anything new. What is not urgent waits for its turn: it
// returns how long.
func (r *reconciler) report(ctx context.Context, g *v1alpha1.MachineGroup, s v1alpha1.MachineGroupStatus) (time.Duration, error) {
	if equality.Semantic.DeepEqual(g.Status, s) {
		return 0, nil
	}
	if wait := r.pace.next(client.ObjectKeyFromObject(g)); wait > 0 && !urgent(g.Status, s) {
		return wait, nil
	}
	now := g.DeepCopy()
	now.Status = s
	// As it was read: whoever saw an older group must not say what was created.
	if err := r.client.Status().Update(ctx, now); kerrors.IsConflict(err) {
		return afterConflict, nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}

// urgent is what must be known before anything else is done, that a Machine was created,
// and what somebody waits for: that one is gone, or that something cannot be done.
func urgent(was, is v1alpha1.MachineGroupStatus) bool {
	return !sets.New(was.Created...).HasAll(is.Created...) || !sets.New(was.Gone...).HasAll(is.Gone...) ||
		!equality.Semantic.DeepEqual(was.Conditions, is.Conditions)
}

// A pace is kept for each group.
type pace struct {
	mu  sync.Mutex
	now func() time.Time
	of  map[types.NamespacedName]*rate.Limiter
}

func newPace(now func() time.Time) *pace {
	return &pace{now: now, of: map[types.NamespacedName]*rate.Limiter{}}
}

// next takes a turn, or says after how long there is one.
func (p *pace) next(group types.NamespacedName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.of[group]
	if l == nil {
		l = rate.NewLimiter(rate.Every(tellEvery), tellBurst)
		p.of[group] = l
	}
	r := l.ReserveN(p.now(), 1)
	wait := r.DelayFrom(p.now())
	if wait > 0 {
		r.CancelAt(p.now())
	}
	return wait
}

func (p *pace) forget(group types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, group)
}
