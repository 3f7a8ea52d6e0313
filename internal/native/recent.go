package native

import (
	"maps"
	"sync"
	"time"
)

// A Recent set keeps members for some time, such as instances whose deletion the cloud accepted a moment ago: a list may
// show them as running.
type Recent[K comparable] struct {
	now func() time.Time
	age time.Duration

	mu    sync.Mutex
	since map[K]time.Time
}

// NewRecent returns an empty set. A member leaves it when it has been in it for age.
func NewRecent[K comparable](now func() time.Time, age time.Duration) *Recent[K] {
	return &Recent[K]{now: now, age: age, since: map[K]time.Time{}}
}

// Add adds a member, for the whole age also if it is one already.
func (r *Recent[K]) Add(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	maps.DeleteFunc(r.since, func(_ K, since time.Time) bool { return now.Sub(since) >= r.age })
	r.since[k] = now
}

// Has reports whether k is a member.
func (r *Recent[K]) Has(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.since[k]
	return ok && r.now().Sub(since) < r.age
}
