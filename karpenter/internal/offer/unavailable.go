package offer

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// unavailableFor is how long Karpenter does not choose an offering that the cloud had no room for: as long as in its provider
// for AWS.
const unavailableFor = 3 * time.Minute

// Unavailable remembers the keys for which the clouds had no room. It has one entry per class and failure domain. A restart forgets it,
// and the next NodeClaim asks the cloud again.
type Unavailable struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	until map[Key]time.Time
}

// NewUnavailable remembers nothing yet.
func NewUnavailable(c clock.PassiveClock) *Unavailable {
	return &Unavailable{clock: c, until: map[Key]time.Time{}}
}

// Mark a class in a failure domain.
func (u *Unavailable) Mark(k Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.until[k] = u.clock.Now().Add(unavailableFor)
}

// Is reports whether the cloud had no room a short time ago.
func (u *Unavailable) Is(k Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	until, ok := u.until[k]
	if ok && !u.clock.Now().Before(until) {
		delete(u.until, k)
		return false
	}
	return ok
}
