package clusterapi

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// page is the number of objects that are listed at once.
const page = 500

// labeled lists the objects with a label, in all namespaces.
func (a *account) labeled(ctx context.Context, gvk schema.GroupVersionKind, label, value string) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	list := &unstructured.UnstructuredList{}
	for {
		next := list.GetContinue()
		list = &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := a.kube.List(ctx, list, client.MatchingLabels{label: value}, client.Limit(page), client.Continue(next)); err != nil {
			return nil, classify("cannot list "+gvk.Kind, err)
		}
		out = append(out, list.Items...)
		if list.GetContinue() == "" {
			return out, nil
		}
	}
}

// List lists the InfraMachines with the label of an installation, of all kinds of the configuration.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	return a.list(ctx, func(k kind) ([]unstructured.Unstructured, error) {
		return a.labeled(ctx, k.GroupVersionKind, machinev1alpha1.TagInstallation, installation)
	})
}

// Find returns the InfraMachines of VirtualMachines with these external names.
func (a *account) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	return a.list(ctx, func(k kind) ([]unstructured.Unstructured, error) {
		var out []unstructured.Unstructured
		for _, name := range externalNames {
			found, err := a.labeled(ctx, k.GroupVersionKind, v1alpha1.LabelVirtualMachine, name)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		return out, nil
	})
}

func (a *account) list(ctx context.Context, of func(kind) ([]unstructured.Unstructured, error)) ([]inventory.VM, bool, error) {
	var out []inventory.VM
	for _, gk := range a.spec.InfraMachineKinds {
		k, err := a.kindOf(ctx, gk.GroupKind())
		if err != nil {
			return nil, false, err
		}
		found, err := of(k)
		if err != nil {
			return nil, false, err
		}
		for i := range found {
			if o := &found[i]; o.GetLabels()[labelCluster] == a.spec.ClusterName && o.GetLabels()[v1alpha1.LabelVirtualMachine] != "" {
				out = append(out, vmOf(k.contract, o))
			}
		}
	}
	return out, true, nil
}

// vmOf returns an InfraMachine as an inventory lists it.
func vmOf(c contract, o *unstructured.Unstructured) inventory.VM {
	r := read(c, o)
	vm := inventory.VM{ExternalName: o.GetLabels()[v1alpha1.LabelVirtualMachine], Name: o.GetName(), Tags: map[string]string{}, CreatedAt: o.GetCreationTimestamp().Time, State: inventory.StatePending}
	for k, v := range o.GetAnnotations() {
		if strings.HasPrefix(k, "drover-") {
			vm.Tags[k] = v
		}
	}
	switch {
	case r.failed != "":
		vm.State, vm.StateText = inventory.StateFailed, r.failed
	case r.provisioned && r.providerID != "":
		vm.State, vm.ProviderID = inventory.StateRunning, r.providerID
	default:
		vm.StateText = r.waitsFor()
	}
	return vm
}
