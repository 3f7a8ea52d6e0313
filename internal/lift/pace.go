package lift

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

// A Pace keeps the calls of one account of a cloud to those that the cloud lets
// through. It goes by the answers: by status 429, the header Retry-After, and the
// headers RateLimit-Limit, -Remaining and -Reset (a time in seconds since 1970). What
// was refused with 429 has had no effect, and is sent again.
//
// All who use an account share one: what is left is handed out to them one by one.
type Pace struct {
	next http.RoundTripper

	mu  sync.Mutex
	due time.Time     // when the next call may go
	gap time.Duration // from one call to the next
	// slowed is when the gap was last made longer by trial.
	slowed time.Time
}

// NewPace returns a Pace that sends calls with next.
func NewPace(next http.RoundTripper) *Pace { return &Pace{next: next} }

// RoundTrip sends a request when it is its turn.
func (p *Pace) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		if err := p.turn(req.Context(), req.URL.Host); err != nil {
			return nil, err
		}
		resp, err := p.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		p.learn(time.Now(), resp.StatusCode, resp.Header)
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

// Unsent says of the error of a call that a [Pace] did not send it.
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
func (p *Pace) turn(ctx context.Context, host string) error {
	d, ok := p.reserve(time.Now())
	if !ok {
		return &unsentError{host: host, due: d}
	}
	return sleep(ctx, d)
}

// sleep for d, and no longer than ctx.
func sleep(ctx context.Context, d time.Duration) error {
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
func (p *Pace) reserve(now time.Time) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.due
	if at.Before(now) {
		at = now
	}
	d := at.Sub(now)
	if d > patience {
		return d, false
	}
	p.due = at.Add(p.gap)
	return d, true
}

// learn from an answer.
func (p *Pace) learn(now time.Time, status int, h http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, refill, told := limits(now, h)
	if after, ok := retryAfter(now, status, h); ok {
		after = max(after, refill)
		if !told && now.Sub(p.slowed) >= p.gap { // Those that were refused together count once.
			p.slowed, refill = now, min(max(2*p.gap, slower), defaultGap)
		}
		p.gap = max(refill, p.gap)
		if at := now.Add(after); at.After(p.due) {
			p.due = at
		}
		return
	}
	switch {
	case told && left < fewLeft:
		p.gap = refill
		// Those that wait were promised the pace of before.
		if at := now.Add(refill); left == 0 && at.After(p.due) {
			p.due = at
		}
	case told:
		p.gap = 0
	default: // The cloud does not tell: try a little faster each time.
		if p.gap = p.gap * 19 / 20; p.gap < noGap {
			p.gap = 0
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
