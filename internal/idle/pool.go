// Package idle keeps the connections of providers between reconciles, and ends those that are no
// longer used: each rotation of credentials leaves one behind.
package idle

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"
)

const (
	// After is how long an unused connection is kept.
	After = 10 * time.Minute
	// sweepEvery is the interval between searches for unused connections.
	sweepEvery = time.Minute
)

// A Key identifies a connection.
type Key [sha256.Size]byte

// KeyOf returns the key of the values that a connection is opened with: a change of any of them opens
// another connection. It fails if a value has no JSON.
func KeyOf(values ...any) (Key, error) {
	b, err := json.Marshal(values)
	return sha256.Sum256(b), err
}

// A Pool has one connection per key.
type Pool[V any] struct {
	now func() time.Time
	end func(context.Context, V)

	mu      sync.Mutex
	entries map[Key]*entry[V]
}

type entry[V any] struct {
	value V
	used  time.Time
}

// NewPool returns an empty pool. It calls end for each connection that it drops.
func NewPool[V any](now func() time.Time, end func(context.Context, V)) *Pool[V] {
	return &Pool[V]{now: now, end: end, entries: map[Key]*entry[V]{}}
}

// Get returns the connection of a key. It opens a new one, unless there is one.
func (p *Pool[V]) Get(k Key, open func() (V, error)) (V, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[k]
	if e == nil {
		opened, err := open()
		if err != nil {
			return opened, err
		}
		e = &entry[V]{value: opened}
		p.entries[k] = e
	}
	e.used = p.now()
	return e.value, nil
}

// Start sweeps until ctx is done, and then ends all connections.
func (p *Pool[V]) Start(ctx context.Context) error {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.Sweep(ctx, After)
		case <-ctx.Done():
			p.Sweep(context.WithoutCancel(ctx), 0)
			return nil
		}
	}
}

// Sweep ends the connections that were unused for this time.
func (p *Pool[V]) Sweep(ctx context.Context, unused time.Duration) {
	var dropped []V
	p.mu.Lock()
	for k, e := range p.entries {
		if p.now().Sub(e.used) >= unused {
			dropped = append(dropped, e.value)
			delete(p.entries, k)
		}
	}
	p.mu.Unlock()
	for _, v := range dropped {
		p.end(ctx, v)
	}
}
