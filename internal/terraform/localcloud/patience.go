package localcloud

import (
	"context"
	"errors"
	"time"

	api "github.com/drover-dev/drover/internal/localcloud"
)

// pollInterval is how often a VM is looked at while something is awaited.
const pollInterval = 300 * time.Millisecond

// patiently makes a call again as long as the cloud answers that it did nothing
// and when to come back, and the context has time for that.
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
