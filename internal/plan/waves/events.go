package waves

import (
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// Events of a policy whose status changes.
func Events(before, after machinev1alpha1.RolloutPolicyStatus) []plan.Event {
	var out []plan.Event
	for _, w := range after.Waves {
		i := slices.IndexFunc(before.Waves, func(b machinev1alpha1.WaveStatus) bool { return b.Name == w.Name })
		if i >= 0 && before.Waves[i].State == w.State {
			continue
		}
		named := make([]string, 0, len(w.WaitsFor))
		for _, m := range w.WaitsFor {
			named = append(named, fmt.Sprintf("%s/%s (%s)", m.Namespace, m.Name, m.State))
		}
		members := strings.Join(named, ", ")
		switch w.State {
		case machinev1alpha1.WaveFailed:
			out = append(out, plan.Event{Warning: true, Reason: machinev1alpha1.EventWaveFailed, Message: fmt.Sprintf(
				"Wave %s failed, and holds all later waves until it is complete: %s; to let it pass, run kubectl drover rollout pass", w.Name, members)})
		case machinev1alpha1.WaveOverdue:
			out = append(out, plan.Event{Warning: true, Reason: machinev1alpha1.EventWaveOverdue, Message: fmt.Sprintf(
				"Wave %s is not complete since %s, longer than its deadline: %s; to let it pass, run kubectl drover rollout pass", w.Name, w.Since.UTC().Format(time.RFC3339), members)})
		}
	}
	return out
}
