package action

import (
	"fmt"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// PassWave returns the change that lets the rollouts of later waves of a RolloutPolicy begin although a wave is not complete.
// It names the time since which the wave is not complete, so that it does not count for a later rollout.
func PassWave(p *machinev1alpha1.RolloutPolicy, wave string) (Change, error) {
	ref := refOf(machinev1alpha1.RolloutPolicyGroupVersionKind.Kind, p)
	names := make([]string, 0, len(p.Status.Waves))
	for _, w := range p.Status.Waves {
		switch {
		case w.Name != wave:
		case w.ID == "":
			return Change{}, fmt.Errorf("wave %s of %s is %s: there is nothing to let pass", wave, ref, w.State)
		default:
			return annotate(ref, "passed", map[string]any{machinev1alpha1.AnnotationPassWave: w.ID}), nil
		}
		names = append(names, w.Name)
	}
	if len(names) == 0 {
		return Change{}, fmt.Errorf("provider-drover has not written the status of %s yet", ref)
	}
	return Change{}, fmt.Errorf("%s has no wave %q: it must be one of %s", ref, wave, strings.Join(names, ", "))
}
