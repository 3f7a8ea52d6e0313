package native

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// patience is how long the next attempt waits after a failure, and how long at most.
var patience = map[fn.ErrorCode]struct{ first, most time.Duration }{
	fn.ErrorTransient:         {2 * time.Second, 2 * time.Minute},
	fn.ErrorThrottled:         {10 * time.Second, 2 * time.Minute},
	fn.ErrorCapacityExhausted: {30 * time.Second, 5 * time.Minute},
	fn.ErrorQuotaExceeded:     {30 * time.Second, 5 * time.Minute},
	fn.ErrorInvalidRequest:    {30 * time.Second, 5 * time.Minute},
	fn.ErrorPermissionDenied:  {30 * time.Second, 2 * time.Minute},
}

// A note remembers a VM between reconciles. A restart loses it: then an attempt is
// repeated sooner. It carries no decision.
type note struct {
	// changed is when the VM was last changed from here.
	changed time.Time
	// failure of the last attempt, and how many of its class there were one after the other.
	failure  error
	failures int
	// until then nothing is tried, unless the object or its account changes.
	until      time.Time
	generation int64
	account    any
}

// memory has the notes of all VMs: one for each that exists.
type memory struct {
	mu    sync.Mutex
	notes map[types.UID]*note
}

// of an object. A note is used by one reconcile at a time.
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

// fail notes a failure. It returns how long to wait.
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

// waits returns for how long, because of a failure.
func (n *note) waits(now time.Time, generation int64, account any) time.Duration {
	if n.failure == nil || n.generation != generation || n.account != account {
		return 0
	}
	return max(0, n.until.Sub(now))
}

func (n *note) succeed() { n.failure, n.failures, n.until = nil, 0, time.Time{} }

// backoff after some failures before this one.
func backoff(first, most time.Duration, failures int) time.Duration {
	return min(first<<min(failures, 16), most)
}
