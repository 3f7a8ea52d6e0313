package hcloud

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

// A Fault makes calls fail.
type Fault = fakes.Fault

// take one call of a project, and report its limits in the headers.
func (p *project) take(now time.Time, limit int, refill time.Duration, h http.Header) bool {
	ok, left, full := p.bucket.Take(now, limit, refill)
	h.Set("RateLimit-Limit", strconv.Itoa(limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(left))
	h.Set("RateLimit-Reset", strconv.FormatInt(full.Unix(), 10))
	return ok
}

// callOf returns the method and the path of a request, with {id} for IDs.
func callOf(method, path string) string {
	return fakes.CallOf(method, strings.TrimPrefix(path, "/v1"), func(part string) bool {
		_, err := strconv.ParseInt(part, 10, 64)
		return err == nil
	})
}
