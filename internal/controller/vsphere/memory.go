package vsphere

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// How long after a failure the next attempt waits, and how long at most: what money or
// people must mend is not asked for every few seconds.
var patience = map[fn.ErrorCode]struct{ first, most time.Duration }{
	fn.ErrorTransient:         {2 * time.Second, 2 * time.Minute},
	fn.ErrorThrottled:         {10 * time.Second, 2 * time.Minute},
	fn.ErrorCapacityExhausted: {30 * time.Second, 5 * time.Minute},
	fn.ErrorQuotaExceeded:     {30 * time.Second, 5 * time.Minute},
	fn.ErrorInvalidRequest:    {30 * time.Second, 5 * time.Minute},
	fn.ErrorPermissionDenied:  {30 * time.Second, 2 * time.Minute},
}

// A note is what is remembered of a VM between reconciles. All of it can be lost: a
// task that is forgotten is begun again, which the vCenter refuses while it runs.
type note struct {
	// task that changes the VM, other than its clone.
	task string
	// failure of the last attempt, and of which clone.
	failure     error
	failedClone string
	failures    int // of its class, one after the other
	// until then nothing is tried, unless the object or the account changed.
	until      time.Time
	generation int64
	session    *vcenter
}

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
func (n *note) fail(now time.Time, err error, generation int64, v *vcenter) time.Duration {
	p := patience[classOf(err)]
	// Each class has its own patience, of which one that came before took nothing.
	if n.failure == nil || classOf(n.failure) != classOf(err) {
		n.failures = 0
	}
	wait := backoff(p.first, p.most, n.failures)
	n.failures++
	n.failure, n.until, n.generation, n.session = err, now.Add(wait), generation, v
	return wait
}

// waits for how long, because of a failure.
func (n *note) waits(now time.Time, generation int64, v *vcenter) time.Duration {
	if n.failure == nil || n.generation != generation || n.session != v {
		return 0
	}
	return max(0, n.until.Sub(now))
}

func (n *note) succeed() { n.failure, n.failures, n.until = nil, 0, time.Time{} }
