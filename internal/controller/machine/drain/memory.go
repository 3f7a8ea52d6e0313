package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Memory of a drain. It is lost with the process: then the refused evictions are counted from zero. A persistent count
// would be a write for each refusal by a budget, and the bound of the drain, its start time, is in the status.
type Memory struct {
	began    time.Time
	attempts map[types.UID]attempt
	volumes  map[string]string // by claim
	// terminating pods, by their UIDs.
	terminating map[types.UID]termination
}

// NewMemory returns the memory of a drain that begins now.
func NewMemory(now time.Time) *Memory {
	return &Memory{began: now, attempts: map[types.UID]attempt{}, volumes: map[string]string{}, terminating: map[types.UID]termination{}}
}

// A termination of a pod, as Drover observed it: the time in a pod is that of the API server of its cluster, whose
// clock may be wrong.
type termination struct {
	seen  time.Time
	grace time.Duration
}

// goneAt returns when the grace period of a terminating pod ends. Another grace period counts from when it was
// observed.
func (m *Memory) goneAt(p *corev1.Pod, now time.Time) time.Time {
	t := termination{seen: now, grace: time.Duration(ptr.Deref(p.GetDeletionGracePeriodSeconds(), 0)) * time.Second}
	if before, ok := m.terminating[p.GetUID()]; ok && before.grace == t.grace && before.seen.Before(now) {
		t = before
	}
	m.terminating[p.GetUID()] = t
	return t.seen.Add(t.grace)
}
