package vsphere

import (
	"errors"
	"net/url"
	"strings"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// A described error has the text of describe.
type described struct{ error }

func (d described) Error() string { return describe(d.error) }
func (d described) Unwrap() error { return d.error }

// classify wraps an error of a vCenter with the failed operation and its class. An error that has a
// class keeps it.
func classify(what string, err error) error {
	return native.Classify(what, err, func(err error) *native.Error {
		return &native.Error{Class: classOf(err), Err: described{err}}
	})
}

// is reports whether err contains a fault of the type.
func is[T any](err error) bool {
	if err == nil {
		return false
	}
	var f T
	_, ok := fault.As(err, &f)
	return ok
}

func classOf(err error) fn.ErrorCode {
	var known *native.Error
	switch {
	case errors.As(err, &known):
		return known.Class
	case is[types.BaseNoPermission](err), is[types.BaseInvalidLogin](err), is[types.BaseSecurityError](err):
		return fn.ErrorPermissionDenied
	case is[types.BaseNotEnoughLicenses](err), is[*types.LimitExceeded](err):
		return fn.ErrorQuotaExceeded
	case is[types.BaseInsufficientResourcesFault](err), is[*types.NoDiskSpace](err), is[*types.NoCompatibleHost](err),
		is[*types.InsufficientStorageSpace](err):
		return fn.ErrorCapacityExhausted
	case is[*types.TooManyConcurrentNativeClones](err), throttled(err):
		return fn.ErrorThrottled
	case is[*types.TaskInProgress](err), is[types.BaseInvalidState](err):
		return fn.ErrorTransient
	case is[types.BaseVmConfigFault](err), is[*types.InvalidArgument](err), is[types.BaseNotSupported](err), is[*types.DuplicateName](err),
		is[types.BaseInvalidDatastore](err), is[types.BaseInvalidFolder](err), is[*types.InvalidName](err), is[*types.FileNotFound](err),
		is[*types.ToolsUnavailable](err), notFound(err):
		return fn.ErrorInvalidRequest
	}
	return fn.ErrorTransient
}

// notFound reports whether the inventory does not have exactly one object that matches.
func notFound(err error) bool {
	var none *find.NotFoundError
	var many *find.MultipleFoundError
	var noDefault *find.DefaultNotFoundError
	var manyDefaults *find.DefaultMultipleFoundError
	return errors.As(err, &none) || errors.As(err, &many) || errors.As(err, &noDefault) || errors.As(err, &manyDefaults)
}

// throttled reports, by the status of the HTTP response, whether a vCenter, or a proxy in front of
// it, cannot handle the request now.
func throttled(err error) bool {
	var u *url.Error
	if !errors.As(err, &u) {
		return false
	}
	s := u.Err.Error()
	return strings.HasPrefix(s, "429 ") || strings.HasPrefix(s, "503 ")
}

// describe returns the text of a fault for users: the vCenter's message, and the privilege that is
// missing.
func describe(err error) string {
	s := strings.TrimPrefix(err.Error(), "ServerFaultCode: ")
	var denied *types.NoPermission
	if _, ok := fault.As(err, &denied); ok && denied.PrivilegeId != "" {
		s += " (needs the privilege " + denied.PrivilegeId
		if denied.Object != nil {
			s += " on " + denied.Object.String()
		}
		s += ")"
	}
	return s
}
