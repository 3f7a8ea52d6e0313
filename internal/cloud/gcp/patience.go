package gcp

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/api/googleapi"
)

const (
	// retries of a call that Google throttles or fails to answer: the SDK repeats none.
	retries = 5
	// firstDelay before a retry if Google demands none. It doubles each time.
	firstDelay = time.Second
	// longestDelay before a retry. If Google demands more, the call fails, so that the inventory
	// can report why it has no list.
	longestDelay = 30 * time.Second
)

// patient repeats calls that had no effect. All calls of this package only read.
type patient struct{ next http.RoundTripper }

// RoundTrip sends a request until it is answered, as long as its context lasts.
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	delay := firstDelay
	for try := 0; ; try++ {
		resp, err := p.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		again, ok := repeat(req)
		if try == retries || !ok || !shouldRepeat(resp) {
			return resp, nil
		}
		wait := retryAfter(resp.Header, delay)
		if wait > longestDelay {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		}
		req, delay = again, 2*delay
	}
}

// repeat returns the request with a body that can be read once more.
func repeat(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again, true
}

// shouldRepeat a call with this answer. The Compute API throttles with 403 too.
func shouldRepeat(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusForbidden:
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil {
			return false
		}
		answer, ok := googleapi.CheckResponseWithBody(resp, body).(*googleapi.Error) //nolint:errorlint // It wraps nothing.
		return ok && slices.ContainsFunc(reasons(answer), isThrottling)
	}
	return false
}

func retryAfter(h http.Header, otherwise time.Duration) time.Duration {
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	return otherwise
}
