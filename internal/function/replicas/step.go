package replicas

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/infrastructure"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/machinegroup"
)

const requirementMachines = "machines"

// Run the step. An error means that nothing can be said of the set, and that all
// shall stay as it is.
func Run(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	if err := step.Input(req, &fn.Replicas{}); err != nil {
		return nil, err
	}
	if rsp, decided, err := step.Again(req); decided || err != nil {
		return rsp, err
	}
	set := &machinev1alpha1.MachineSet{}
	if err := step.Composite(req, set); err != nil {
		return nil, err
	}

	// The class is that of a Machine that would be created now.
	next := &machinev1alpha1.Machine{ObjectMeta: set.ObjectMeta, Spec: set.Spec.Template.Spec}
	rsp := step.NewResponse(req)
	rsp.RequireClass(next)
	rsp.RequireByLabels(requirementMachines, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineGroupVersionKind.Kind,
		set.Namespace, matchLabels(set))

	o, looked, err := observe(req, rsp, set, next)
	if err != nil || !looked {
		return rsp.RunFunctionResponse, err
	}
	if err := expectGroup(req, rsp, &o); err != nil {
		return nil, err
	}
	if err := respond(req, rsp, set, Plan(now, o)); err != nil {
		return nil, err
	}
	// The set is woken by its MachineGroup, which tells of Machines in batches.
	return rsp.RunFunctionResponse, rsp.Decided(requirementMachines)
}

// expectGroup adds what the set's MachineGroup says of its Machines.
func expectGroup(req *fnv1.RunFunctionRequest, rsp step.Response, o *Observed) error {
	g, err := observedGroup(req)
	if err != nil || g == nil {
		return err
	}
	o.Gone, o.NotApplied = g.Status.Gone, notApplied(g)
	late, err := isBehind(g, *o)
	if late {
		rsp.CallAgain(machinegroup.TellEvery)
	}
	return err
}

func observe(req *fnv1.RunFunctionRequest, rsp step.Response, set *machinev1alpha1.MachineSet, next *machinev1alpha1.Machine) (Observed, bool, error) {
	o := Observed{Set: set}
	if _, err := step.Context(req, step.ContextSafety, &o.Safety); err != nil {
		return o, false, err
	}
	class, problem, looked := step.Class(req, next, "spec.template.spec.classRef.name")
	children, looked2 := step.Children(req, requirementMachines, machinev1alpha1.MachineGroupVersionKind.Kind, set.UID)
	if !looked || !looked2 {
		return o, false, nil
	}
	if class != nil {
		rsp.RequireCompositions(class)
		var c step.Object
		if c, problem, looked = step.Composition(req, class); !looked {
			return o, false, nil
		}
		// A MachineDeployment has looked before it made the set.
		if problem == nil && metav1.GetControllerOfNoCopy(set) == nil {
			if problem, looked = infrastructure.Check(req, rsp, c, class, next); !looked {
				return o, false, nil
			}
		}
	}
	o.Problem = problem
	for _, c := range children {
		m, err := machineOf(c.Object)
		if err != nil {
			return o, false, err
		}
		m.Terminating = c.Terminating
		o.Machines = append(o.Machines, m)
	}
	orphans, foreign := step.Others(req, requirementMachines, set.UID)
	for _, orphan := range orphans {
		// What cannot be read is not the set's yet, and nothing it has to keep.
		if m, err := machineOf(orphan); err == nil {
			o.Orphans = append(o.Orphans, m)
		}
	}
	for _, f := range foreign {
		o.Foreign = append(o.Foreign, &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: f.GetName(), OwnerReferences: f.GetOwnerReferences()}})
	}
	return o, true, nil
}

// matchLabels of the set's selector. All of its Machines have them, because the template
// has, and those do that it may adopt.
func matchLabels(set *machinev1alpha1.MachineSet) map[string]string {
	labels := map[string]string{}
	for k, v := range set.Spec.Selector.MatchLabels {
		labels[k] = string(v)
	}
	return labels
}

func respond(req *fnv1.RunFunctionRequest, rsp step.Response, set *machinev1alpha1.MachineSet, d Decision) error {
	g, err := group(set, d)
	if err != nil {
		return err
	}
	if err := rsp.Compose(machinev1alpha1.ResourceMachines, g, d.Ready); err != nil {
		return err
	}
	rsp.Ready(d.Ready)
	rsp.SetConditions(d.Conditions...)
	rsp.Events(d.Events...)
	rsp.CallAgain(d.CallAgain)
	if err := rsp.Status(machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineSetGroupVersionKind.Kind, &d.Status); err != nil {
		return err
	}
	rsp.IfUnchanged(req)
	return nil
}

// machineOf decodes a Machine that exists.
func machineOf(o step.Object) (Machine, error) {
	m, err := step.As[machinev1alpha1.Machine](o)
	return Machine{Machine: m}, err
}
