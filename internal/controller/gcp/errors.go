package gcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/oauth2"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/ratelimit"
	"github.com/drover-dev/drover/internal/text"
)

// maxMessage is the maximum length of the message of an error.
const maxMessage = 512

// isThrottling reports whether the reason of an error is the rate of the calls.
func isThrottling(reason string) bool {
	return reason == "rateLimitExceeded" || reason == "userRateLimitExceeded"
}

// rules assign classes to the codes of operations, such as ZONE_RESOURCE_POOL_EXHAUSTED, and to the reasons of
// error responses, such as quotaExceeded.
var rules = native.Rules{
	{Text: regexp.MustCompile(`(?i)^rateLimitExceeded$|^userRateLimitExceeded$|^RATE_LIMIT_EXCEEDED$|^RESOURCE_OPERATION_RATE_EXCEEDED$|^CONCURRENT_OPERATIONS_QUOTA_EXCEEDED$|^OPERATION_RATE_LIMIT_EXCEEDED$`), Class: fn.ErrorThrottled},
	{Text: regexp.MustCompile(`(?i)RESOURCE_POOL_EXHAUSTED|STOCKOUT|^IP_SPACE_EXHAUSTED|^resource_availability$|^RESOURCE_AVAILABILITY|^insufficientReservationCapacity$`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(`(?i)^quota_?Exceeded|^LIMIT_EXCEEDED$|^limitExceeded$|_QUOTA_EXCEEDED$`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`(?i)^PERMISSIONS?_(ERROR|DENIED)$|^forbidden$|^insufficientPermissions$|^accessNotConfigured$|^accountDisabled$|^billingNotEnabled$|^SERVICE_ACCOUNT_ACCESS_DENIED$`), Class: fn.ErrorPermissionDenied},
	{Text: regexp.MustCompile(`(?i)^RESOURCE_NOT_READY$|^resourceNotReady$|^operationInProgress$|^INTERNAL_ERROR$|^backendError$|^internalError$`), Class: fn.ErrorTransient},
	{Text: regexp.MustCompile(`(?i)^RESOURCE_NOT_FOUND$|^INVALID_|^UNSUPPORTED_|^BAD_REQUEST$|^CONDITION_NOT_MET$|^RESOURCE_ALREADY_EXISTS$|^RESOURCE_IN_USE`), Class: fn.ErrorInvalidRequest},
}

// federation matches the errors of a token of another identity provider that Google refuses: they have no type.
var federation = regexp.MustCompile(`oauth2/google[a-z/]*: status code 40[0-9]:`)

// classify returns an error with a class and a description of the failed call.
func classify(what string, err error) error { return native.Classify(what, err, errorOfAnswer) }

// errorOfAnswer returns the error of a response of Google Cloud, or nil if err is none.
func errorOfAnswer(err error) *native.Error {
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && refusal.Response != nil {
		return errorOfToken(refusal)
	}
	var e *googleapi.Error
	if errors.As(err, &e) {
		return errorOfCall(e)
	}
	if federation.MatchString(err.Error()) {
		return &native.Error{Class: fn.ErrorPermissionDenied, Credentials: true, Err: err}
	}
	// The URL of a call has its filter and its fields, which explain nothing.
	var call *url.Error
	if errors.As(err, &call) {
		if ratelimit.Unsent(call.Err) {
			return &native.Error{Class: fn.ErrorThrottled, Err: call.Err, Refused: true}
		}
		return &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("cannot reach Google Cloud: %w", call.Err)}
	}
	return nil
}

func errorOfCall(e *googleapi.Error) *native.Error {
	out := &native.Error{Err: &answerError{status: e.Code, reason: reasonOf(e), message: e.Message}}
	var reasons []string
	for _, item := range e.Errors {
		reasons = append(reasons, item.Reason)
	}
	class, known := rules.ClassOf(reasons...)
	switch {
	case e.Code == http.StatusUnauthorized:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	case e.Code == http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case known:
		out.Class = class
		out.Refused = class == fn.ErrorTransient && e.Code < http.StatusInternalServerError
	case e.Code == http.StatusForbidden:
		out.Class = fn.ErrorPermissionDenied
	case e.Code >= http.StatusInternalServerError, e.Code == http.StatusRequestTimeout:
		out.Class = fn.ErrorTransient
	default: // The API returns other 4xx for a request that is wrong.
		out.Class = fn.ErrorInvalidRequest
	}
	return out
}

// errorOfToken returns the error of a refused token: see https://datatracker.ietf.org/doc/html/rfc6749#section-5.2.
func errorOfToken(r *oauth2.RetrieveError) *native.Error {
	status := r.Response.StatusCode
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(r.Body, &body) // Without a text, the status is the error.
	message := body.Description
	if message == "" {
		message = "no reason is given"
	}
	out := &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf("cannot get a token: %w", &answerError{status: status, reason: body.Error, message: message})}
	switch {
	case status == http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case status < http.StatusInternalServerError:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	}
	return out
}

// An answerError is an error response in one line.
type answerError struct {
	status          int
	reason, message string
}

func (e *answerError) Error() string {
	message := firstLine(strings.TrimSpace(e.message))
	if e.reason == "" {
		return fmt.Sprintf("%s (status %d)", message, e.status)
	}
	return fmt.Sprintf("%s (%s, status %d)", message, e.reason, e.status)
}

// firstLine of a message, shortened.
func firstLine(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return text.Shorten(line, maxMessage)
}

func reasonOf(e *googleapi.Error) string {
	if len(e.Errors) == 0 {
		return ""
	}
	return e.Errors[0].Reason
}

// hasStatus reports whether an error is a response with a status.
func hasStatus(err error, status int) bool {
	var e *googleapi.Error
	return errors.As(err, &e) && e.Code == status
}

// errorOfOperation returns the error of an operation that failed, or nil. It had no effect that lasts.
func errorOfOperation(o *compute.Operation) error {
	if o.Error == nil || len(o.Error.Errors) == 0 {
		return nil
	}
	var codes, texts []string
	for _, e := range o.Error.Errors {
		codes = append(codes, e.Code)
		texts = append(texts, e.Code+": "+firstLine(e.Message))
	}
	class, _ := rules.ClassOf(codes...)
	return native.TaskError(class, o.OperationType, strings.Join(texts, "; "))
}
