package freeze

import (
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// DefaultMargins are the defaults of the input's schema, which Crossplane does not apply.
var DefaultMargins = Margins{Up: fn.DefaultUpMargin, Down: fn.DefaultDownMargin}

// OfDeployment returns the view of a MachineDeployment, from its own status.
func OfDeployment(d *machinev1alpha1.MachineDeployment) Observed {
	return Observed{
		Labels: d.Labels, Annotations: d.Annotations, Conditions: d.Status.Conditions, Margins: DefaultMargins,
		Machines: &Machines{
			Expected: deployment.Most(d), Existing: d.Status.Replicas, Terminating: d.Status.TerminatingReplicas, Remembered: d.Status.Safety,
		},
	}
}

// OfSet returns the view of a MachineSet, from its own status.
func OfSet(s *machinev1alpha1.MachineSet) Observed {
	o := Observed{Labels: s.Labels, Annotations: s.Annotations, Conditions: s.Status.Conditions, Margins: DefaultMargins}
	if by := metav1.GetControllerOfNoCopy(s); by == nil || by.Kind != machinev1alpha1.MachineDeploymentGroupVersionKind.Kind {
		o.Machines = &Machines{
			Expected: min(s.Spec.Replicas, math.MaxInt32/2) * 2,
			Existing: s.Status.Replicas, Terminating: s.Status.TerminatingReplicas, Remembered: s.Status.Safety,
		}
	}
	return o
}
