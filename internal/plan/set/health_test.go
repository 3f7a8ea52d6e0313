package set

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// TestOnlyAMissingProfileIsLookedForAgain also shows that advice, which stays until a user changes the template, costs no
// reconciles.
func TestOnlyAMissingProfileIsLookedForAgain(t *testing.T) {
	for reason, want := range map[string]time.Duration{
		machinev1alpha1.ReasonHealthProfileNotFound: shared.InFlight,
		machinev1alpha1.ReasonDevicesNotNamed:       shared.AtRest,
		machinev1alpha1.ReasonRebootNotSupported:    shared.AtRest,
	} {
		t.Run(reason, func(t *testing.T) {
			d := Plan(now, Observed{
				Set: set(1), Machines: []Machine{machine("a", running)},
				HealthProblems: []shared.Problem{{Reason: reason, Message: "why"}},
			})
			if d.CallAgain != want {
				t.Errorf("called again after %s, want %s", d.CallAgain, want)
			}
		})
	}
}
