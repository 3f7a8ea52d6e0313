package metalstack

import (
	"net/http"
	"regexp"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// A rule assigns a class to the error responses whose message matches. The metal-api has no codes of errors.
type rule struct {
	text  *regexp.Regexp
	class fn.ErrorCode
	// refused means that the call had no effect. It matters for the class Transient.
	refused bool
	// credentials means that the metal-api does not accept the credentials at all.
	credentials bool
}

// rules are applied in this order, before the status: the metal-api returns the status 422 for most errors, and 403 for
// all errors of authentication.
var rules = []rule{
	// The clocks differ, or the request was held back on its way.
	{text: regexp.MustCompile(`timestamp in your header is too old|unknown timestamp`), class: fn.ErrorTransient, refused: true},
	{text: regexp.MustCompile(`Wrong HMAC|(illegal|unknown|no) auth|invalid token|invalid claims|claims is nil|token (is|has|signature)|key "[^"]*" not found`), class: fn.ErrorPermissionDenied, credentials: true},
	{text: regexp.MustCompile(`you are not member in one of|tenant .* not allowed`), class: fn.ErrorPermissionDenied},
	{text: regexp.MustCompile(`(?i)quota`), class: fn.ErrorQuotaExceeded},
	{text: regexp.MustCompile(`(?i)no machine available|no ips left|cannot allocate free ip|no more (asn|vrf)`), class: fn.ErrorCapacityExhausted},
	{text: regexp.MustCompile(`machine is locked`), class: fn.ErrorPermissionDenied},
	// Another allocation was faster. The metal-api has rolled back this one.
	{text: regexp.MustCompile(`already allocated|was changed from another|please retry`), class: fn.ErrorTransient, refused: true},
	// The metal-api returns errors of its database and of other services with the status 422 too, so that the
	// allocation may have been written.
	{text: regexp.MustCompile(`(?i)database|rethinkdb|connection|deadline|timeout|\bEOF\b|unavailable|lock acquisition`), class: fn.ErrorTransient},
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
	if e.Known {
		for _, r := range rules {
			if r.text.MatchString(e.Message) {
				out.Class, out.Refused, out.Credentials = r.class, r.refused, r.credentials
				return out
			}
		}
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
