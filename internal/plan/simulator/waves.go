package simulator

import (
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// turns are the RolloutTurn of the MachineDeployment. Something else than a World writes its status.
type turns struct {
	// HasPolicies means that there are RolloutPolicies.
	HasPolicies bool
	turn        *machinev1alpha1.RolloutTurn
	// turnWrites counts the writes of the turn.
	turnWrites int
}

// applyTurn as Crossplane does.
func (c *turns) applyTurn(desired *machinev1alpha1.RolloutTurn, uid func() types.UID) {
	switch {
	case desired == nil && c.turn == nil:
	case desired == nil:
		c.turn = nil
		c.turnWrites++
	case c.turn == nil:
		c.turn = desired.DeepCopy()
		c.turn.UID, c.turn.Generation = uid(), 1
		c.turnWrites++
	case c.turn.Spec != desired.Spec:
		c.turn.Spec = desired.Spec
		c.turn.Generation++
		c.turnWrites++
	}
}
