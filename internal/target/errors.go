package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Kind of error tells what is wrong with a target cluster.
type Kind string

// Kinds of errors.
const (
	ConfigNotFound    Kind = "ConfigNotFound"
	ConfigInvalid     Kind = "ConfigInvalid"
	SecretNotFound    Kind = "SecretNotFound"
	KeyMissing        Kind = "KeyMissing"
	KubeconfigInvalid Kind = "KubeconfigInvalid"
	Unauthorized      Kind = "Unauthorized"
	Unreachable       Kind = "Unreachable"
)

// An Error says what is wrong with a target cluster. Its text names the
// configuration, and never what a Secret holds.
type Error struct {
	Kind   Kind
	Ref    Ref
	Detail string
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Ref, e.Detail) }

// Unwrap returns the cause, if there is one that may be shown.
func (e *Error) Unwrap() error { return e.Err }

// Reason of the Reachable condition that the error makes.
func (e *Error) Reason() string {
	switch e.Kind {
	case ConfigNotFound, SecretNotFound, KeyMissing:
		return v1alpha1.ReasonCredentialsMissing
	case ConfigInvalid, KubeconfigInvalid:
		return v1alpha1.ReasonCredentialsInvalid
	case Unauthorized:
		return v1alpha1.ReasonUnauthorized
	case Unreachable:
	}
	return v1alpha1.ReasonUnreachable
}

// Is reports whether err says that something of these kinds is wrong with a
// target cluster; of any kind, if none is given.
func Is(err error, kinds ...Kind) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, k := range kinds {
		if e.Kind == k {
			return true
		}
	}
	return len(kinds) == 0
}

// Classify makes an Error of what a call to the target cluster failed with, if the
// cluster is to blame. Other errors, NotFound or Conflict for example, are
// returned as they are.
func (c *Conn) Classify(err error) error {
	var already *Error
	switch {
	case err == nil || errors.As(err, &already):
		return err
	case kerrors.IsUnauthorized(err):
		return &Error{Kind: Unauthorized, Ref: c.Ref, Detail: fmt.Sprintf("the API server %s does not accept the credentials of %s: %v", c.Host, c.credentials, err), Err: err}
	case kerrors.IsForbidden(err):
		return &Error{Kind: Unauthorized, Ref: c.Ref, Detail: fmt.Sprintf("the credentials of %s lack a right in the target cluster: %v", c.credentials, err), Err: err}
	case isUnreachable(err):
		return &Error{Kind: Unreachable, Ref: c.Ref, Detail: fmt.Sprintf("the API server %s cannot be reached: %v", c.Host, cause(err)), Err: err}
	}
	return err
}

func isUnreachable(err error) bool {
	var status kerrors.APIStatus
	if errors.As(err, &status) {
		return kerrors.IsServiceUnavailable(err) || kerrors.IsTimeout(err) || kerrors.IsServerTimeout(err) || kerrors.IsInternalError(err)
	}
	var nerr net.Error
	var uerr *url.Error
	return errors.As(err, &uerr) || errors.As(err, &nerr) || errors.Is(err, context.DeadlineExceeded)
}

// cause leaves out method, URL and local port: they change from call to call, and
// each change of a text is a write of a status.
func cause(err error) error {
	var down *downError
	if errors.As(err, &down) {
		return cause(down.last)
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("no answer in time")
	}
	var uerr *url.Error
	if errors.As(err, &uerr) {
		err = uerr.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}
