package native

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAListIsSharedUntilItIsTooOld(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		since  time.Time
		passed time.Duration
		reads  int
	}{
		"WhatWasJustReadIsUsedAgain":                  {time.Time{}, time.Second, 1},
		"WhatIsOlderThanTheAgeIsReadAgain":            {time.Time{}, 3 * time.Second, 2},
		"WhatWasReadBeforeTheLastChangeIsReadAgain":   {start.Add(time.Second), time.Second, 2},
		"WhatWasReadAfterTheLastChangeIsUsedAgain":    {start.Add(-time.Second), time.Second, 1},
		"WhatWasReadAtTheTimeOfTheChangeIsReadAgain":  {start, time.Second, 2},
		"WhatHasExactlyTheAgeIsUsedAgain":             {time.Time{}, 2 * time.Second, 1},
		"TimeThatDidNotPassKeepsWhatWasReadUnchanged": {time.Time{}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			now, reads := start, 0
			l := NewListing[int]()
			get := func(since time.Time) {
				t.Helper()
				entries, complete, err := l.Get(t.Context(), func() time.Time { return now }, since, 2*time.Second, func() ([]int, bool, error) {
					reads++
					return []int{reads}, false, nil
				})
				if err != nil || complete || len(entries) != 1 || entries[0] != reads {
					t.Fatalf("entries %v, complete %t: %v", entries, complete, err)
				}
			}
			get(time.Time{})
			now = now.Add(tc.passed)
			if get(tc.since); reads != tc.reads {
				t.Errorf("%d reads, want %d", reads, tc.reads)
			}
		})
	}
}

func TestAListThatFailedIsReadAgain(t *testing.T) {
	l, failure := NewListing[int](), errors.New("no connection")
	for _, want := range []error{failure, nil} {
		entries, _, err := l.Get(t.Context(), time.Now, time.Time{}, time.Minute, func() ([]int, bool, error) { return []int{1}, true, want })
		if !errors.Is(err, want) || (len(entries) == 1) != (want == nil) {
			t.Errorf("entries %v: %v, want %v", entries, err, want)
		}
	}
}

func TestAWaitForAListEndsWithItsContext(t *testing.T) {
	l := NewListing[int]()
	_, _, _ = l.Get(t.Context(), time.Now, time.Time{}, 0, func() ([]int, bool, error) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := l.Get(ctx, time.Now, time.Time{}, 0, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return nil, true, nil
	})
}
