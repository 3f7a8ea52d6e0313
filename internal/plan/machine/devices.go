package machine

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

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
