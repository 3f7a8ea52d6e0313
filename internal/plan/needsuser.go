package plan

import (
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// NeedsUser reports whether what keeps Machines from being created lasts until a user acts, by
// the reason of ReplicaFailure.
//
// A failed Machine is created again, and so is one that the API server refuses: that may
// succeed. The class of a provider's error says whether it does. Each other reason is that of
// Valid=False of a Machine, whoever set it: it lasts until a user mends what its message names.
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
