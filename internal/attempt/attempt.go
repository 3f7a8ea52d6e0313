// Package attempt delays the next attempt of a provider after a failure. Nothing depends on its
// memory: after a restart an attempt is repeated sooner.
package attempt

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

	fn.ErrorProviderConfigNotFound: {30 * time.Second, 2 * time.Minute},
}

// Failures are the failures of the last attempts for an object. The zero value has none.
type Failures struct {
	last  error
	class fn.ErrorCode
	count int // consecutive failures of the class
	// until is the time of the next attempt, unless the object or its account changes before.
	until      time.Time
	generation int64
	account    any
}

// Last returns the failure of the last attempt, nil if it succeeded.
func (f *Failures) Last() error { return f.last }

// Add adds the failure of an attempt for a generation of the object, with an account. It returns the
// delay until the next attempt. The delays of each class start at its first one: earlier failures of
// other classes do not count.
func (f *Failures) Add(now time.Time, err error, class fn.ErrorCode, generation int64, account any) time.Duration {
	if f.last == nil || f.class != class {
		f.count = 0
	}
	p := patience[class]
	wait := Backoff(p.first, p.most, f.count)
	f.count++
	f.last, f.class, f.until, f.generation, f.account = err, class, now.Add(wait), generation, account
	return wait
}

// Wait returns how long to wait because of the last failure. Another generation of the object, or
// another account, has no failure yet.
func (f *Failures) Wait(now time.Time, generation int64, account any) time.Duration {
	if f.last == nil || f.generation != generation || f.account != account {
		return 0
	}
	return max(0, f.until.Sub(now))
}

// Clear forgets all failures.
func (f *Failures) Clear() { *f = Failures{} }

// Backoff returns the delay after a failure that follows a number of earlier failures.
func Backoff(first, most time.Duration, failures int) time.Duration {
	return min(first<<min(failures, 16), most)
}

// A Memory has a note of type N for each object. The zero value is empty.
type Memory[N any] struct {
	mu    sync.Mutex
	notes map[types.UID]*N
}

// Of returns the note of an object. Only one reconcile at a time uses a note.
func (m *Memory[N]) Of(uid types.UID) *N {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[types.UID]*N{}
	}
	n := m.notes[uid]
	if n == nil {
		n = new(N)
		m.notes[uid] = n
	}
	return n
}

// Forget deletes the note of an object.
func (m *Memory[N]) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, uid)
}
