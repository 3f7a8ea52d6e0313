package native

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// A Listing is a list of a cloud that concurrent reconciles share.
type Listing[E any] struct {
	// turn is held during the calls, and guards the fields below. A wait for a mutex cannot be canceled.
	turn     *semaphore.Weighted
	at       time.Time
	entries  []E
	complete bool
}

// NewListing returns a Listing that nothing was read of.
func NewListing[E any]() *Listing[E] { return &Listing[E]{turn: semaphore.NewWeighted(1)} }

// Get returns entries that were read after since and at most age ago. If there are none, it calls read. The
// second value is false if an entry may be missing.
func (l *Listing[E]) Get(ctx context.Context, now func() time.Time, since time.Time, age time.Duration, read func() ([]E, bool, error)) ([]E, bool, error) {
	if err := l.turn.Acquire(ctx, 1); err != nil {
		return nil, false, err
	}
	defer l.turn.Release(1)
	began := now()
	if !l.at.IsZero() && l.at.After(since) && began.Sub(l.at) <= age {
		return l.entries, l.complete, nil
	}
	entries, complete, err := read()
	if err != nil {
		return nil, false, err
	}
	l.at, l.entries, l.complete = began, entries, complete
	return entries, complete, nil
}
