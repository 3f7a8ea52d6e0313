package forecast

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/plan"
)

// A HealthRule is a condition of Nodes, and the action that follows when it lasts.
type HealthRule struct {
	Condition string `json:"condition"`
	Status    string `json:"status"`
	// Action that follows.
	Action machinev1alpha1.HealthAction `json:"action"`
	// After is how long the condition lasts until then. A condition that is only reported has none.
	After *metav1.Duration `json:"after,omitempty"`
	// Profile that the rule is from, "" for one of spec.health alone.
	Profile string `json:"profile,omitempty"`
}

// health lists the rules of the changed template, if the change concerns them, and reports profiles that do not exist.
func (f *foresight) health() {
	before, after := f.in.Before.Spec.Template.Spec.Health, f.in.After.Spec.Template.Spec.Health
	if f.in.Before.UID == "" {
		// As the schema has it.
		before = machinev1alpha1.Health{Conditions: machinev1alpha1.DefaultHealthConditions(), Timeout: after.Timeout}
	}
	if equality.Semantic.DeepEqual(before.Conditions, after.Conditions) && equality.Semantic.DeepEqual(before.Profiles, after.Profiles) && before.Timeout == after.Timeout {
		return
	}
	for _, p := range plan.HealthProblems(after, plan.HealthFacts{HealthProfiles: f.in.Profiles}, "spec.template.spec.health") {
		f.block(false, p.Reason, p.Message, "Create the HealthProfile, or name a built-in one.")
	}
	for _, r := range healthprofile.Rules(after, f.in.Profiles.Found) {
		rule := HealthRule{Condition: r.Type, Status: r.Status, Action: r.ActionOrDefault(), Profile: r.From}
		if rule.Action != machinev1alpha1.HealthReport {
			rule.After = &metav1.Duration{Duration: timeoutOf(r.HealthCondition, after)}
		}
		f.Health = append(f.Health, rule)
	}
}

func timeoutOf(c machinev1alpha1.HealthCondition, h machinev1alpha1.Health) time.Duration {
	if c.Timeout != nil {
		return c.Timeout.Duration
	}
	return plan.Timeout(h.Timeout, machinev1alpha1.DefaultHealthTimeout)
}
