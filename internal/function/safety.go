package function

import (
	"fmt"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/freeze"
)

// A subject is a MachineDeployment or a MachineSet.
type subject struct {
	freeze.Observed
	kind, namespace string
	// cluster that new Machines join, and the field that names it.
	cluster machinev1alpha1.ClusterReference
	field   string
}

// status is the part of the XR's status that this step owns.
type status struct {
	Safety *machinev1alpha1.SafetyStatus `json:"safety"`
}

// runSafety runs the step. An error means that everything stays as it is.
func runSafety(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
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
	c, problem, looked := rsp.Cluster(req, s.namespace, s.cluster, s.field)
	if !looked {
		return rsp.RunFunctionResponse, nil
	}
	if s.Problem = problem; c != nil {
		s.Cluster = clusterOf(s.cluster, c.Status)
	}

	d := freeze.Plan(now, s.Observed)
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

func marginsOf(o fn.Overshoot) (freeze.Margins, error) {
	m := freeze.Margins{Up: ptr.Deref(o.UpMargin, freeze.DefaultMargins.Up), Down: ptr.Deref(o.DownMargin, freeze.DefaultMargins.Down)}
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
			Observed: freeze.OfDeployment(d), kind: kind, namespace: d.Namespace,
			cluster: deployment.Template(d).Spec.ClusterRef, field: deployment.FieldOf(d, "clusterRef"),
		}, err
	case machinev1alpha1.MachineSetGroupVersionKind.Kind:
		s := &machinev1alpha1.MachineSet{}
		err := step.Composite(req, s)
		return subject{
			Observed: freeze.OfSet(s), kind: kind, namespace: s.Namespace,
			cluster: s.Spec.Template.Spec.ClusterRef, field: "spec.template.spec.clusterRef",
		}, err
	default:
		return subject{}, fmt.Errorf("the composite resource has kind %q: the step is for MachineDeployment and MachineSet", kind)
	}
}

// clusterOf converts the status of a cluster's configuration. A cluster without a measurement counts
// as reachable.
func clusterOf(ref machinev1alpha1.ClusterReference, status clusterv1alpha1.ProviderConfigStatus) *freeze.Cluster {
	c := status.GetCondition(clusterv1alpha1.ConditionReachable)
	return &freeze.Cluster{
		Kind: ref.Kind, Name: ref.Name,
		Unreachable: c.Status == corev1.ConditionFalse, Reason: string(c.Reason), Since: c.LastTransitionTime.Time,
	}
}
