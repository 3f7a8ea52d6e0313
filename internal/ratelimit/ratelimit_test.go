package ratelimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bucket is a cloud that accepts limit calls at once, and then one every refill.
type bucket struct {
	limit  int
	refill time.Duration
	silent bool // reports no limits

	mu             sync.Mutex
	level          float64
	at             time.Time
	calls, refused int
}

func (b *bucket) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.at.IsZero() {
		b.level = float64(b.limit)
	} else {
		b.level = min(float64(b.limit), b.level+float64(now.Sub(b.at))/float64(b.refill))
	}
	b.at = now
	b.calls++
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req}
	if b.level < 1 {
		b.refused++
		resp.StatusCode = http.StatusTooManyRequests
	} else {
		b.level--
	}
	if !b.silent {
		resp.Header.Set("RateLimit-Limit", strconv.Itoa(b.limit))
		resp.Header.Set("RateLimit-Remaining", strconv.Itoa(int(b.level)))
		resp.Header.Set("RateLimit-Reset", strconv.FormatInt(now.Add(time.Duration((float64(b.limit)-b.level)*float64(b.refill))).Unix(), 10))
	}
	return resp, nil
}

func send(t *testing.T, ctx context.Context, rt http.RoundTripper, body string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cloud/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func TestAPaceKeepsManyCallersToWhatTheCloudLetsThrough(t *testing.T) {
	for name, silent := range map[string]bool{"TheCloudReportsItsLimits": false, "TheCloudOnlySaysNo": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bucket{limit: 40, refill: time.Second, silent: silent}
				p, begin := New(b), time.Now()
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						for range 5 {
							for send(t, t.Context(), p, "x") != nil { // Its turn was too far away.
								time.Sleep(time.Second)
							}
						}
					})
				}
				wg.Wait()
				t.Logf("%d calls, %d of them refused, in %s", b.calls, b.refused, time.Since(begin))
				if b.calls-b.refused != 100 {
					t.Errorf("%d calls came through, want 100", b.calls-b.refused)
				}
				if !silent && b.refused > 20 || b.refused > 100 {
					t.Errorf("%d calls were refused", b.refused)
				}
				if d := time.Since(begin); d > 3*time.Minute {
					t.Errorf("took %s, and the cloud has calls for a minute", d)
				}
			})
		})
	}
}

// fixed gives its answers in turn.
type fixed []answer

type answer struct {
	status     int
	retryAfter string
}

func (f *fixed) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil || string(b) != "body" {
		return nil, err
	}
	a := (*f)[0]
	if len(*f) > 1 {
		*f = (*f)[1:]
	}
	resp := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
	if a.retryAfter != "" {
		resp.Header.Set("Retry-After", a.retryAfter)
	}
	return resp, nil
}

func TestAPaceComesBackWhenTheCloudSays(t *testing.T) {
	for name, tc := range map[string]struct {
		retryAfter string
		want       time.Duration
	}{
		"InSeconds":    {"7", 7 * time.Second},
		"AtATime":      {"Sat, 01 Jan 2000 00:00:05 GMT", 5 * time.Second}, // A bubble's clock begins that day.
		"WithoutAWord": {"", defaultGap},
		"InNoTime":     {"0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, begin := New(&fixed{{http.StatusTooManyRequests, tc.retryAfter}, {http.StatusOK, ""}}), time.Now()
				if err := send(t, t.Context(), p, "body"); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(begin); d != tc.want {
					t.Errorf("came back after %s, want %s", d, tc.want)
				}
			})
		})
	}
}

func TestACallWhoseTurnIsFarAwayFailsAndSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fixed{{http.StatusTooManyRequests, "300"}}
		p := New(&b)
		begin := time.Now()
		err := send(t, t.Context(), p, "body")
		if err == nil || !strings.Contains(err.Error(), "Throttled: too many requests to cloud: the next one is due in 5m0s") {
			t.Errorf("error %v", err)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("waited for %s", d)
		}
		time.Sleep(5 * time.Minute)
		b = fixed{{http.StatusOK, ""}}
		if err := send(t, t.Context(), p, "body"); err != nil {
			t.Errorf("after the pause: %v", err)
		}
	})
}

func TestACallThatWaitsCanBeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(&fixed{{http.StatusTooManyRequests, "20"}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := send(t, ctx, p, "body"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestACallWhoseTurnIsAfterItsDeadlineIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(&fixed{{http.StatusTooManyRequests, "20"}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		if err := send(t, ctx, p, "body"); !Unsent(err) || time.Since(begin) != 0 {
			t.Errorf("error %v after %s", err, time.Since(begin))
		}
	})
}
