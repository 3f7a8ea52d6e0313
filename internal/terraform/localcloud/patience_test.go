package localcloud

import (
	"context"
	"testing"
	"time"

	api "github.com/drover-dev/drover/internal/localcloud"
)

func TestPatiently(t *testing.T) {
	busy := &api.Error{Code: api.CodeThrottled, RetryAfter: time.Millisecond}
	cases := map[string]struct {
		answers []error
		timeout time.Duration
		want    error
		calls   int
	}{
		"ABusyCloudIsCalledAgain":        {[]error{busy, busy, nil}, time.Minute, nil, 3},
		"OtherErrorsAreReturned":         {[]error{api.NewError(api.CodeThrottled, "no time given"), nil}, time.Minute, api.NewError(api.CodeThrottled, "no time given"), 1},
		"ItDoesNotWaitPastItsTime":       {[]error{&api.Error{Code: api.CodeUnavailable, RetryAfter: time.Hour}, nil}, time.Minute, &api.Error{Code: api.CodeUnavailable, RetryAfter: time.Hour}, 1},
		"WithoutTimeLeftItReturnsAtOnce": {[]error{busy, nil}, 0, busy, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), tc.timeout)
			defer cancel()
			calls := 0
			_, err := patiently(ctx, func() (int, error) {
				calls++
				return calls, tc.answers[calls-1]
			})
			if api.CodeOf(err) != api.CodeOf(tc.want) || calls != tc.calls {
				t.Errorf("error %v after %d calls, want %v after %d", err, calls, tc.want, tc.calls)
			}
		})
	}
}
