package drover

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A kind of objects that are resources of the provider.
type kind struct {
	// name of the resource after drover_.
	name   string
	gvk    schema.GroupVersionKind
	plural string
	// isImmutable means that a change of the spec replaces the object.
	isImmutable bool
	// isSettled means that an apply need not wait: nothing is created for such an object by itself.
	isSettled   bool
	description string
}

var kinds = []kind{
	{
		name: "machine_class", gvk: machinev1alpha1.MachineClassGroupVersionKind, plural: "machineclasses", isImmutable: true, isSettled: true,
		description: "A MachineClass: what VM a Machine gets. It cannot change, so that another `spec` replaces it. Give the new one another `name`, and set " +
			"`lifecycle { create_before_destroy = true }`: the pools that name it roll to the new one before the old one goes.",
	},
	{
		name: "machine_deployment", gvk: machinev1alpha1.MachineDeploymentGroupVersionKind, plural: "machinedeployments",
		description: "A MachineDeployment: a number of Machines of one template. A change of the template rolls them.",
	},
	{
		name: "node_pool", gvk: machinev1alpha1.NodePoolGroupVersionKind, plural: "nodepools",
		description: "A NodePool: Nodes of a class that the platform team offers, spread over failure domains.",
	},
}

func (k kind) gvr() schema.GroupVersionResource {
	return k.gvk.GroupVersion().WithResource(k.plural)
}

// of returns a client for the objects of the kind in a namespace.
func (k kind) of(c dynamic.Interface, namespace string) dynamic.ResourceInterface {
	return c.Resource(k.gvr()).Namespace(namespace)
}

// object returns an object of the kind, without a spec.
func (k kind) object(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func (k kind) title(namespace, name string) string { return k.gvk.Kind + " " + namespace + "/" + name }
