package machine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ReturnGrace returns the value of the input, or the default.
func ReturnGrace(input *fn.Lifecycle) (time.Duration, error) {
	switch g := input.ReturnGrace; {
	case g == nil:
		return fn.DefaultReturnGrace, nil
	case g.Duration < 0:
		return 0, fmt.Errorf("the step's input: returnGrace: %s must be 0s or more", g.Duration)
	default:
		return g.Duration, nil
	}
}

// NeedsTarget reports whether a decision depends on the reachability of the Machine's cluster. Only
// then is the configuration requested, because that costs another call of the function.
func (o Observed) NeedsTarget(d Desired) bool {
	fails := d.Status.Phase == machinev1alpha1.MachineFailed && o.Machine.Status.Phase != machinev1alpha1.MachineFailed
	return fails || d.Status.Phase == machinev1alpha1.MachineUnknown || d.Status.Reboot.IsInProgress()
}

// ObserveTarget adds the state of the target cluster by its configuration. It is nil if there is none: then
// no Node can be observed. An outage whose end is further ahead of the clock than the grace counts as over, because the clock
// was set back.
func (o *Observed) ObserveTarget(now time.Time, c *clusterv1alpha1.ClusterProviderConfig, grace time.Duration) {
	if c == nil {
		o.TargetUnreachable = true
		return
	}
	o.TargetUnreachable = c.Status.GetCondition(clusterv1alpha1.ConditionReachable).Status == corev1.ConditionFalse
	if last := c.Status.Outage; last != nil && last.Until != nil {
		if last.Until.Sub(now) > grace {
			return
		}
		o.JudgeAfter = last.Until.Add(grace)
	}
}
