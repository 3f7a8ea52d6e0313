package plan

import (
	"slices"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// problems that a Machine may report with Valid=False.
var problems = []string{
	machinev1alpha1.ReasonClassNotFound, machinev1alpha1.ReasonCompositionNotFound, machinev1alpha1.ReasonInstallationUnknown,
	machinev1alpha1.ReasonProviderMismatch, machinev1alpha1.ReasonBindingInvalid, machinev1alpha1.ReasonForProviderInvalid,
	machinev1alpha1.ReasonUserDataInvalid, machinev1alpha1.ReasonUserDataTooLarge, machinev1alpha1.ReasonProfileNotFound,
	machinev1alpha1.ReasonVersionSkew,
}

// NeedsUser reports whether what keeps Machines from being created lasts until a user acts, by
// the reason of ReplicaFailure: a class of error of a provider, or a problem of a Machine.
func NeedsUser(reason string) bool {
	return fn.ErrorCode(reason).NeedsSomebody() || slices.Contains(problems, reason)
}
