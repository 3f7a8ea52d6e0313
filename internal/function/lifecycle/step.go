package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// Run the step. An error means that nothing can be said of the Machine, and that
// all shall stay as it is.
func Run(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := &fn.Lifecycle{}
	if err := step.Input(req, input); err != nil {
		return nil, err
	}
	o, err := observe(req)
	if err != nil {
		return nil, err
	}
	o.NodesByName = input.NodesByName
	grace, err := returnGrace(input)
	if err != nil {
		return nil, err
	}
	rsp := step.NewResponse(req)
	rsp.RequireStart(o.Machine.Namespace)
	if err := holdVM(req, rsp, o.Machine); err != nil {
		return nil, err
	}

	d := Plan(now, o)
	if judged(o, d) {
		rsp.RequireCluster(o.Machine.Namespace, o.Machine.Spec.ClusterRef)
		c, looked := step.Cluster(req)
		if !looked {
			return rsp.RunFunctionResponse, nil
		}
		o.sees(c, grace)
		d = Plan(now, o)
	}
	if d.WorkerNode == nil && o.WorkerNode != nil {
		return nil, errors.New("nobody knows the providerID any more, neither Machine nor VM nor WorkerNode: without it the WorkerNode would be deleted, and its Node drained")
	}
	if d.WorkerNode != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceWorkerNode, d.WorkerNode, d.NodeReady); err != nil {
			return nil, err
		}
	}
	gv, kind := machinev1alpha1.MachineGroupVersionKind.ToAPIVersionAndKind()
	if err := rsp.Status(gv, kind, &d.Status); err != nil {
		return nil, err
	}
	// A reconcile right after one that wrote a status sees it half, and would write
	// the other half as it was before. One that changes what is composed must not be
	// refused for that.
	if rsp.ComposesAsObserved(req) {
		rsp.IfUnchanged(req)
	}
	rsp.Ready(d.Status.Phase == machinev1alpha1.MachineRunning)
	rsp.SetConditions(d.Conditions...)
	rsp.Events(d.Events...)
	rsp.CallAgain(d.CallAgain)
	return rsp.RunFunctionResponse, nil
}

func observe(req *fnv1.RunFunctionRequest) (Observed, error) {
	o := Observed{Machine: &machinev1alpha1.Machine{}, VM: step.VM{State: step.VMAbsent}}
	if err := step.Composite(req, o.Machine); err != nil {
		return o, err
	}
	if _, err := step.Context(req, step.ContextBootstrap, &o.Bootstrap); err != nil {
		return o, err
	}
	if _, err := step.Context(req, step.ContextVM, &o.VM); err != nil {
		return o, err
	}
	if wn, ok := step.Observed(req)[machinev1alpha1.ResourceWorkerNode]; ok {
		var err error
		if o.WorkerNode, err = step.As[clusterv1alpha1.WorkerNode](wn); err != nil {
			return o, err
		}
	}
	return o, nil
}

// holdVM gives the VM, and its companions, the finalizer that keeps it until its Node
// is drained, and them until it is gone. What no step desires, although it is there, is
// kept: only the deletion of its Machine deletes it.
func holdVM(req *fnv1.RunFunctionRequest, rsp step.Response, m *machinev1alpha1.Machine) error {
	all := step.Observed(req)
	names := map[string]bool{}
	for name := range all {
		names[name] = true
	}
	for name := range req.GetDesired().GetResources() {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name != machinev1alpha1.ResourceVM && !machinev1alpha1.IsCompanion(name) {
			continue
		}
		observed, exists := all[name]
		if err := hold(req, rsp, m, name, observed, exists); err != nil {
			return err
		}
	}
	return nil
}

func hold(req *fnv1.RunFunctionRequest, rsp step.Response, m *machinev1alpha1.Machine, name string, observed step.Object, exists bool) error {
	held, ok := step.Desired(req, name)
	if !ok {
		held = step.Object{Unstructured: step.AsObserved(observed, m)}
	}
	// Nothing may be added to what is being deleted.
	if !exists || observed.GetDeletionTimestamp() == nil || slices.Contains(observed.GetFinalizers(), machinev1alpha1.FinalizerDrain) {
		if f := held.GetFinalizers(); !slices.Contains(f, machinev1alpha1.FinalizerDrain) {
			held.SetFinalizers(append(f, machinev1alpha1.FinalizerDrain))
		}
		if !slices.Contains(held.GetFinalizers(), machinev1alpha1.FinalizerDrain) {
			return fmt.Errorf("cannot hold the %s until its Node is drained: the metadata or finalizers of what a step before desires are not what those of a resource are", name)
		}
	}
	ready := req.GetDesired().GetResources()[name].GetReady() == fnv1.Ready_READY_TRUE
	return rsp.Compose(name, held.Unstructured, ready)
}
