package function

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/machine"
	"github.com/drover-dev/drover/internal/workernode"
)

// runLifecycle runs the step. An error means that nothing can be decided on the Machine, and that
// everything stays as it is.
func runLifecycle(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := &fn.Lifecycle{}
	if err := step.Input(req, input); err != nil {
		return nil, err
	}
	o, err := observeMachine(req)
	if err != nil {
		return nil, err
	}
	o.CloudNamesNodes = input.CloudNamesNodes
	grace, err := machine.ReturnGrace(input)
	if err != nil {
		return nil, err
	}
	rsp := step.NewResponse(req)
	looked := observeHealth(req, rsp, &o)
	d := machine.Plan(now, o)
	if looked && o.NeedsTarget(d) {
		c, _, found := rsp.Cluster(req, o.Machine.Namespace, o.Machine.Spec.ClusterRef, "spec.clusterRef")
		looked = found
		if found {
			o.ObserveTarget(now, c, grace)
			d = machine.Plan(now, o)
		}
	}
	if err := holdVM(req, rsp, o.Machine, d.Requests); err != nil {
		return nil, err
	}
	if !looked {
		return rsp.RunFunctionResponse, nil
	}
	if d.WorkerNode != nil {
		if err := rsp.SetContext(step.ContextNode, workernode.WorkerNode{Parameters: *d.WorkerNode}); err != nil {
			return nil, err
		}
	}
	return rsp.RunFunctionResponse, rsp.Report(machinev1alpha1.MachineGroupVersionKind, &d.Status, d.Report)
}

// observeHealth adds the objects by which the health of the Machine is judged. It returns false while Crossplane has not
// looked for them yet. Without its class, as after its deletion, devices are not judged.
func observeHealth(req *fnv1.RunFunctionRequest, rsp step.Response, o *machine.Observed) bool {
	profiles, looked := rsp.HealthProfiles(req, o.Machine.Spec.Health)
	if o.HealthProfiles = profiles; !looked || !o.JudgesDevices() {
		return looked
	}
	class, _, looked := rsp.Class(req, o.Machine, "spec.classRef.name")
	o.Devices = plan.DevicesOf(class)
	return looked
}

func observeMachine(req *fnv1.RunFunctionRequest) (machine.Observed, error) {
	o := machine.Observed{Machine: &machinev1alpha1.Machine{}, VM: plan.VM{State: plan.VMAbsent}}
	if err := step.Composite(req, o.Machine); err != nil {
		return o, err
	}
	if _, err := step.Context(req, step.ContextBootstrap, &o.Bootstrap); err != nil {
		return o, err
	}
	if _, err := step.Context(req, step.ContextVM, &o.VM); err != nil {
		return o, err
	}
	wn := &workernode.WorkerNode{}
	known, err := step.Context(req, step.ContextNode, wn)
	if known {
		o.WorkerNode = wn
	}
	return o, err
}

// holdVM adds finalizers to the VM and its companions: the VM stays until its Node is drained, and
// the companions until the VM is gone. A resource that exists is kept even if no step desires it:
// only the deletion of its Machine deletes it. On the VM, holdVM also sets the requests to its provider.
func holdVM(req *fnv1.RunFunctionRequest, rsp step.Response, m *machinev1alpha1.Machine, r machine.Requests) error {
	all := step.Observed(req)
	names := map[string]bool{}
	for name := range all {
		names[name] = true
	}
	for name := range req.GetDesired().GetResources() {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !machinev1alpha1.IsInfrastructure(name) {
			continue
		}
		observed, exists := all[name]
		held := heldOf(req, m, name, observed)
		if name == machinev1alpha1.ResourceVM {
			askProvider(held, observed, machinev1alpha1.AnnotationReadConsole, strconv.FormatBool(r.Console), r.Console)
			askProvider(held, observed, machinev1alpha1.AnnotationReboot, r.Reboot, r.Reboot != "")
		}
		if err := hold(req, rsp, held, name, observed, exists); err != nil {
			return err
		}
	}
	return nil
}

// heldOf returns the resource as an earlier step desires it, or else as it is observed.
func heldOf(req *fnv1.RunFunctionRequest, m *machinev1alpha1.Machine, name string, observed plan.Object) plan.Object {
	held, ok := step.Desired(req, name)
	if !ok {
		held = plan.Object{Unstructured: plan.AsObserved(observed, m)}
	}
	return held
}

// askProvider sets an annotation by which the provider of a VM gets a request. If there is none, it sets the value for
// that on a VM that had one before: an annotation that is only absent from the desired resource is not removed.
func askProvider(held, observed plan.Object, annotation, value string, isRequested bool) {
	if !isRequested && (observed.Unstructured == nil || observed.GetAnnotations()[annotation] == "") {
		return
	}
	annotations := map[string]string{annotation: value}
	for k, v := range held.GetAnnotations() {
		if k != annotation {
			annotations[k] = v
		}
	}
	held.SetAnnotations(annotations)
}

// finalizersOf returns the finalizers for a resource that exists: those that it was created with are
// kept, and none is added while it is being deleted.
func finalizersOf(observed plan.Object) []string {
	var out []string
	for _, f := range []string{machinev1alpha1.FinalizerDrain, plan.FinalizerManaged} {
		if slices.Contains(observed.GetFinalizers(), f) || f == machinev1alpha1.FinalizerDrain && observed.GetDeletionTimestamp() == nil {
			out = append(out, f)
		}
	}
	return out
}

func hold(req *fnv1.RunFunctionRequest, rsp step.Response, held plan.Object, name string, observed plan.Object, exists bool) error {
	wanted := []string{machinev1alpha1.FinalizerDrain}
	if exists {
		wanted = finalizersOf(observed)
	}
	for _, f := range wanted {
		if have := held.GetFinalizers(); !slices.Contains(have, f) {
			held.SetFinalizers(append(have, f))
		}
		if !slices.Contains(held.GetFinalizers(), f) {
			return fmt.Errorf("cannot hold the %s until its Node is drained: metadata and finalizers of the resource that an earlier step desires are malformed", name)
		}
	}
	ready := req.GetDesired().GetResources()[name].GetReady() == fnv1.Ready_READY_TRUE
	return rsp.Compose(name, held.Unstructured, ready)
}
