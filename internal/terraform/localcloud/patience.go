package localcloud

import (
	"context"
	"errors"
	"time"

	api "github.com/drover-dev/drover/internal/localcloud"
)

// pollInterval is the interval of the reads of a VM that is waited for.
const pollInterval = 300 * time.Millisecond

// patiently repeats a call while the cloud responds that it did nothing and when to retry, and the context has
// time for that.
func patiently[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for {
		v, err := call()
		var e *api.Error
		if !errors.As(err, &e) || e.RetryAfter == 0 {
			return v, err
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < e.RetryAfter {
			return v, err
		}
		if sleep(ctx, e.RetryAfter) != nil {
			return v, err
		}
	}
}

// sleep returns the context's error when the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
