package localcloud

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Codes of errors, and the HTTP status that goes with each.
const (
	CodeInvalidRequest    = "InvalidRequest"    // 400
	CodeUnauthenticated   = "Unauthenticated"   // 401
	CodePermissionDenied  = "PermissionDenied"  // 403
	CodeQuotaExceeded     = "QuotaExceeded"     // 403
	CodeNotFound          = "NotFound"          // 404
	CodeThrottled         = "Throttled"         // 429, with Retry-After
	CodeInternal          = "Internal"          // 500
	CodeCapacityExhausted = "CapacityExhausted" // 503
	CodeUnavailable       = "Unavailable"       // 503
)

var statusOfCode = map[string]int{
	CodeInvalidRequest:    http.StatusBadRequest,
	CodeUnauthenticated:   http.StatusUnauthorized,
	CodePermissionDenied:  http.StatusForbidden,
	CodeQuotaExceeded:     http.StatusForbidden,
	CodeNotFound:          http.StatusNotFound,
	CodeThrottled:         http.StatusTooManyRequests,
	CodeInternal:          http.StatusInternalServerError,
	CodeCapacityExhausted: http.StatusServiceUnavailable,
	CodeUnavailable:       http.StatusServiceUnavailable,
}

// StatusOfCode is the HTTP status of a code; ok is false for a code that the API does not have.
func StatusOfCode(code string) (status int, ok bool) {
	status, ok = statusOfCode[code]
	return status, ok
}

// Error is an error that the API returned.
type Error struct {
	// Code is one of the Code constants, or empty when the response is not the local cloud's.
	Code    string `json:"code"`
	Message string `json:"message"`
	// StatusCode is the HTTP status.
	StatusCode int `json:"-"`
	// RetryAfter is how long to wait before the call is repeated; 0 if the API did not return a delay.
	RetryAfter time.Duration `json:"-"`
}

// NewError is an Error with the status of its code.
func NewError(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), StatusCode: statusOfCode[code]}
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("local cloud: HTTP status %d: %s", e.StatusCode, e.Message)
	}
	return fmt.Sprintf("local cloud: %s: %s", e.Code, e.Message)
}

// CodeOf is the code of the *Error in err's chain, or empty.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// IsNotFound reports whether the API returned err because the requested object does not exist.
func IsNotFound(err error) bool { return CodeOf(err) == CodeNotFound }
