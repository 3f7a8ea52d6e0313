package freeze

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
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

// Observed is the view of the step.
type Observed struct {
	Labels, Annotations map[string]string
	Conditions          []metav1.Condition

	// Machines has the counts. It is nil for the set of a deployment, because the deployment checks
	// the counts.
	Machines *Machines
	// Cluster that new Machines join, nil if it has no configuration. Problem then has the reason.
	Cluster *Cluster
	Problem *plan.Problem
	Margins Margins
}

// Machines are the counts of the last reconcile.
type Machines struct {
	// Expected is the maximal number of Machines by the spec.
	Expected int32
	// Existing Machines are not being deleted, Terminating ones are.
	Existing, Terminating int32
	// Remembered is the status that the step recorded last, nil if there is none.
	Remembered *machinev1alpha1.SafetyStatus
}

// A Cluster that Machines join.
type Cluster struct {
	// Kind and Name of its configuration.
	Kind, Name string
	// Unreachable means that the cluster does not answer, or refuses Drover's credentials.
	Unreachable bool
	// Reason why it is unreachable, and since when.
	Reason string
	Since  time.Time
}

// Margins by which the number of Machines may exceed the limits: to freeze only above Up, and to
// thaw at Up-Down.
type Margins struct {
	Up, Down int32
}

// A Decision is the output of the step.
type Decision struct {
	Safety    plan.Safety
	Condition plan.Condition
	Events    []plan.Event
	// Status is nil for the set of a deployment.
	Status *machinev1alpha1.SafetyStatus
	// CallAgain is the longest delay until the next call, even without any change.
	CallAgain time.Duration
}
