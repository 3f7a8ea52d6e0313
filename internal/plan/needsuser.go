package plan

import (
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// NeedsUser reports whether Machines cannot be created until a user acts. The reason is that of the
// condition ReplicaFailure.
//
// A Machine that failed, or that the API server refused, is created again and may succeed. For an
// error of a provider, its error code decides. Any other reason comes from Valid=False of a
// Machine, from whichever step: it lasts until a user fixes the problem that the message names.
func NeedsUser(reason string) bool {
	code, failure := fn.ErrorCode(reason), machinev1alpha1.FailureReason(reason)
	switch {
	case code.IsKnown():
		return code.NeedsSomebody()
	case failure.IsKnown(), reason == machinev1alpha1.ReasonMachinesNotApplied:
		return false
	}
	return true
}
