package inventory

import (
	"errors"
	"strings"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// A CallError is the error of a call to a cloud, in one line that begins with its class.
type CallError struct {
	// Class of the error. Empty stands for one that no decision depends on.
	Class fn.ErrorCode
	Text  string
	// Cause is the error of the SDK. It may be nil.
	Cause error
}

func (e *CallError) Error() string { return strings.TrimPrefix(string(e.Class)+": "+e.Text, ": ") }
func (e *CallError) Unwrap() error { return e.Cause }

// IsThrottled reports whether a cloud refused a call because there were too many, or the call was not sent for this
// reason.
func IsThrottled(err error) bool {
	var e *CallError
	return errors.As(err, &e) && e.Class == fn.ErrorThrottled || ratelimit.Unsent(err)
}
