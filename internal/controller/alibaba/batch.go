package alibaba

import (
	"context"
	"sync"
	"time"
)

const (
	// batchFor is how long a batch waits for further instances.
	batchFor = 100 * time.Millisecond
	// maxBatch is the maximum number of instances that one call returns.
	maxBatch = 100
)

// A batch reads the instances of concurrent reconciles with one call.
type batch struct {
	// read returns the instances with the IDs that exist.
	read func(ctx context.Context, ids []string) (map[string]instance, error)

	mu   sync.Mutex
	next *reading
}

// A reading is one call.
type reading struct {
	ids   []string
	timer *time.Timer
	// done is closed when the call has ended. The fields below are then set.
	done  chan struct{}
	found map[string]instance
	err   error
}

// get returns the instance with the ID, or false if the list has none. The call starts after get is called.
func (b *batch) get(ctx context.Context, id string) (instance, bool, error) {
	r := b.join(id)
	select {
	case <-r.done:
	case <-ctx.Done():
		return instance{}, false, ctx.Err()
	}
	i, ok := r.found[id]
	return i, ok, r.err
}

// join adds an ID to the next call.
func (b *batch) join(id string) *reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.next
	if r == nil {
		r = &reading{done: make(chan struct{})}
		r.timer = time.AfterFunc(batchFor, func() { b.start(r) })
		b.next = r
	}
	r.ids = append(r.ids, id)
	if len(r.ids) == maxBatch {
		b.next = nil
		if r.timer.Stop() {
			go b.carryOut(r)
		}
	}
	return r
}

// start starts the call at the end of its wait.
func (b *batch) start(r *reading) {
	b.mu.Lock()
	if b.next == r {
		b.next = nil
	}
	b.mu.Unlock()
	b.carryOut(r)
}

func (b *batch) carryOut(r *reading) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout+patience)
	defer cancel()
	r.found, r.err = b.read(ctx, r.ids)
	close(r.done)
}
