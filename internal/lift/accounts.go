package lift

import (
	"sync"
	"time"
)

// idleAfter is how long an account is kept without use: rotated credentials leave an account behind.
const idleAfter = time.Hour

// Accounts have one client for each account of a cloud, so that facts about an account, such as the calls that
// it has left, are shared by all users of it. K identifies an account: the endpoint and the credentials.
type Accounts[K comparable, C any] struct {
	mu    sync.Mutex
	known map[K]*account[C]
}

type account[C any] struct {
	client C
	used   time.Time
}

// Get returns the client of an account. If there is none, create makes it.
func (a *Accounts[K, C]) Get(key K, create func() (C, error)) (C, error) {
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
	c, err := create()
	if err != nil {
		return c, err
	}
	if a.known == nil {
		a.known = map[K]*account[C]{}
	}
	a.known[key] = &account[C]{client: c, used: now}
	return c, nil
}
