package move

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// AnnotationRole is Crossplane's annotation for the name of a composed resource in its composite.
const AnnotationRole = "crossplane.io/composition-resource-name"

// Objects of a namespace that are moved, in the order of their creation.
type Objects struct {
	Resources   []*unstructured.Unstructured // VMs and companions
	Machines    []*unstructured.Unstructured
	Sets        []*unstructured.Unstructured
	Deployments []*unstructured.Unstructured
	Pools       []*unstructured.Unstructured
}

// All returns all of them.
func (o Objects) All() []*unstructured.Unstructured {
	return slices.Concat(o.levels()...)
}

// levels of the objects: each is owned by the next one.
func (o Objects) levels() [][]*unstructured.Unstructured {
	return [][]*unstructured.Unstructured{o.Resources, o.Machines, o.Sets, o.Deployments, o.Pools}
}

// Read reads the objects of a namespace.
func Read(ctx context.Context, c client.Reader, namespace string) (Objects, error) {
	o, err := readFleet(ctx, c, namespace)
	if err != nil {
		return o, err
	}
	kinds, err := o.kinds()
	if err != nil {
		return o, err
	}
	return o, o.readResources(ctx, c, namespace, kinds)
}

// readFleet reads all objects but the VMs and their companions.
func readFleet(ctx context.Context, c client.Reader, namespace string) (o Objects, err error) {
	for kind, into := range map[schema.GroupVersionKind]*[]*unstructured.Unstructured{
		machinev1alpha1.MachineGroupVersionKind:           &o.Machines,
		machinev1alpha1.MachineSetGroupVersionKind:        &o.Sets,
		machinev1alpha1.MachineDeploymentGroupVersionKind: &o.Deployments,
		machinev1alpha1.NodePoolGroupVersionKind:          &o.Pools,
	} {
		if *into, err = list(ctx, c, kind, namespace); err != nil {
			return o, err
		}
	}
	return o, nil
}

// readResources reads the VMs and companions of these kinds.
func (o *Objects) readResources(ctx context.Context, c client.Reader, namespace string, kinds []schema.GroupVersionKind) error {
	for _, kind := range kinds {
		found, err := list(ctx, c, kind, namespace)
		if err != nil {
			return err
		}
		o.Resources = append(o.Resources, slices.DeleteFunc(found, func(r *unstructured.Unstructured) bool { return !isInfrastructure(r) })...)
	}
	return nil
}

// isInfrastructure reports whether a resource is the VM of a Machine, or a companion of it.
func isInfrastructure(r *unstructured.Unstructured) bool {
	role := r.GetAnnotations()[AnnotationRole]
	return r.GetLabels()[machinev1alpha1.LabelMachine] != "" && machinev1alpha1.IsInfrastructure(role)
}

// kinds returns the kinds of the VMs and companions that exist, and of those that Machines refer to.
func (o Objects) kinds() ([]schema.GroupVersionKind, error) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, r := range o.Resources {
		kinds[r.GroupVersionKind()] = true
	}
	for _, u := range o.Machines {
		m, err := machineOf(u)
		if err != nil {
			return nil, err
		}
		for _, ref := range m.Status.ResourceRefs {
			if machinev1alpha1.IsInfrastructure(ref.Role) {
				kinds[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }), nil
}

func list(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := c.List(ctx, l, client.InNamespace(namespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot list %s of the namespace %s: %w", kind.Kind, namespace, err)
	}
	out := make([]*unstructured.Unstructured, 0, len(l.Items))
	for i := range l.Items {
		out = append(out, &l.Items[i])
	}
	return out, nil
}

// copyOf returns a copy of an object for another control cluster: without an owner, and without the fields that
// the API server and the controllers of this one wrote.
func copyOf(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	out.SetLabels(o.GetLabels())
	a := maps.Clone(o.GetAnnotations())
	maps.DeleteFunc(a, func(key, _ string) bool {
		return key == "kubectl.kubernetes.io/last-applied-configuration" || key == machinev1alpha1.AnnotationAppliedHash || key == machinev1alpha1.AnnotationReleased
	})
	out.SetAnnotations(a)
	if spec, ok := o.Object["spec"]; ok {
		out.Object["spec"] = spec
	}
	// References to resources belong to the cluster that they were written in. The revision of a Machine is chosen
	// by its user.
	unstructured.RemoveNestedField(out.Object, "spec", "crossplane", "resourceRefs")
	if o.GetKind() != machinev1alpha1.MachineGroupVersionKind.Kind {
		unstructured.RemoveNestedField(out.Object, "spec", "crossplane", "compositionRevisionRef")
	}
	if isInfrastructure(o) {
		_ = unstructured.SetNestedStringSlice(out.Object, []string{"Observe", "Delete"}, "spec", "managementPolicies")
	}
	return out
}

func describe(o client.Object) string {
	return fmt.Sprintf("%s %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
}
