package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// breakerPause is how long no call is tried after a call could not connect. Then one call is tried, and all
// other ones still fail at once.
const breakerPause = 5 * time.Second

// A downError is the error of a call that is not tried.
type downError struct{ last error }

func (e *downError) Error() string {
	return fmt.Sprintf("not tried again yet after: %v", e.last)
}

// A breaker keeps the workers from waiting, one after another, for a dead cluster. All transports to a cluster
// share it.
type breaker struct {
	now func() time.Time
	// opened is called with the error of a call that could not connect after one that could. It may be nil.
	opened func(error)

	mu    sync.Mutex
	last  error     // of the failure that opened it, nil while closed
	retry time.Time // when one call may be tried
	trial bool      // one is under way
}

// wrap has the signature of transport.WrapperFunc.
func (b *breaker) wrap(next http.RoundTripper) http.RoundTripper {
	return &guarded{breaker: b, next: next}
}

type guarded struct {
	*breaker
	next http.RoundTripper
}

// RoundTrip sends a request, unless the cluster is known to be dead.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	trial, err := g.enter()
	if err != nil {
		return nil, err
	}
	res, err := g.next.RoundTrip(req)
	g.leave(trial, err)
	return res, err
}

// WrappedRoundTripper lets the connections below be closed.
func (g *guarded) WrappedRoundTripper() http.RoundTripper { return g.next }

func (b *breaker) enter() (trial bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		return false, nil
	}
	if b.trial || b.now().Before(b.retry) {
		return false, &downError{last: b.last}
	}
	b.trial = true
	return true, nil
}

func (b *breaker) leave(trial bool, err error) {
	if b.record(trial, err) && b.opened != nil {
		b.opened(err)
	}
}

// record the end of a call, and report whether it opened the breaker.
func (b *breaker) record(trial bool, err error) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if trial {
		b.trial = false
	}
	switch {
	case err == nil:
		b.last = nil
	case errors.Is(err, context.Canceled), errors.Is(err, errBusy), errors.Is(err, errSlow): // not of the cluster
	default:
		opened = b.last == nil
		b.last, b.retry = err, b.now().Add(breakerPause)
	}
	return opened
}
