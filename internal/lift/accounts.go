package lift

import (
	"sync"
	"time"
)

// idleAfter so long without use an account is forgotten: credentials that were rotated
// leave one behind.
const idleAfter = time.Hour

// Accounts have one client for each account of a cloud, so that what is known of an
// account, like how many calls it has left, is known to all who use it. K is what tells
// accounts apart: where and who.
type Accounts[K comparable, C any] struct {
	mu    sync.Mutex
	known map[K]*account[C]
}

type account[C any] struct {
	client C
	used   time.Time
}

// Get returns the client of an account, made by make if there is none.
func (a *Accounts[K, C]) Get(key K, make func() (C, error)) (C, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for k, other := range a.known {
		if k != key && now.Sub(other.used) > idleAfter {
			delete(a.known, k)
		}
	}
	if known, ok := a.known[key]; ok {
		known.used = now
		return known.client, nil
	}
	c, err := make()
	if err != nil {
		return c, err
	}
	if a.known == nil {
		a.known = map[K]*account[C]{}
	}
	a.known[key] = &account[C]{client: c, used: now}
	return c, nil
}
