package api

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/internal/localcloud"
)

// limiter throttles calls beyond a rate per second. The rate may change at any time.
type limiter struct {
	clock clock.Clock
	rate  func() int

	mu      sync.Mutex
	current int
	bucket  *rate.Limiter
}

func (l *limiter) limited(next handler) handler {
	return func(r *http.Request) (int, any, error) {
		if err := l.take(); err != nil {
			return 0, nil, err
		}
		return next(r)
	}
}

func (l *limiter) take() error {
	perSecond := l.rate()
	if perSecond == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bucket == nil || l.current != perSecond {
		l.current, l.bucket = perSecond, rate.NewLimiter(rate.Limit(perSecond), perSecond)
	}
	now := l.clock.Now()
	wait := l.bucket.ReserveN(now, 1)
	delay := wait.DelayFrom(now)
	if delay == 0 {
		return nil
	}
	wait.CancelAt(now)
	e := localcloud.NewError(localcloud.CodeThrottled, "more than %d requests a second", perSecond)
	e.RetryAfter = delay
	return e
}
