package native

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Pauses after a status 429 without Retry-After: the first one, the factor of each further one, and the longest one.
const firstPause, pauseFactor, longestPause = 2 * time.Second, 4, time.Minute

// pauses add the header Retry-After to each status 429 without it, for an API that does not document it. The pauses
// grow, so that a cloud that refuses all calls gets few, and the rate limiter reports the cause.
type pauses struct {
	next http.RoundTripper
	now  func() time.Time

	mu    sync.Mutex
	pause time.Duration
	// at is the time when the pause began.
	at time.Time
}

// newPauses returns pauses of the responses of next.
func newPauses(next http.RoundTripper, now func() time.Time) *pauses {
	return &pauses{next: next, now: now}
}

// RoundTrip sends a request.
func (p *pauses) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := p.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case resp.StatusCode != http.StatusTooManyRequests:
		p.pause = 0
	case resp.Header.Get("Retry-After") == "":
		// Calls that were refused together count once.
		if now := p.now(); now.Sub(p.at) >= p.pause {
			p.pause, p.at = min(max(pauseFactor*p.pause, firstPause), longestPause), now
		}
		resp.Header.Set("Retry-After", strconv.Itoa(int(p.pause/time.Second)))
	}
	return resp, nil
}
