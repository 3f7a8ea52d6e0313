package nutanix

import (
	"errors"
	"net/http"
	"regexp"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// A rule assigns a class to the errors whose group or message matches.
type rule struct {
	text  *regexp.Regexp
	class fn.ErrorCode
}

// rules are applied in this order, to the group and the message of an error. A task has no status. VM_NOT_FOUND is
// transient: a VM that was just created is not known to all services of Prism Central.
var rules = []rule{
	{regexp.MustCompile(`(?i)quota`), fn.ErrorQuotaExceeded},
	{regexp.MustCompile(`(?i)INSUFFICIENT_|RESOURCE_SHORTAGE|enough (resources|memory|space|capacity)|(insufficient|out of|no) (free |storage |available )?(space|capacity|memory|resources|IP)|IP pool|pool is exhausted|no (free|available) (IP|GPU)`), fn.ErrorCapacityExhausted},
	{regexp.MustCompile(`(?i)ACCESS_DENIED|PERMISSION|FORBIDDEN|not authorized|unauthorized`), fn.ErrorPermissionDenied},
	{regexp.MustCompile(`(?i)VM_NOT_FOUND|ETAG|RETRYABLE|CONCURRENT|IN_PROGRESS|TIMEOUT|timed out|UNAVAILABLE|INTERNAL_ERROR|not reachable|unreachable|disconnected`), fn.ErrorTransient},
	{regexp.MustCompile(`(?i)NOT_FOUND|INVALID|UNSUPPORTED|NOT_SUPPORTED|VALIDATION|not found|does not exist|not supported|exceeds the maximum|must be`), fn.ErrorInvalidRequest},
}

// classify returns an error with a class and a description of the failed action. An error that already has a
// class is returned as it is.
func classify(what string, err error) error {
	var known *native.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := asAPIError(err)
	if e == nil {
		if ratelimit.Unsent(err) {
			return &native.Error{Class: fn.ErrorThrottled, What: what, Err: err, Refused: true}
		}
		return &native.Error{Class: fn.ErrorTransient, What: what, Err: err}
	}
	out := &native.Error{What: what, Err: e}
	switch e.Status {
	case http.StatusUnauthorized:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	case http.StatusForbidden:
		out.Class = fn.ErrorPermissionDenied
	case http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired:
		// The VM was changed since it was read.
		out.Class, out.Refused = fn.ErrorTransient, true
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		var known bool
		if out.Class, known = classOfText(e); !known {
			out.Class = fn.ErrorInvalidRequest
		}
	default:
		// A proxy in front of Prism Central may lose the response to a request that had an effect.
		out.Class = fn.ErrorTransient
	}
	return out
}

// classOfText returns the class of the group and the message of an error. The second value is false if no rule
// matches.
func classOfText(e *apiError) (fn.ErrorCode, bool) {
	for _, r := range rules {
		if r.text.MatchString(e.Group) || r.text.MatchString(e.Message) {
			return r.class, true
		}
	}
	return fn.ErrorTransient, false
}

// taskError returns the error of a task that failed.
func taskError(t task) error {
	e := t.failure()
	class, _ := classOfText(e)
	return &native.Error{Class: class, What: "the task " + t.Operation + " failed", Err: errors.New(e.text()), Refused: true}
}

// text returns the message with the code and the group of an error that has no status.
func (e *apiError) text() string {
	out := e.Message
	if out == "" {
		out = "no reason given"
	}
	if e.Code != "" {
		out += " (" + e.Code + ", " + e.Group + ")"
	}
	return out
}
