package native

import (
	"errors"
	"fmt"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// An Error of a cloud. Its text begins with its class, which Compositions read, and must contain
// no secret.
type Error struct {
	Class fn.ErrorCode
	// What names the call that failed, such as "cannot clone template 9000".
	What string
	Err  error
	// Refused means that the call had no effect. Of an error of the class Transient that is not
	// known otherwise: a creation that ends with it may have made a VM.
	Refused bool
	// Credentials means that the cloud does not accept the credentials at all. Then no other call
	// is made with them for some time: many clouds lock an account after some wrong passwords.
	Credentials bool
}

func (e *Error) Error() string {
	if e.What == "" {
		return fmt.Sprintf("%s: %v", e.Class, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Class, e.What, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Invalid is an error of the VM's spec. The field is below spec.forProvider.
func Invalid(field, format string, args ...any) error {
	return &Error{Class: fn.ErrorInvalidRequest, What: "forProvider." + field, Err: fmt.Errorf(format, args...)}
}

// asError returns err as an Error. One that a cloud did not classify is Transient, or Throttled if
// it was not sent.
func asError(what string, err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case ratelimit.Unsent(err):
		return &Error{Class: fn.ErrorThrottled, What: what, Err: err, Refused: true}
	}
	return &Error{Class: fn.ErrorTransient, What: what, Err: err}
}

// classOf an error.
func classOf(err error) fn.ErrorCode { return asError("", err).Class }

// hasUnknownResult reports whether a creation that ended with the error may have made a VM. All
// classes but Transient are refusals.
func hasUnknownResult(err error) bool {
	e := asError("", err)
	return e.Class == fn.ErrorTransient && !e.Refused
}
