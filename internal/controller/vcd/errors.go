package vcd

import (
	"net/http"
	"regexp"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// rules are applied in this order, to the minor code and the message of an error. A task has no status.
var rules = native.Rules{
	{Text: regexp.MustCompile(codeLimits + `|(?i)maximum number of simultaneous operations`), Class: fn.ErrorThrottled},
	{Text: regexp.MustCompile(codeBusy + `|INTERNAL_SERVER_ERROR|(?i)is busy|timed out|timeout|unreachable`), Class: fn.ErrorTransient},
	{Text: regexp.MustCompile(`(?i)quota|exceeds? the (limit|allocation)|allocation limit`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`(?i)NO_FEASIBLE_PLACEMENT|no suitable resource|candidate hubs|insufficient|not enough|out of (space|memory)|no more (free |available )?IP|no (free|available) IP`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(codeForbidden + `|OPERATION_DENIED|(?i)following rights|operation is denied|not authorized`), Class: fn.ErrorPermissionDenied},
	{Text: regexp.MustCompile(codeNotFound + `|BAD_REQUEST|DUPLICATE_NAME|INVALID|UNSUPPORTED|(?i)does not exist|already|not supported|must be`), Class: fn.ErrorInvalidRequest},
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
	switch {
	case e.login:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	case e.Status == http.StatusUnauthorized:
		out.Class, out.Refused = fn.ErrorTransient, true
	case e.Status == http.StatusForbidden:
		out.Class = fn.ErrorPermissionDenied
	case e.Status == http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case e.Status == http.StatusConflict || e.Status == http.StatusLocked:
		out.Class, out.Refused = fn.ErrorTransient, true
	case e.Status >= 400 && e.Status < 500:
		var known bool
		if out.Class, known = rules.ClassOf(e.Code, e.Message); !known {
			out.Class = fn.ErrorInvalidRequest
		}
		out.Refused = true
	default:
		// A proxy in front of Cloud Director may lose the response to a request that had an effect.
		out.Class = fn.ErrorTransient
	}
	return out
}

// taskError returns the error of a task that failed.
func taskError(t task) error {
	text := requestID.ReplaceAllString(t.Error.Message, "")
	if text == "" {
		text = "no reason given"
	}
	class, _ := rules.ClassOf(t.Error.Code, text)
	if t.Error.Code != "" {
		text += " (" + t.Error.Code + ")"
	}
	if t.Status == "canceled" || t.Status == "aborted" {
		text = "the task was " + t.Status
	}
	return native.TaskError(class, t.Operation, text)
}
