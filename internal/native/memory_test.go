package native

import (
	"errors"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/attempt"
)

func TestAFailureIsWaitedFor(t *testing.T) {
	transient := errors.New("connection reset")
	exhausted := &Error{Class: fn.ErrorCapacityExhausted, Err: errors.New("no room")}
	account, now := new(int), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		failures   []error
		after      time.Duration
		generation int64
		account    any
		want       time.Duration
	}{
		"AFirstFailureWaitsShortly":            {[]error{transient}, 0, 1, account, 2 * time.Second},
		"EachFailureWaitsTwiceAsLong":          {[]error{transient, transient, transient}, 0, 1, account, 8 * time.Second},
		"ThereIsALimit":                        {make([]error, 40), 0, 1, account, 2 * time.Minute},
		"AnotherClassHasItsOwnPatience":        {[]error{transient, transient, exhausted}, 0, 1, account, 30 * time.Second},
		"TimePasses":                           {[]error{exhausted}, 20 * time.Second, 1, account, 10 * time.Second},
		"AWaitEnds":                            {[]error{exhausted}, time.Hour, 1, account, 0},
		"AChangeOfTheObjectEndsTheWait":        {[]error{exhausted}, 0, 2, account, 0},
		"ARotationOfTheCredentialsEndsTheWait": {[]error{exhausted}, 0, 1, new(int), 0},
		"NoFailureWaitsForNothing":             {nil, 0, 1, account, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := (&attempt.Memory[note]{}).Of("uid")
			for _, err := range tc.failures {
				if err == nil {
					err = transient
				}
				n.fail(now, err, 1, account)
			}
			if got := n.Wait(now.Add(tc.after), tc.generation, tc.account); got != tc.want {
				t.Errorf("waits %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAResultIsUnknown(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"OfAnErrorThatTheCloudDidNotClassify": {errors.New("unexpected EOF"), true},
		"OfATransientError":                   {&Error{Class: fn.ErrorTransient, Err: errors.New("x")}, true},
		"NotOfOneThatIsRefused":               {&Error{Class: fn.ErrorTransient, Err: errors.New("x"), Refused: true}, false},
		"NotOfAnInvalidRequest":               {Invalid("cores", "too many"), false},
		"NotOfAQuota":                         {&Error{Class: fn.ErrorQuotaExceeded, Err: errors.New("x")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hasUnknownResult(tc.err); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
