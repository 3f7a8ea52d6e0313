package safety

import (
	"fmt"
	"math"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/rollout"
	"github.com/drover-dev/drover/internal/function/step"
)

// DefaultMargins are those of the input's schema, which Crossplane does not apply.
var DefaultMargins = Margins{Up: 2, Down: 1}

// A subject is a MachineDeployment or a MachineSet.
type subject struct {
	Observed
	kind, namespace string
	// cluster that new Machines join.
	cluster machinev1alpha1.ClusterReference
}

// status is the part of the XR's that is this step's.
type status struct {
	Safety *machinev1alpha1.SafetyStatus `json:"safety"`
}

// Run the step. An error means that all shall stay as it is.
func Run(_ time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := &fn.Safety{}
	if err := step.Input(req, input); err != nil {
		return nil, err
	}
	margins, err := marginsOf(input.Overshoot)
	if err != nil {
		return nil, err
	}
	s, err := subjectOf(req)
	if err != nil {
		return nil, err
	}

	s.Margins = margins
	rsp := step.NewResponse(req)
	rsp.RequireCluster(s.namespace, s.cluster)
	c, looked := step.Cluster(req)
	if !looked {
		return rsp.RunFunctionResponse, nil
	}
	if c != nil {
		s.Cluster = clusterOf(s.cluster, c.Status)
	}

	d := Plan(s.Observed)
	rsp.SetConditions(d.Condition)
	rsp.Events(d.Events...)
	rsp.CallAgain(d.CallAgain)
	if d.Status != nil {
		if err := rsp.Status(machinev1alpha1.SchemeGroupVersion.String(), s.kind, &status{Safety: d.Status}); err != nil {
			return nil, err
		}
	}
	return rsp.RunFunctionResponse, rsp.SetContext(step.ContextSafety, d.Safety)
}

func marginsOf(o fn.Overshoot) (Margins, error) {
	m := Margins{Up: ptr.Deref(o.UpMargin, DefaultMargins.Up), Down: ptr.Deref(o.DownMargin, DefaultMargins.Down)}
	switch {
	case m.Up < 0:
		return m, fmt.Errorf("the step's input: overshoot.upMargin: %d must be 0 or more", m.Up)
	case m.Down < 0:
		return m, fmt.Errorf("the step's input: overshoot.downMargin: %d must be 0 or more", m.Down)
	}
	return m, nil
}

func subjectOf(req *fnv1.RunFunctionRequest) (subject, error) {
	switch kind := req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue(); kind {
	case machinev1alpha1.MachineDeploymentGroupVersionKind.Kind:
		d := &machinev1alpha1.MachineDeployment{}
		err := step.Composite(req, d)
		return subject{
			Observed: OfDeployment(d), kind: kind, namespace: d.Namespace,
			cluster: rollout.Template(d).Spec.ClusterRef,
		}, err
	case machinev1alpha1.MachineSetGroupVersionKind.Kind:
		s := &machinev1alpha1.MachineSet{}
		err := step.Composite(req, s)
		return subject{
			Observed: OfSet(s), kind: kind, namespace: s.Namespace,
			cluster: s.Spec.Template.Spec.ClusterRef,
		}, err
	default:
		return subject{}, fmt.Errorf("the composite resource has kind %q: the step is for MachineDeployment and MachineSet", kind)
	}
}

// OfDeployment is what a MachineDeployment says of itself.
func OfDeployment(d *machinev1alpha1.MachineDeployment) Observed {
	return Observed{
		Labels: d.Labels, Annotations: d.Annotations, Conditions: d.Status.Conditions, Margins: DefaultMargins,
		Machines: &Machines{
			Expected: rollout.Most(d), Existing: d.Status.Replicas, Terminating: d.Status.TerminatingReplicas, Remembered: d.Status.Safety,
		},
	}
}

// OfSet is what a MachineSet says of itself.
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

// clusterOf what its configuration says of itself. One that was not measured yet is not
// unreachable.
func clusterOf(ref machinev1alpha1.ClusterReference, status clusterv1alpha1.ProviderConfigStatus) *Cluster {
	c := status.GetCondition(clusterv1alpha1.TypeReachable)
	return &Cluster{
		Kind: ref.Kind, Name: ref.Name,
		Unreachable: c.Status == corev1.ConditionFalse, Reason: string(c.Reason), Since: c.LastTransitionTime.Time,
	}
}
