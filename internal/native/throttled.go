package native

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// Throttled gives an error response for the rate of calls the status 429, by which the rate limiter adapts: some clouds
// have another one for it. At most 64 KiB of an error response are kept.
type Throttled struct {
	Next http.RoundTripper
	// Is reports whether an error response, with its body, is for the rate of calls.
	Is func(resp *http.Response, body []byte) bool
}

// ownStatus is the header with the status that the API returned.
const ownStatus = "X-Drover-Status"

// RoundTrip implements [http.RoundTripper].
func (t Throttled) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.Next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	body, err := Buffer(resp, maxErrorResponse)
	if err != nil {
		return nil, err
	}
	if t.Is(resp, body) {
		resp.Header.Set(ownStatus, strconv.Itoa(resp.StatusCode))
		resp.StatusCode = http.StatusTooManyRequests
	}
	return resp, nil
}

// Restored gives a response of [Throttled] its own status back, which errors report. The rate limiter is between the two.
type Restored struct{ Next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (r Restored) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.Next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if status, err := strconv.Atoi(resp.Header.Get(ownStatus)); err == nil {
		resp.StatusCode = status
	}
	return resp, nil
}

// Buffer reads the body of a response, up to a limit in bytes, so that the connection is free. The body can be read again.
func Buffer(resp *http.Response, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(b))
	return b, err
}
