package kit

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// interval of polling. Each poll makes a few reads from a local API server.
const interval = 200 * time.Millisecond

// Eventually polls until check returns "". If the timeout passes before, it fails the test with
// the last result of check and with the results of describe.
func Eventually(t testing.TB, timeout time.Duration, check func(ctx context.Context) string, describe ...func(ctx context.Context) string) {
	t.Helper()
	if missing := Within(t, timeout, check, describe...); missing != "" {
		t.Fatal(missing)
	}
}

// Within polls like Eventually. It returns "" as soon as check does. If the timeout passes
// before, it returns the last result of check.
func Within(t testing.TB, timeout time.Duration, check func(ctx context.Context) string, describe ...func(ctx context.Context) string) string {
	t.Helper()
	// The deadline of calls is later than the timeout: an error about a deadline would hide the
	// result of check.
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

// Throughout polls for the whole duration. As soon as check returns a text other than "", it
// fails the test.
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
