package vsphere

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// patience is the first and the longest delay after a failure, by class. Errors that only a user or a
// larger quota can fix are not retried every few seconds.
var patience = map[fn.ErrorCode]struct{ first, most time.Duration }{
	fn.ErrorTransient:         {2 * time.Second, 2 * time.Minute},
	fn.ErrorThrottled:         {10 * time.Second, 2 * time.Minute},
	fn.ErrorCapacityExhausted: {30 * time.Second, 5 * time.Minute},
	fn.ErrorQuotaExceeded:     {30 * time.Second, 5 * time.Minute},
	fn.ErrorInvalidRequest:    {30 * time.Second, 5 * time.Minute},
	fn.ErrorPermissionDenied:  {30 * time.Second, 2 * time.Minute},
}

// A note is the state of a VM that is kept in memory between reconciles. All of it can be lost: a
// lost task is started again, which the vCenter refuses while it runs.
type note struct {
	// task that changes the VM, other than its clone.
	task string
	// failure of the last attempt, and the clone task that failed.
	failure     error
	failedClone string
	failures    int // consecutive failures of this class
	// until is the time of the next attempt, unless the object or the account changes before.
	until      time.Time
	generation int64
	session    *vcenter
}

type memory struct {
	mu    sync.Mutex
	notes map[types.UID]*note
}

// of returns the note of an object. Only one reconcile at a time uses a note.
func (m *memory) of(uid types.UID) *note {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[types.UID]*note{}
	}
	n := m.notes[uid]
	if n == nil {
		n = &note{}
		m.notes[uid] = n
	}
	return n
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, uid)
}

// fail records a failure. It returns the delay until the next attempt.
func (n *note) fail(now time.Time, err error, generation int64, v *vcenter) time.Duration {
	p := patience[classOf(err)]
	// The delays of each class start at its first one: earlier failures of other classes do not
	// count.
	if n.failure == nil || classOf(n.failure) != classOf(err) {
		n.failures = 0
	}
	wait := backoff(p.first, p.most, n.failures)
	n.failures++
	n.failure, n.until, n.generation, n.session = err, now.Add(wait), generation, v
	return wait
}

// waits returns how long to wait because of a failure.
func (n *note) waits(now time.Time, generation int64, v *vcenter) time.Duration {
	if n.failure == nil || n.generation != generation || n.session != v {
		return 0
	}
	return max(0, n.until.Sub(now))
}

func (n *note) succeed() { n.failure, n.failures, n.until = nil, 0, time.Time{} }
