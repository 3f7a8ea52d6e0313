// Package patience has the one limit of time of the tests. A test waits for an event, and never judges how long it took: the
// limit only ends a test whose event does not come. It is generous, and longer on a computer that has more to do than it has
// processors.
//
// TestOnlyThisPackageHasLimitsOfTime finds limits in other tests.
package patience

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// base is the limit on a computer that has nothing else to do.
	base = 8 * time.Minute
	// most is the multiple of it on a computer with more processes than processors.
	most = 3
)

// Limit returns the time after which a test fails.
func Limit() time.Duration {
	return limit(os.ReadFile, runtime.NumCPU())
}

func limit(read func(string) ([]byte, error), processors int) time.Duration {
	text, err := read("/proc/loadavg")
	if err != nil {
		return most * base
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return most * base
	}
	return time.Duration(float64(base) * min(most, max(1, load/float64(processors))))
}

// Scale returns a time that is as much longer as the limit is on a computer with other load. A test needs it only if its
// promise is that something does not wait for something else that takes longer.
func Scale(d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(Limit()) / float64(base))
}

// Context returns a context of a test that ends after the limit.
func Context(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), Limit())
}

// Flag returns the flag of kubectl, and of the launcher of a control plane, for a command that waits.
func Flag() string { return "--timeout=" + Limit().String() }

// Over returns a channel that delivers after the limit.
func Over() <-chan time.Time { return time.After(Limit()) }

// interval returns the time until the next poll. Each poll makes a few reads from a local server, and dozens of tests poll
// at the same time, so a test that has waited for long polls less often: it finds the event at most a twentieth later.
func interval(waited time.Duration) time.Duration {
	return min(2*time.Second, max(200*time.Millisecond, waited/20))
}

// Await polls until check returns "". It returns the last result of check if that stays the same for longer than the limit, or
// changes for longer than twice the limit: a large fleet may take its time as long as it gets on.
func Await(ctx context.Context, check func(ctx context.Context) string) string {
	return await(ctx, time.Now, time.Sleep, Limit, check)
}

// await is Await with a clock.
func await(ctx context.Context, now func() time.Time, pause func(time.Duration), limit func() time.Duration, check func(ctx context.Context) string) string {
	began := now()
	changed, last := began, ""
	for {
		missing := check(ctx)
		if missing == "" || ctx.Err() != nil {
			return missing
		}
		if missing != last {
			changed, last = now(), missing
		}
		waited := now().Sub(began)
		if l := limit(); now().Sub(changed) > l || waited > 2*l {
			return missing
		}
		pause(interval(waited))
	}
}

// contextOf returns the context of a test, or of its cleanup, which must not be canceled with the test.
func contextOf(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }

// Eventually polls as Await does. If check does not return "", it fails the test with the last result of check and with the
// results of describe.
func Eventually(t testing.TB, check func(ctx context.Context) string, describe ...func(ctx context.Context) string) {
	t.Helper()
	ctx := contextOf(t)
	missing := Await(ctx, check)
	if missing == "" {
		return
	}
	for _, d := range describe {
		missing += "\n" + d(ctx)
	}
	t.Fatalf("not within %s: %s", Limit(), missing)
}

// Until polls as Eventually does until a condition holds. The failure names the condition by its description.
func Until(t testing.TB, description string, holds func() bool) {
	t.Helper()
	Eventually(t, func(context.Context) string {
		if !holds() {
			return description
		}
		return ""
	})
}

// Throughout polls check until the event has happened: event returns "" then. As soon as check returns a text other than "",
// it fails the test. The event is one that is observed later than what check excludes would have been.
func Throughout(t testing.TB, event, check func(ctx context.Context) string) {
	t.Helper()
	failed := ""
	ctx := contextOf(t)
	missing := Await(ctx, func(ctx context.Context) string {
		if failed = check(ctx); failed != "" {
			return ""
		}
		return event(ctx)
	})
	if failed == "" && missing == "" {
		failed = check(ctx)
	}
	if failed != "" {
		t.Fatal(failed)
	}
	if missing != "" {
		t.Fatalf("not within %s: %s", Limit(), missing)
	}
}

// After returns an event that happens when the time has passed, for promises of what happens until then, and for faults
// that have a duration.
func After(d time.Duration) func(ctx context.Context) string {
	end := time.Now().Add(d)
	return func(context.Context) string {
		if time.Now().Before(end) {
			return "the time " + end.String() + " has not come"
		}
		return ""
	}
}
