package remediation

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// Stalled returns the cause of Stalled if Machines wait to be replaced and a user must act first.
// The message names the possible actions. It is nil if no Machine waits, or if replacements only
// wait for one another.
func Stalled(allowed *plan.Condition, waiting int32) *plan.Condition {
	if allowed == nil || waiting == 0 {
		return nil
	}
	c := *allowed
	switch allowed.Reason {
	case machinev1alpha1.ReasonTooManyUnhealthy:
		c.Message += "; repair or delete unhealthy Machines, or raise spec.remediation.maxUnhealthy"
	case machinev1alpha1.ReasonNoBudget:
		c.Message += "; set spec.remediation.maxInFlight to 1 or more"
	case machinev1alpha1.ReasonInvalidRemediation:
	default:
		return nil
	}
	return &c
}
