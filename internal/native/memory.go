package native

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

// A note is the state of a VM that is kept in memory between reconciles. No decision depends on it:
// after a restart an attempt is repeated sooner.
type note struct {
	// changed is the time of the provider's last change of the VM.
	changed time.Time
	// failure of the last attempt.
	failure  error
	failures int // consecutive failures of this class
	// until is the time of the next attempt, unless the object or its account changes before.
	until      time.Time
	generation int64
	account    any
}

// A memory has the notes of all VMs: one per existing VM.
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
func (n *note) fail(now time.Time, err error, generation int64, account any) time.Duration {
	class := classOf(err)
	if n.failure == nil || classOf(n.failure) != class {
		n.failures = 0
	}
	p := patience[class]
	wait := backoff(p.first, p.most, n.failures)
	n.failures++
	n.failure, n.until, n.generation, n.account = err, now.Add(wait), generation, account
	return wait
}

// waits returns how long to wait because of a failure.
func (n *note) waits(now time.Time, generation int64, account any) time.Duration {
	if n.failure == nil || n.generation != generation || n.account != account {
		return 0
	}
	return max(0, n.until.Sub(now))
}

func (n *note) succeed() { n.failure, n.failures, n.until = nil, 0, time.Time{} }

// backoff returns the delay after a failure that follows a number of earlier failures.
func backoff(first, most time.Duration, failures int) time.Duration {
	return min(first<<min(failures, 16), most)
}
