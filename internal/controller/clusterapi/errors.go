package clusterapi

import (
	"errors"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/text"
)

// classify returns an error of the API server with its class.
func classify(what string, err error) error {
	return native.Classify(what, err, func(err error) *native.Error {
		class := fn.ErrorTransient
		switch {
		case kerrors.IsTooManyRequests(err):
			class = fn.ErrorThrottled
		case kerrors.IsUnauthorized(err):
			return &native.Error{Class: fn.ErrorPermissionDenied, Err: shortened(err), Credentials: true}
		case kerrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
			class = fn.ErrorQuotaExceeded
		case kerrors.IsForbidden(err):
			class = fn.ErrorPermissionDenied
		case kerrors.IsInvalid(err), kerrors.IsBadRequest(err), meta.IsNoMatchError(err):
			class = fn.ErrorInvalidRequest
		case kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
			return &native.Error{Class: class, Err: shortened(err), Refused: true}
		default:
			return nil
		}
		return &native.Error{Class: class, Err: shortened(err)}
	})
}

// shortened bounds the text of an error: webhooks write it.
func shortened(err error) error {
	if s := err.Error(); len(s) > maxMessage {
		return errors.New(text.Shorten(s, maxMessage))
	}
	return err
}

// refused is the error of a creation that this package does not begin.
func refused(what string, err error) error {
	return &native.Error{Class: fn.ErrorInvalidRequest, What: what, Err: err, Refused: true}
}
