package nodekeeper

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/drover-dev/drover/internal/target"
)

const (
	// Burst is how many changes of a Node enqueue its Machine at once. A Node that joins changes about ten
	// times within seconds.
	Burst = 20
	// Every is how often the changes of a Node enqueue its Machine after that. A kubelet may change its Node
	// many times a second, and each change may be a write of the Machine.
	Every = 5 * time.Second
	// Remembered is how many Nodes are remembered at least. Above it, Nodes whose whole burst is available
	// again are forgotten.
	Remembered = 1024
)

// A NodeID names a Node as the API server of its cluster authenticates it.
type NodeID struct {
	Cluster target.Ref
	Name    string
}

// Limits bound how often a Node enqueues Machines.
type Limits struct {
	now func() time.Time

	mu     sync.Mutex
	ByNode map[NodeID]*rate.Limiter
	// prunedAt is how many Nodes remained after the last pruning.
	prunedAt int
}

// NewLimits returns limits that no Node has reached.
func NewLimits(now func() time.Time) *Limits {
	return &Limits{now: now, ByNode: map[NodeID]*rate.Limiter{}, prunedAt: Remembered / 2}
}

// Delay returns when a change of a Node may enqueue its Machine. The changes until then share one reconcile.
func (l *Limits) Delay(id NodeID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.ByNode[id] == nil {
		l.prune(now)
		l.ByNode[id] = rate.NewLimiter(rate.Every(Every), Burst)
	}
	if l.ByNode[id].AllowN(now, 1) {
		return 0
	}
	return Every
}

func (l *Limits) prune(now time.Time) {
	if len(l.ByNode) < 2*l.prunedAt {
		return
	}
	for id, limit := range l.ByNode {
		if limit.TokensAt(now) >= Burst {
			delete(l.ByNode, id)
		}
	}
	l.prunedAt = max(len(l.ByNode), Remembered/2)
}
