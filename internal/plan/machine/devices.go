package machine

import (
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// JudgesDevices reports whether the health of a Machine judges the devices of its Node. Only then is its class requested.
func (o Observed) JudgesDevices() bool {
	return plan.JudgesDevices(healthprofile.Rules(o.Machine.Spec.Health, o.HealthProfiles.Found))
}

// withDevices returns the conditions of a Node, with DevicesMissing if it lacks devices of its class. A Node that lost
// sight of its devices, or whose device plugins have not registered yet, lacks them, whether it is Ready or not. Before the
// Node was read in this process, the condition that was recorded last stands for its devices.
func withDevices(o workernode.Observation, wanted machinev1alpha1.Devices) []workernode.Condition {
	if o.Devices == nil && len(wanted) > 0 {
		return o.Conditions
	}
	out := slices.DeleteFunc(slices.Clone(o.Conditions), func(c workernode.Condition) bool { return c.Type == machinev1alpha1.NodeDevicesMissing })
	if missing := plan.MissingDevices(wanted, o.Devices); missing != "" && o.Present {
		out = append(out, workernode.Condition{Type: machinev1alpha1.NodeDevicesMissing, Status: isTrue, Reason: missing})
	}
	return out
}

// devicesUntil returns the time until which the Node of a Machine that has not run may lack devices: its device plugins start
// when it is Ready. It is zero if it lacks none, or something else is wrong.
func (f facts) devicesUntil() time.Time {
	if !f.node.ready || f.node.since == nil || len(f.node.bad) != 1 || f.node.bad[0].Type != machinev1alpha1.NodeDevicesMissing {
		return time.Time{}
	}
	c := machinev1alpha1.UnhealthyCondition{Type: f.node.bad[0].Type, Status: f.node.bad[0].Status}
	return f.node.since.Add(timeoutOf(f.health, c))
}

// healthValid is False while spec.health names profiles that do not exist. The set
// reports the other reasons, before there is a Machine.
func healthValid(f facts) *plan.Condition {
	problems := plan.HealthProblems(f.Machine.Spec.Health, plan.HealthFacts{HealthProfiles: f.HealthProfiles}, "spec.health")
	return plan.HealthValid(problems, f.before.Conditions)
}
