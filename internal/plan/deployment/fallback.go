package deployment

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// checkFallback reports a template that only other Machines can have, if the strategy must not replace any. Everything stays
// as it is then, and each set replaces the Machines that it loses.
func (f *fleet) checkFallback() {
	if f.problem != nil || !f.updatesInPlace() || f.Deployment.Spec.Strategy.InPlaceUpdate.Fallback != machinev1alpha1.FallbackNever {
		return
	}
	const never = "; no Machine is replaced or updated, because spec.strategy.inPlaceUpdate.fallback is Never: set it to Replace to replace Machines, or "
	var populated []string
	for _, s := range f.oldSets {
		if s.total() == 0 {
			continue
		}
		populated = append(populated, fmt.Sprintf("%s (%d)", s.Name, s.total()))
		has := s.Spec.Template.Spec
		switch {
		case has.ClusterRef != f.target.ClusterRef:
			f.problem = cannotUpdate(f.Deployment, "clusterRef", f.target.ClusterRef.Name, has.ClusterRef.Name, never+"revert the change")
		case !ptr.Equal(has.FailureDomain, f.target.FailureDomain):
			f.problem = cannotUpdate(f.Deployment, "failureDomain", ptr.Deref(f.target.FailureDomain, ""), ptr.Deref(has.FailureDomain, ""), never+"revert the change")
		default:
			continue
		}
		return
	}
	if len(populated) > 1 {
		f.problem = &shared.Problem{
			Reason: machinev1alpha1.ReasonCannotUpdateInPlace,
			Message: fmt.Sprintf("spec.strategy.type: InPlaceUpdate updates the Machines of one MachineSet, and a former rollout left them in %s", strings.Join(populated, ", ")) +
				never + "set spec.strategy.type to RollingUpdate",
		}
	}
}

func cannotUpdate(d *machinev1alpha1.MachineDeployment, field, to, from, next string) *shared.Problem {
	return &shared.Problem{
		Reason:  machinev1alpha1.ReasonCannotUpdateInPlace,
		Message: fmt.Sprintf("%s: %q cannot be reached in place from %q", FieldOf(d, field), to, from) + next,
	}
}
