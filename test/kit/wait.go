package kit

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// interval of polling. Each poll is a few reads of a local API server.
const interval = 200 * time.Millisecond

// Eventually polls until check returns "", and fails the test with what it last
// reported, and what describe returns then, when timeout passes before.
func Eventually(t testing.TB, timeout time.Duration, check func(ctx context.Context) string, describe ...func(ctx context.Context) string) {
	t.Helper()
	if missing := Within(t, timeout, check, describe...); missing != "" {
		t.Fatal(missing)
	}
}

// Within polls as Eventually does. It returns what check last reported when timeout passes, and
// "" as soon as check returns that.
func Within(t testing.TB, timeout time.Duration, check func(ctx context.Context) string, describe ...func(ctx context.Context) string) string {
	t.Helper()
	// A call has a deadline of its own, later than the last look: an error about a
	// deadline would hide what is awaited.
	ctx, cancel := context.WithTimeout(t.Context(), timeout+time.Minute)
	defer cancel()
	end := time.After(timeout)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		missing := check(ctx)
		if missing == "" {
			return ""
		}
		select {
		case <-end:
			for _, d := range describe {
				missing += "\n" + d(ctx)
			}
			return fmt.Sprintf("not within %s: %s", timeout, missing)
		case <-tick.C:
		}
	}
}

// Throughout polls for the whole time, and fails the test as soon as check
// returns anything but "".
func Throughout(t testing.TB, d time.Duration, check func(ctx context.Context) string) {
	t.Helper()
	end := time.After(d)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if s := check(t.Context()); s != "" {
			t.Fatal(s)
		}
		select {
		case <-end:
			return
		case <-tick.C:
		}
	}
}
