package target

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"syscall"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Kind is the kind of a problem with a target cluster.
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
	NotAllowed        Kind = "NotAllowed"
	// IdentityNotAllowed is of a ClusterProviderConfig that would need the provider's own identity.
	IdentityNotAllowed Kind = "IdentityNotAllowed"
	// Busy is for a call that was not tried, or was cut short, in favor of other clusters.
	Busy Kind = "Busy"
)

// An Error is a problem with a target cluster. Its text names the configuration, and never has the content of a
// Secret.
type Error struct {
	Kind   Kind
	Ref    Ref
	Detail string
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Ref, e.Detail) }

// Unwrap returns the cause, if there is one that may be shown.
func (e *Error) Unwrap() error { return e.Err }

// Reason returns the reason of the Reachable condition for the error.
func (e *Error) Reason() string {
	switch e.Kind {
	case ConfigNotFound, SecretNotFound, KeyMissing:
		return v1alpha1.ReasonCredentialsMissing
	case ConfigInvalid, KubeconfigInvalid:
		return v1alpha1.ReasonCredentialsInvalid
	case IdentityNotAllowed:
		return v1alpha1.ReasonInjectedIdentityNotAllowed
	case Unauthorized:
		return v1alpha1.ReasonUnauthorized
	case Unreachable, NotAllowed, Busy: // Only the first one is of a configuration itself.
	}
	if certificateProblem(lastOf(e.Err)) != "" {
		return v1alpha1.ReasonCertificateNotTrusted
	}
	return v1alpha1.ReasonUnreachable
}

// certificateProblem returns why the certificate with which an API server answers is not accepted, "" if that is not the error.
func certificateProblem(err error) string {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "its certificate is not valid for its host name"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	}
	return ""
}

// Is reports whether err is an Error of one of these kinds; of any kind, if none is given.
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

// Classify turns the error of a call to the target cluster into an Error, if the cluster caused it. Other
// errors, NotFound or Conflict for example, are returned unchanged. No Error repeats a text of the cluster.
func (c *Conn) Classify(err error) error {
	var already *Error
	var denied *deniedError
	switch {
	case err == nil || errors.As(err, &already):
		return err
	case errors.As(lastOf(err), &denied):
		return &Error{Kind: KubeconfigInvalid, Ref: c.Ref, Detail: fmt.Sprintf("%s: %v", c.credentials, denied), Err: err}
	case kerrors.IsUnauthorized(err):
		return &Error{Kind: Unauthorized, Ref: c.Ref, Detail: fmt.Sprintf("the API server %s does not accept the credentials of %s", c.Host, c.credentials), Err: err}
	case kerrors.IsForbidden(err):
		return &Error{Kind: Unauthorized, Ref: c.Ref, Detail: fmt.Sprintf("the credentials of %s lack a right in the target cluster: %v", c.credentials, err), Err: err}
	case errors.Is(err, errBusy), errors.Is(err, errSlow):
		return &Error{Kind: Busy, Ref: c.Ref, Detail: fmt.Sprintf("the API server %s: %s", c.Host, cause(err)), Err: err}
	case isUnreachable(err):
		return &Error{Kind: Unreachable, Ref: c.Ref, Detail: fmt.Sprintf("the API server %s cannot be reached: %s", c.Host, cause(err)), Err: err}
	}
	return err
}

// classifyAll is Classify for errors that the cluster always causes.
func (c *Conn) classifyAll(err error) error {
	err = c.Classify(err)
	if err == nil || Is(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return &Error{Kind: Unreachable, Ref: c.Ref, Detail: fmt.Sprintf("%s does not answer as an API server does", c.Host), Err: err}
}

func isUnreachable(err error) bool {
	var status kerrors.APIStatus
	if errors.As(err, &status) {
		return kerrors.IsServiceUnavailable(err) || kerrors.IsTimeout(err) || kerrors.IsServerTimeout(err) || kerrors.IsInternalError(err)
	}
	var nerr net.Error
	var uerr *url.Error
	return errors.As(err, &uerr) || errors.As(err, &nerr) || errors.Is(err, context.DeadlineExceeded) || isOwn(err)
}

// own are errors of the transport, whose texts may be shown.
var own = []error{errRedirect, errEncoded, errTooLarge, errNotJSON, errBusy, errSlow}

func isOwn(err error) bool {
	return slices.ContainsFunc(own, func(o error) bool { return errors.Is(err, o) })
}

// lastOf returns the error that opened the breaker, or the error itself.
func lastOf(err error) error {
	var down *downError
	if errors.As(err, &down) {
		return down.last
	}
	return err
}

// Cause returns the cause of a failed connection to any server, in words of Drover alone.
func Cause(err error) string { return cause(err) }

// cause returns the cause of an error, in words of Drover alone. It leaves out method, URL and ports: these
// change from call to call, and each change of a text is a write of a status.
func cause(err error) string {
	err = lastOf(err)
	for _, o := range own {
		if errors.Is(err, o) {
			return o.Error()
		}
	}
	var status kerrors.APIStatus
	var timeout interface{ Timeout() bool }
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("it answers HTTP %d", status.Status().Code)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dns):
		return "its host name cannot be resolved"
	case certificateProblem(err) != "":
		return certificateProblem(err)
	case errors.As(err, &record), errors.As(err, &alert):
		return "it does not speak TLS as an API server does"
	}
	for errno, text := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: "connection refused", syscall.ECONNRESET: "connection reset",
		syscall.EHOSTUNREACH: "no route to its host", syscall.ENETUNREACH: "no route to its network",
	} {
		if errors.Is(err, errno) {
			return text
		}
	}
	return "the connection failed"
}
