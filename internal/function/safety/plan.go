package safety

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// ConditionFrozen is true while nothing is created or replaced.
const ConditionFrozen = "Frozen"

// Reasons of ConditionFrozen, and of the events that tell of a change.
const (
	ReasonManualFreeze = "ManualFreeze"
	ReasonNotFrozen    = "NotFrozen"
)

// Observed is what the step sees.
type Observed struct {
	Labels     map[string]string
	Conditions []metav1.Condition
}

// A Decision is what the step wants.
type Decision struct {
	Safety    step.Safety
	Condition step.Condition
	Events    []step.Event
}

// Plan decides.
func Plan(o Observed) Decision {
	d := Decision{Condition: step.Condition{Type: ConditionFrozen, Status: "False", Reason: ReasonNotFrozen}}
	if o.Labels[machinev1alpha1.LabelFreeze] == "true" {
		d.Safety = step.Safety{
			Frozen:  true,
			Reason:  ReasonManualFreeze,
			Message: "label " + machinev1alpha1.LabelFreeze + ` is "true": no Machines are created or replaced until it is removed`,
		}
		d.Condition = step.Condition{Type: ConditionFrozen, Status: "True", Reason: d.Safety.Reason, Message: d.Safety.Message}
	}

	wasFrozen := false
	for _, c := range o.Conditions {
		wasFrozen = wasFrozen || c.Type == ConditionFrozen && c.Status == metav1.ConditionTrue
	}
	switch {
	case d.Safety.Frozen && !wasFrozen:
		d.Events = append(d.Events, step.Event{Warning: true, Reason: d.Safety.Reason, Message: "Frozen: " + d.Safety.Message})
	case wasFrozen && !d.Safety.Frozen:
		d.Events = append(d.Events, step.Event{Reason: ReasonNotFrozen, Message: "Thawed: Machines are created and replaced again"})
	}
	return d
}
