package bootstrap

import (
	"fmt"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

func problemOf(class *machinev1alpha1.MachineClass, err error) *plan.Problem {
	return &plan.Problem{Reason: userdata.ReasonOf(err), Message: fmt.Sprintf("class %q: %v", class.Reference().Key(), err)}
}
