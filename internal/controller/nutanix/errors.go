package nutanix

import (
	"net/http"
	"regexp"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// rules are applied in this order, to the group and the message of an error. A task has no status. VM_NOT_FOUND is
// transient: a VM that was just created is not known to all services of Prism Central.
var rules = native.Rules{
	{Text: regexp.MustCompile(`(?i)quota`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`(?i)INSUFFICIENT_|RESOURCE_SHORTAGE|enough (resources|memory|space|capacity)|(insufficient|out of|no) (free |storage |available )?(space|capacity|memory|resources|IP)|IP pool|pool is exhausted|no (free|available) (IP|GPU)`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(`(?i)ACCESS_DENIED|PERMISSION|FORBIDDEN|not authorized|unauthorized`), Class: fn.ErrorPermissionDenied},
	{Text: regexp.MustCompile(`(?i)VM_NOT_FOUND|ETAG|RETRYABLE|CONCURRENT|IN_PROGRESS|TIMEOUT|timed out|UNAVAILABLE|INTERNAL_ERROR|not reachable|unreachable|disconnected`), Class: fn.ErrorTransient},
	{Text: regexp.MustCompile(`(?i)NOT_FOUND|INVALID|UNSUPPORTED|NOT_SUPPORTED|VALIDATION|not found|does not exist|not supported|exceeds the maximum|must be`), Class: fn.ErrorInvalidRequest},
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
		if out.Class, known = rules.ClassOf(e.Group, e.Message); !known {
			out.Class = fn.ErrorInvalidRequest
		}
	default:
		// A proxy in front of Prism Central may lose the response to a request that had an effect.
		out.Class = fn.ErrorTransient
	}
	return out
}

// taskError returns the error of a task that failed.
func taskError(t task) error {
	e := t.failure()
	class, _ := rules.ClassOf(e.Group, e.Message)
	return native.TaskError(class, t.Operation, e.text())
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
