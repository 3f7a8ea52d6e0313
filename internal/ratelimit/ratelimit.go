// Package ratelimit keeps the calls of one account of a cloud to those that the cloud lets
// through.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// patience is how long a call waits for its turn. One that would wait longer fails,
	// so that its reconcile can say why nothing happens.
	patience = 30 * time.Second
	// fewLeft calls are kept to the pace at which the cloud gives new ones: as many as
	// may be under way at once.
	fewLeft = 20
	// defaultGap is between two calls of an account that has made too many, if the
	// cloud does not say when to come back.
	defaultGap = time.Second
	// slower is the first gap if the cloud does not say how many calls it takes, and
	// noGap what counts as none again.
	slower, noGap = 100 * time.Millisecond, 10 * time.Millisecond
)

// A Limiter keeps the calls of one account of a cloud to those that the cloud lets
// through. It goes by the answers: by status 429, the header Retry-After, and the
// headers RateLimit-Limit, -Remaining and -Reset (a time in seconds since 1970). What
// was refused with 429 has had no effect, and is sent again.
//
// All who use an account share one: what is left is handed out to them one by one.
type Limiter struct {
	next http.RoundTripper

	mu  sync.Mutex
	due time.Time     // when the next call may go
	gap time.Duration // from one call to the next
	// slowed is when the gap was last made longer by trial.
	slowed time.Time
}

// New returns a Limiter that sends calls with next.
func New(next http.RoundTripper) *Limiter { return &Limiter{next: next} }

// RoundTrip sends a request when it is its turn.
func (l *Limiter) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		if err := l.turn(req.Context(), req.URL.Host); err != nil {
			return nil, err
		}
		resp, err := l.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		l.learn(time.Now(), resp.StatusCode, resp.Header)
		again, ok := anew(req)
		if resp.StatusCode != http.StatusTooManyRequests || !ok {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		req = again
	}
}

// unsentError is of a call whose turn is too far away.
type unsentError struct {
	host string
	due  time.Duration
}

// Error begins with the class, which Compositions read.
func (e *unsentError) Error() string {
	return fmt.Sprintf("Throttled: too many requests to %s: the next one is due in %s", e.host, e.due.Round(time.Second))
}

// Unsent says of the error of a call that a [Limiter] did not send it.
func Unsent(err error) bool {
	var u *unsentError
	return errors.As(err, &u)
}

// anew is a request that can be sent once more, if it can be.
func anew(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again, true
}

// turn waits until a call may go.
func (l *Limiter) turn(ctx context.Context, host string) error {
	d, ok := l.reserve(time.Now())
	if !ok {
		return &unsentError{host: host, due: d}
	}
	return Sleep(ctx, d)
}

// Sleep waits for d, and returns the error of ctx if that ends sooner.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve says how long a call has to wait, and that it need not try if that is too long.
func (l *Limiter) reserve(now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.due
	if at.Before(now) {
		at = now
	}
	d := at.Sub(now)
	if d > patience {
		return d, false
	}
	l.due = at.Add(l.gap)
	return d, true
}

// learn from an answer.
func (l *Limiter) learn(now time.Time, status int, h http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, refill, told := limits(now, h)
	if after, ok := retryAfter(now, status, h); ok {
		after = max(after, refill)
		if !told && now.Sub(l.slowed) >= l.gap { // Those that were refused together count once.
			l.slowed, refill = now, min(max(2*l.gap, slower), defaultGap)
		}
		l.gap = max(refill, l.gap)
		if at := now.Add(after); at.After(l.due) {
			l.due = at
		}
		return
	}
	switch {
	case told && left < fewLeft:
		l.gap = refill
		// Those that wait were promised the pace of before.
		if at := now.Add(refill); left == 0 && at.After(l.due) {
			l.due = at
		}
	case told:
		l.gap = 0
	default: // The cloud does not tell: try a little faster each time.
		if l.gap = l.gap * 19 / 20; l.gap < noGap {
			l.gap = 0
		}
	}
}

// limits are how many calls are left, and after which time there is one more.
func limits(now time.Time, h http.Header) (left int, refill time.Duration, told bool) {
	limit, err1 := strconv.Atoi(h.Get("RateLimit-Limit"))
	left, err2 := strconv.Atoi(h.Get("RateLimit-Remaining"))
	reset, err3 := strconv.ParseInt(h.Get("RateLimit-Reset"), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || left < 0 {
		return 0, 0, false
	}
	if used := limit - left; used > 0 {
		refill = max(0, time.Unix(reset, 0).Sub(now)) / time.Duration(used)
	}
	return left, refill, true
}

// retryAfter says whether an answer asks for a pause, and for how long.
func retryAfter(now time.Time, status int, h http.Header) (time.Duration, bool) {
	v := h.Get("Retry-After")
	if status != http.StatusTooManyRequests && (status != http.StatusServiceUnavailable || v == "") {
		return 0, false
	}
	if s, err := strconv.Atoi(v); err == nil && s >= 0 {
		return time.Duration(s) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now)), true
	}
	return defaultGap, true
}
