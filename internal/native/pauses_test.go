package native

import (
	"net/http"
	"testing"
	"time"
)

func TestPausesGrowWhileAllCallsAreRefused(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	status, header := 0, ""
	p := newPauses(transportFunc(func(*http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
		if header != "" {
			resp.Header.Set("Retry-After", header)
		}
		return resp, nil
	}), func() time.Time { return now })
	for i, step := range []struct {
		after  time.Duration
		status int
		header string
		want   string
	}{
		{0, 200, "", ""}, {0, 429, "", "2"}, {0, 429, "", "2"}, {2 * time.Second, 429, "", "8"}, {8 * time.Second, 429, "", "32"},
		{32 * time.Second, 429, "", "60"}, {time.Minute, 429, "", "60"}, {time.Minute, 429, "5", "5"}, {0, 200, "", ""}, {time.Minute, 429, "", "2"},
	} {
		now, status, header = now.Add(step.after), step.status, step.header
		resp, err := p.RoundTrip(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Retry-After"); got != step.want {
			t.Errorf("step %d: Retry-After %q, want %q", i, got, step.want)
		}
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
