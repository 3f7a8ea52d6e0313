package function

import (
	"cmp"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/group"
	"github.com/drover-dev/drover/internal/plan/nodetemplate"
	"github.com/drover-dev/drover/internal/plan/set"
)

const (
	requirementMachines = "machines"
	// requirementSetAside finds Machines that the selector no longer matches.
	requirementSetAside = "set-aside"
)

// runReplicas runs the step. An error means that nothing can be decided on the set, and that
// everything stays as it is.
func runReplicas(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	if err := step.Input(req, &fn.Replicas{}); err != nil {
		return nil, err
	}
	if rsp, decided, err := step.Again(req); decided || err != nil {
		return rsp, err
	}
	s := &machinev1alpha1.MachineSet{}
	if err := step.Composite(req, s); err != nil {
		return nil, err
	}

	// The class is the one that a Machine created now would have.
	next := &machinev1alpha1.Machine{ObjectMeta: s.ObjectMeta, Spec: s.Spec.Template.Spec}
	rsp := step.NewResponse(req)
	rsp.RequireByLabels(requirementMachines, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineGroupVersionKind.Kind,
		s.Namespace, set.MatchLabels(s))
	if len(s.Status.SetAside) > 0 {
		rsp.RequireByLabels(requirementSetAside, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineGroupVersionKind.Kind,
			s.Namespace, map[string]string{machinev1alpha1.LabelSet: s.Name})
	}

	there, lookedForTemplate := requireNodeTemplate(req, rsp, s, next.Spec.InfrastructureRef)
	o, looked, err := observeSet(now, req, rsp, s, next)
	if err != nil || !looked || !lookedForTemplate {
		return rsp.RunFunctionResponse, err
	}
	class, _, _ := rsp.Class(req, next, "spec.template.spec.classRef.name")
	nodes := nodetemplate.Observed{
		Owner: s, Kind: machinev1alpha1.MachineSetGroupVersionKind.Kind, Ref: next.Spec.InfrastructureRef, Class: class, There: there,
	}
	if !deriveCapacity(req, rsp, &nodes) {
		return rsp.RunFunctionResponse, nil
	}
	if err := expectGroup(req, rsp, &o); err != nil {
		return nil, err
	}
	if err := respondSet(req, rsp, s, set.Plan(now, o)); err != nil {
		return nil, err
	}
	if err := respondNodeTemplate(rsp, nodes); err != nil {
		return nil, err
	}
	// The MachineGroup enqueues the set, with the changes of Machines in batches.
	return rsp.RunFunctionResponse, rsp.Decided(requirementMachines, requirementSetAside)
}

// expectGroup adds the status of the set's MachineGroup.
func expectGroup(req *fnv1.RunFunctionRequest, rsp step.Response, o *set.Observed) error {
	for _, composed := range step.Observed(req) {
		if composed.GetKind() != machinev1alpha1.MachineGroupGroupVersionKind.Kind {
			continue
		}
		g, err := step.As[machinev1alpha1.MachineGroup](composed)
		if err != nil {
			return err
		}
		behind, err := o.Expect(g)
		if behind {
			rsp.CallAgain(group.NotifyEvery)
		}
		return err
	}
	return nil
}

func observeSet(now time.Time, req *fnv1.RunFunctionRequest, rsp step.Response, s *machinev1alpha1.MachineSet, next *machinev1alpha1.Machine) (set.Observed, bool, error) {
	o := set.Observed{Set: s}
	plan.SettleBackoff(now, s.Status.Backoff)
	if _, err := step.Context(req, step.ContextSafety, &o.Safety); err != nil {
		return o, false, err
	}
	class, problem, looked := rsp.Class(req, next, "spec.template.spec.classRef.name")
	children, looked2 := machinesOf(req, s)
	if !looked || !looked2 {
		return o, false, nil
	}
	var composition plan.Object
	if class != nil {
		if composition, problem, looked = rsp.Composition(req, class); !looked {
			return o, false, nil
		}
		// A MachineDeployment has checked the class before it made the set.
		if problem == nil && metav1.GetControllerOfNoCopy(s) == nil {
			if problem, looked = checkClass(req, rsp, composition, class, next); !looked {
				return o, false, nil
			}
		}
	}
	if o.HealthProblems, looked = observeHealthOf(req, rsp, next, class, composition); !looked {
		return o, false, nil
	}
	o.Problem = cmp.Or(problem, o.Safety.Problem)
	for _, c := range children {
		m, err := machineOf(c.Object)
		if err != nil {
			return o, false, err
		}
		m.Terminating = c.Terminating
		plan.SettleReady(now, &m.Status, time.Duration(s.Spec.MinReadySeconds)*time.Second)
		o.Machines = append(o.Machines, m)
	}
	orphans, foreign := step.Others(req, requirementMachines, s.UID)
	for _, orphan := range orphans {
		// An orphan that cannot be decoded does not belong to the set yet, so the set need not keep
		// it.
		if m, err := machineOf(orphan); err == nil {
			o.Orphans = append(o.Orphans, m)
		}
	}
	for _, f := range foreign {
		o.Foreign = append(o.Foreign, &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: f.GetName(), OwnerReferences: f.GetOwnerReferences()}})
	}
	return o, true, nil
}

// observeHealthOf returns the parts of the health of new Machines that cannot be carried out as they are written. The last
// result is false while Crossplane has not looked for their profiles yet.
func observeHealthOf(req *fnv1.RunFunctionRequest, rsp step.Response, next *machinev1alpha1.Machine, class *machinev1alpha1.MachineClass, composition plan.Object) ([]plan.Problem, bool) {
	profiles, looked := rsp.HealthProfiles(req, next.Spec.Health)
	if !looked {
		return nil, false
	}
	f := plan.HealthFacts{HealthProfiles: profiles, Class: class}
	// Without an input Infrastructure, the pipeline decides by itself whether VMs are rebooted.
	if composition.Unstructured != nil {
		input := plan.InputOf(composition, "Infrastructure")
		reboots, _, _ := unstructured.NestedBool(input, "virtualMachine", "reboot")
		f.CannotReboot = input != nil && !reboots
	}
	return plan.HealthProblems(next.Spec.Health, f, "spec.template.spec.health"), true
}

func respondSet(req *fnv1.RunFunctionRequest, rsp step.Response, s *machinev1alpha1.MachineSet, d set.Decision) error {
	g, err := set.Group(s, d)
	if err != nil {
		return err
	}
	if err := rsp.Compose(machinev1alpha1.ResourceMachines, g, d.Ready); err != nil {
		return err
	}
	if err := rsp.Report(machinev1alpha1.MachineSetGroupVersionKind, &d.Status, d.Report); err != nil {
		return err
	}
	rsp.IfUnchanged(req)
	return nil
}

// machinesOf returns the Machines of the set, including those that it set aside. It returns false
// while Crossplane has not looked for them yet.
func machinesOf(req *fnv1.RunFunctionRequest, s *machinev1alpha1.MachineSet) ([]plan.Child, bool) {
	children, looked := step.Children(req, requirementMachines, machinev1alpha1.MachineGroupVersionKind.Kind, s.UID)
	if !looked || len(s.Status.SetAside) == 0 {
		return children, looked
	}
	all, looked := step.Children(req, requirementSetAside, machinev1alpha1.MachineGroupVersionKind.Kind, s.UID)
	for _, c := range all {
		if !slices.ContainsFunc(children, func(known plan.Child) bool { return known.GetName() == c.GetName() }) {
			children = append(children, c)
		}
	}
	return children, looked
}

// machineOf decodes a Machine that exists. A Machine with a field that cannot be decoded counts by its
// other fields: it must not keep the set from its other Machines.
func machineOf(o plan.Object) (set.Machine, error) {
	m, err := step.PartsAs[machinev1alpha1.Machine](o)
	return set.Machine{Machine: m}, err
}
