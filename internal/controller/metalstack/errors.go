package metalstack

import (
	"net/http"
	"regexp"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// rules are applied in this order, before the status: the metal-api has no codes of errors, and returns the status 422 for most errors, and 403 for
// all errors of authentication.
var rules = native.Rules{
	// The clocks differ, or the request was held back on its way.
	{Text: regexp.MustCompile(`timestamp in your header is too old|unknown timestamp`), Class: fn.ErrorTransient, Refused: true},
	{Text: regexp.MustCompile(`Wrong HMAC|(illegal|unknown|no) auth|invalid token|invalid claims|claims is nil|token (is|has|signature)|key "[^"]*" not found`), Class: fn.ErrorPermissionDenied, Credentials: true},
	{Text: regexp.MustCompile(`you are not member in one of|tenant .* not allowed`), Class: fn.ErrorPermissionDenied},
	{Text: regexp.MustCompile(`(?i)quota`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`(?i)no machine available|no ips left|cannot allocate free ip|no more (asn|vrf)`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(`machine is locked`), Class: fn.ErrorPermissionDenied},
	// Another allocation was faster. The metal-api has rolled back this one.
	{Text: regexp.MustCompile(`already allocated|was changed from another|please retry`), Class: fn.ErrorTransient, Refused: true},
	// The metal-api returns errors of its database and of other services with the status 422 too, so that the
	// allocation may have been written.
	{Text: regexp.MustCompile(`(?i)database|rethinkdb|connection|deadline|timeout|\bEOF\b|unavailable|lock acquisition`), Class: fn.ErrorTransient},
}

// classify returns an error with a class and a description of the failed action.
func classify(what string, err error) error { return native.Classify(what, err, errorOfAnswer) }

// errorOfAnswer returns the error of an error response, or nil if err is none.
func errorOfAnswer(err error) *native.Error {
	e := asAPIError(err)
	if e == nil {
		return nil
	}
	out := &native.Error{Err: e}
	if e.Known && rules.Apply(out, e.Message) {
		return out
	}
	switch e.Status {
	case http.StatusUnauthorized:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	case http.StatusForbidden:
		out.Class = fn.ErrorPermissionDenied
	case http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case http.StatusConflict:
		out.Class, out.Refused = fn.ErrorTransient, true
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		// A proxy that has no route to the metal-api refuses the request too.
		if out.Class = fn.ErrorInvalidRequest; !e.Known {
			out.Class, out.Refused = fn.ErrorTransient, true
		}
	default:
		// A proxy may lose the response to a request that had an effect.
		out.Class = fn.ErrorTransient
	}
	return out
}
