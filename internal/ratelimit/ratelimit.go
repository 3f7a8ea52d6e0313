// Package ratelimit limits the calls of one account of a cloud to the rate that the cloud accepts.
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
	// patience is how long a call waits for its turn. A call that would wait longer fails, so that its reconcile
	// can report why nothing happens.
	patience = 30 * time.Second
	// fewLeft is how many calls may run at once. If the account has fewer calls left, they are limited to the rate
	// at which the cloud allows new ones.
	fewLeft = 20
	// defaultGap is the interval between two calls of an account that has made too many, if the cloud returns no
	// delay.
	defaultGap = time.Second
	// slower is the first interval if the cloud reports no limit, and below noGap an interval counts as none.
	slower, noGap = 100 * time.Millisecond, 10 * time.Millisecond
)

// A Limiter limits the calls of one account of a cloud to the rate that the cloud accepts. It adapts to
// responses: to status 429, the header Retry-After, and the headers RateLimit-Limit, -Remaining and -Reset (a
// time in seconds since 1970). A call that was refused with 429 had no effect, and is sent again.
//
// All clients of an account share one Limiter, which admits their calls one by one.
type Limiter struct {
	next http.RoundTripper

	mu  sync.Mutex
	due time.Time     // when the next call may be sent
	gap time.Duration // from one call to the next
	// slowed is when the interval was last increased by trial.
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

// unsentError is for a call whose turn is too far away.
type unsentError struct {
	host string
	due  time.Duration
}

// Error begins with the class, which Compositions read.
func (e *unsentError) Error() string {
	return fmt.Sprintf("Throttled: too many requests to %s: the next one is due in %s", e.host, e.due.Round(time.Second))
}

// Unsent reports whether a [Limiter] did not send the call that failed with the error.
func Unsent(err error) bool {
	var u *unsentError
	return errors.As(err, &u)
}

// It returns a request that can be sent again, and false if there is none.
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
	now, most := time.Now(), patience
	if deadline, ok := ctx.Deadline(); ok {
		// The call would be given up before its turn.
		most = min(most, deadline.Sub(now))
	}
	d, ok := l.reserve(now, most)
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

// reserve returns how long a call has to wait, and false if that is longer than most.
func (l *Limiter) reserve(now time.Time, most time.Duration) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.due
	if at.Before(now) {
		at = now
	}
	d := at.Sub(now)
	if d > most {
		return d, false
	}
	l.due = at.Add(l.gap)
	return d, true
}

// learn adapts to a response.
func (l *Limiter) learn(now time.Time, status int, h http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, refill, isKnown := limits(now, h)
	if after, ok := retryAfter(now, status, h); ok {
		after = max(after, refill)
		if !isKnown && now.Sub(l.slowed) >= l.gap { // Calls that were refused together count once.
			l.slowed, refill = now, min(max(2*l.gap, slower), defaultGap)
		}
		l.gap = max(refill, l.gap)
		if at := now.Add(after); at.After(l.due) {
			l.due = at
		}
		return
	}
	switch {
	case isKnown && left < fewLeft:
		l.gap = refill
		// The calls that wait have their turns by the previous rate.
		if at := now.Add(refill); left == 0 && at.After(l.due) {
			l.due = at
		}
	case isKnown:
		l.gap = 0
	default: // The cloud reports no limits: gradually increase the rate.
		if l.gap = l.gap * 19 / 20; l.gap < noGap {
			l.gap = 0
		}
	}
}

// limits returns how many calls are left, and after which time there is one more.
func limits(now time.Time, h http.Header) (left int, refill time.Duration, isKnown bool) {
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

// retryAfter reports whether a response requests a pause, and its duration.
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
