package function

import (
	"fmt"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/installations"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/orphans"
	"github.com/drover-dev/drover/internal/plan/vm"
)

const (
	requirementAdopted       = "adopted"
	requirementInstallations = "installations"
)

// runOrphans runs the step. An error means that nothing can be decided on the collector, and that
// everything stays as it is.
func runOrphans(_ time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	in := &fn.Orphans{}
	if err := step.Input(req, in); err != nil {
		return nil, err
	}
	if err := validateOrphans(in); err != nil {
		return nil, err
	}
	c := &machinev1alpha1.OrphanCollector{}
	if err := step.Composite(req, c); err != nil {
		return nil, err
	}

	rsp := step.NewResponse(req)
	rsp.RequireByLabels(requirementAdopted, in.VirtualMachine.APIVersion, in.VirtualMachine.Kind, namespaceOf(c), labels(c))

	o := orphans.Observed{Collector: c}
	var looked bool
	if o.Installation, o.InstallationProblem, looked = rsp.Installation(req); !looked {
		return rsp.RunFunctionResponse, nil
	}
	if o.Gone, looked = readGone(req, rsp, c, o.Installation); !looked {
		return rsp.RunFunctionResponse, nil
	}
	children, looked := step.Children(req, requirementAdopted, in.VirtualMachine.Kind, c.UID)
	if !looked {
		return rsp.RunFunctionResponse, nil
	}
	var err error
	if o.Inventory, err = readInventory(req); err != nil {
		return nil, err
	}
	observed := step.Observed(req)
	for _, child := range children {
		a, ok := readAdopted(child)
		if !ok {
			a, ok = readObserved(child, observed)
		}
		if ok {
			o.Adopted = append(o.Adopted, a)
		}
	}
	if !lookUpOwners(req, rsp, in, &o) {
		return rsp.RunFunctionResponse, nil
	}
	if err := readNodes(observed, &o); err != nil {
		return nil, err
	}
	return rsp.RunFunctionResponse, respondOrphans(req, rsp, in, o, orphans.Plan(o))
}

// readGone returns which former installations are proven to be gone, if the collector looks for VMs
// of any. The last result is false while Crossplane has not looked for the record yet.
func readGone(req *fnv1.RunFunctionRequest, rsp step.Response, c *machinev1alpha1.OrphanCollector, present string) (map[string]bool, bool) {
	if len(c.Spec.FormerInstallations) == 0 {
		return nil, true
	}
	rsp.RequireByName(requirementInstallations, "v1", "ConfigMap", machinev1alpha1.NamespaceOfInstallations, machinev1alpha1.ConfigMapOfInstallations)
	found, looked := step.Required(req, requirementInstallations)
	if !looked || len(found) == 0 {
		return nil, looked
	}
	record, _, err := unstructured.NestedStringMap(found[0].Object, "data")
	if err != nil {
		return nil, true // A record that cannot be read proves nothing.
	}
	return installations.Gone(record, present), true
}

func validateOrphans(in *fn.Orphans) error {
	for _, field := range [][2]string{
		{"inventory.apiVersion", in.Inventory.APIVersion},
		{"inventory.kind", in.Inventory.Kind},
		{"virtualMachine.apiVersion", in.VirtualMachine.APIVersion},
		{"virtualMachine.kind", in.VirtualMachine.Kind},
	} {
		if field[1] == "" {
			return fmt.Errorf("the Composition's input Orphans: %s is required", field[0])
		}
	}
	return validateFields(in.VirtualMachine.Fields)
}

// lookUpOwners looks for the Machine and the VM resource of each VM in question. It returns false
// while Crossplane has not looked for all of them yet.
func lookUpOwners(req *fnv1.RunFunctionRequest, rsp step.Response, in *fn.Orphans, o *orphans.Observed) bool {
	complete := true
	stand := func(of orphans.Owner) orphans.Standing {
		if of == (orphans.Owner{}) {
			return orphans.Standing{Machine: true} // An unidentified Machine counts as existing: nothing proves that it is gone.
		}
		key := names.Hash(of.Namespace, of.Machine, string(of.UID))
		if of.VMName != "" {
			key = names.Hash(of.Namespace, of.Machine, string(of.UID), of.VMName)
		}
		resource := "vm-" + key
		rsp.RequireByName(resource, in.VirtualMachine.APIVersion, in.VirtualMachine.Kind, of.Namespace, nodeNameOf(of))
		resources, looked := step.Required(req, resource)
		s := orphans.Standing{Resource: len(resources) > 0 && metav1.GetControllerOfNoCopy(resources[0]) != nil}
		if of.Machine != "" {
			machine := "machine-" + key
			rsp.RequireByName(machine, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineGroupVersionKind.Kind, of.Namespace, of.Machine)
			machines, ok := step.Required(req, machine)
			looked = looked && ok
			s.Machine = len(machines) > 0 && machines[0].GetUID() == of.UID
		}
		if !looked {
			complete = false
			return orphans.Standing{Machine: true}
		}
		return s
	}
	for i := range o.Inventory.Unclaimed {
		if u := &o.Inventory.Unclaimed[i]; u.ConfirmedAt != nil {
			u.Standing = stand(u.Owner)
		}
	}
	for i := range o.Adopted {
		o.Adopted[i].Standing = stand(o.Adopted[i].Owner)
	}
	return lookUpMachines(req, rsp, o) && complete
}

// lookUpMachines looks for the Machines of unused resources other than VMs. It returns false while
// Crossplane has not looked for all of them yet.
func lookUpMachines(req *fnv1.RunFunctionRequest, rsp step.Response, o *orphans.Observed) bool {
	complete := true
	for i := range o.Inventory.Unused {
		u := &o.Inventory.Unused[i]
		if len(validation.IsDNS1123Label(u.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(u.Machine)) > 0 {
			continue // No Machine can have the name.
		}
		requirement := "unused-" + names.Hash(u.Namespace, u.Machine)
		rsp.RequireByName(requirement, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineGroupVersionKind.Kind, u.Namespace, u.Machine)
		found, looked := step.Required(req, requirement)
		u.HasMachine = len(found) > 0
		complete = complete && looked
	}
	return complete
}

func respondOrphans(req *fnv1.RunFunctionRequest, rsp step.Response, in *fn.Orphans, o orphans.Observed, d orphans.Decision) error {
	inventory, err := newInventory(in, o, d.Ignored())
	if err != nil {
		return err
	}
	if inventory != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceInventory, inventory, d.Ready); err != nil {
			return err
		}
	} else if was, ok := step.Observed(req)[machinev1alpha1.ResourceInventory]; ok {
		if err := rsp.Compose(machinev1alpha1.ResourceInventory, asObserved(was), d.Ready); err != nil {
			return err
		}
	}
	if nodes := newNodeInventory(o.Collector, d.Searches); nodes != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceNodeInventory, nodes, true); err != nil {
			return err
		}
	}
	for _, r := range d.Resources {
		vm, err := newVM(in, o.Collector, r)
		if err != nil {
			return err
		}
		if err := rsp.Compose(machinev1alpha1.ResourceOrphanPrefix+names.Hash(r.ExternalName), vm, true); err != nil {
			return err
		}
	}
	if err := rsp.Report(machinev1alpha1.OrphanCollectorGroupVersionKind, &d.Status, d.Report); err != nil {
		return err
	}
	rsp.IfUnchanged(req)
	return nil
}

// syncedAt returns the Synced condition of a managed resource of any kind, and whether it is about
// the resource's present spec.
func syncedAt(o plan.Object) (c xpv2.Condition, current bool) {
	var status xpv2.ManagedResourceStatus
	s, err := step.As[struct {
		Status xpv2.ManagedResourceStatus `json:"status"`
	}](o)
	if err == nil {
		status = s.Status
	}
	c = status.GetCondition(xpv2.TypeSynced)
	return c, c.ObservedGeneration == 0 || c.ObservedGeneration == o.GetGeneration()
}

// look reads from a VM resource whether its provider found the VM.
func look(o plan.Object) (seen, missing bool, trouble string) {
	s, err := step.As[struct {
		Status xpv2.ManagedResourceStatus `json:"status"`
	}](o)
	if err != nil {
		return false, false, err.Error()
	}
	synced, current := syncedAt(o)
	missing = s.Status.GetCondition(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing || strings.Contains(synced.Message, vm.NotExist)
	if synced.Status == corev1.ConditionFalse {
		trouble = synced.Message
	}
	return current && !missing && synced.Status == corev1.ConditionTrue, missing, trouble
}
