package machine

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/drover-dev/drover/internal/target"
)

const (
	// nodeBurst is how many changes of a Node enqueue its Machine at once. A Node that joins changes about ten
	// times within seconds.
	nodeBurst = 20
	// nodeEvery is how often the changes of a Node enqueue its Machine after that. A kubelet may change its Node
	// many times a second, and each change may be a write of the Machine.
	nodeEvery = 5 * time.Second
	// nodesRemembered is how many Nodes are remembered at least. Above it, Nodes whose whole burst is available
	// again are forgotten.
	nodesRemembered = 1024
)

// A nodeID names a Node as the API server of its cluster authenticates it.
type nodeID struct {
	cluster target.Ref
	name    string
}

// nodeLimits bound how often a Node enqueues Machines.
type nodeLimits struct {
	now func() time.Time

	mu     sync.Mutex
	limits map[nodeID]*rate.Limiter
	// prunedAt is how many Nodes remained after the last pruning.
	prunedAt int
}

func newNodeLimits(now func() time.Time) *nodeLimits {
	return &nodeLimits{now: now, limits: map[nodeID]*rate.Limiter{}, prunedAt: nodesRemembered / 2}
}

// delay returns when a change of a Node may enqueue its Machine. The changes until then share one reconcile.
func (l *nodeLimits) delay(id nodeID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.limits[id] == nil {
		l.prune(now)
		l.limits[id] = rate.NewLimiter(rate.Every(nodeEvery), nodeBurst)
	}
	if l.limits[id].AllowN(now, 1) {
		return 0
	}
	return nodeEvery
}

func (l *nodeLimits) prune(now time.Time) {
	if len(l.limits) < 2*l.prunedAt {
		return
	}
	for id, limit := range l.limits {
		if limit.TokensAt(now) >= nodeBurst {
			delete(l.limits, id)
		}
	}
	l.prunedAt = max(len(l.limits), nodesRemembered/2)
}
