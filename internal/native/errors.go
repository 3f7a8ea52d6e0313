package native

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// An Error is an error of a cloud. Its text begins with its class, which Compositions read. It must
// not contain a secret.
type Error struct {
	Class fn.ErrorCode
	// What describes the failed call or names the wrong field, such as "cannot clone template 9000".
	What string
	Err  error
	// Refused means that the call had no effect. It matters for the class Transient only: without it,
	// a creation that ends with the error may have created a VM.
	Refused bool
	// Credentials means that the cloud does not accept the credentials at all. For some time no other
	// call is made with them: many clouds lock an account after several wrong passwords.
	Credentials bool
}

func (e *Error) Error() string {
	if e.What == "" {
		return fmt.Sprintf("%s: %v", e.Class, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Class, e.What, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Invalid returns an error of the VM's spec. The field is below spec.forProvider.
func Invalid(field, format string, args ...any) error {
	return &Error{Class: fn.ErrorInvalidRequest, What: "forProvider." + field, Err: fmt.Errorf(format, args...)}
}

// Refused returns an error that occurred before the creation started, as an error without effect.
func Refused(err error) error {
	out := &Error{Class: fn.ErrorTransient, Err: err}
	if errors.As(err, &out) {
		e := *out
		out = &e
	}
	out.Refused = true
	return out
}

// Classify returns err as an Error that describes the failed call. It returns a nil error, and an error
// that has a class, as it is. answer returns the Error of a response of the cloud, or nil if err is
// none.
func Classify(what string, err error, answer func(error) *Error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if e := answer(err); e != nil {
		e.What = what
		return e
	}
	return asError(what, err)
}

// A Rule assigns a class to the errors whose text matches, and the other fields of an [Error].
type Rule struct {
	Text                 *regexp.Regexp
	Class                fn.ErrorCode
	Refused, Credentials bool
}

// Rules are applied in their order.
type Rules []Rule

// ClassOf returns the class of an error with the texts. The second value is false if no rule matches:
// the class is Transient then.
func (r Rules) ClassOf(texts ...string) (fn.ErrorCode, bool) {
	if rule := r.find(texts); rule != nil {
		return rule.Class, true
	}
	return fn.ErrorTransient, false
}

// Apply sets the fields of an error by the first rule that matches one of the texts. It reports whether there is one.
func (r Rules) Apply(e *Error, texts ...string) bool {
	rule := r.find(texts)
	if rule == nil {
		return false
	}
	e.Class, e.Refused, e.Credentials = rule.Class, rule.Refused, rule.Credentials
	return true
}

func (r Rules) find(texts []string) *Rule {
	for _, rule := range r {
		if slices.ContainsFunc(texts, rule.Text.MatchString) {
			return &rule
		}
	}
	return nil
}

// TaskError returns the error of a task that failed. It had no effect.
func TaskError(class fn.ErrorCode, task, reason string) error {
	return &Error{Class: class, What: "the task " + task + " failed", Err: errors.New(reason), Refused: true}
}

// asError returns err as an Error. An error without a class is Throttled if the request was not sent,
// and Transient otherwise.
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

// classOf returns the class of an error.
func classOf(err error) fn.ErrorCode { return asError("", err).Class }

// hasUnknownResult reports whether a creation that ended with the error may have created a VM. Each
// class except Transient is a refusal.
func hasUnknownResult(err error) bool {
	e := asError("", err)
	return e.Class == fn.ErrorTransient && !e.Refused
}
