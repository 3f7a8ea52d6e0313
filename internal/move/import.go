package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/stored"
)

// An Import turns orphans into Machines of a MachineSet again.
type Import struct {
	Client    client.Client
	Namespace string
	// Set is the name of the MachineSet.
	Set string
	// VMs are the external names of the orphans, as an OrphanCollector reports them.
	VMs []string
	// Log is called with each action.
	Log func(format string, args ...any)
}

// Run runs the import. It changes nothing if one of the VMs is no orphan of the namespace.
func (i *Import) Run(ctx context.Context) error {
	set, class, err := i.setAndClass(ctx)
	if err != nil {
		return err
	}
	kind, err := VMKind(ctx, i.Client, class.Spec.Provider)
	if err != nil {
		return err
	}
	orphans, err := i.orphans(ctx, kind)
	if err != nil {
		return err
	}
	var errs []error
	for _, vm := range i.VMs {
		o, ok := orphans[vm]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("VM %q: no inventory of %s reports it as unclaimed: wait for an OrphanCollector to find it", vm, kind.GroupKind()))
		case o.Namespace != i.Namespace:
			errs = append(errs, fmt.Errorf("VM %q was made for a Machine of the namespace %q: must be %q", vm, o.Namespace, i.Namespace))
		case o.Cluster != set.Spec.Template.Spec.ClusterRef.Name:
			errs = append(errs, fmt.Errorf("VM %q was made for the cluster %q: must be %q, which spec.template.spec.clusterRef of MachineSet %s names", vm, o.Cluster, set.Spec.Template.Spec.ClusterRef.Name, i.Set))
		case o.Machine == "" || o.Installation == "" || o.MachineUID == "" || o.ProviderID == "":
			errs = append(errs, fmt.Errorf("VM %q lacks the tags of Drover, or a providerID: import it by hand", vm))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := i.hasRoom(ctx, set, orphans); err != nil {
		return err
	}
	for _, vm := range i.VMs {
		if err := i.one(ctx, orphans[vm], set, class, kind); err != nil {
			return err
		}
	}
	return nil
}

// hasRoom reports whether the set keeps all Machines that it will have: it deletes those above its replicas.
func (i *Import) hasRoom(ctx context.Context, set *machinev1alpha1.MachineSet, orphans map[string]inventoryv1alpha1.UnclaimedVirtualMachine) error {
	machines, err := list(ctx, i.Client, machinev1alpha1.MachineGroupVersionKind, i.Namespace)
	if err != nil {
		return err
	}
	n := len(i.VMs)
	for _, u := range machines {
		has, _, _ := unstructured.NestedString(u.Object, "spec", "providerID")
		if slices.ContainsFunc(i.VMs, func(vm string) bool { return orphans[vm].ProviderID == has }) {
			n-- // It was imported before.
		}
		if u.GetDeletionTimestamp() == nil && set.Spec.Selector.Matches(u.GetLabels()) {
			n++
		}
	}
	if n <= int(set.Spec.Replicas) {
		return nil
	}
	of := "machineset/" + i.Set
	if by := metav1.GetControllerOf(set); by != nil {
		of = "machinedeployment/" + by.Name
	}
	return fmt.Errorf("MachineSet %s would have %d Machines, and keeps %d: it would delete the others. Pause it, raise the replicas, run this command again, and then let it go on:\n  kubectl -n %s annotate machineset/%s %s=true\n  kubectl -n %s scale %s --replicas=...\n  kubectl -n %s annotate machineset/%s %s-",
		i.Set, n, set.Spec.Replicas, i.Namespace, i.Set, annotationPaused, i.Namespace, of, i.Namespace, i.Set, annotationPaused)
}

func (i *Import) setAndClass(ctx context.Context) (*machinev1alpha1.MachineSet, *machinev1alpha1.MachineClass, error) {
	set, class := &machinev1alpha1.MachineSet{}, &machinev1alpha1.MachineClass{}
	if err := i.getWhole(ctx, machinev1alpha1.MachineSetGroupVersionKind, i.Set, set); err != nil {
		return nil, nil, err
	}
	ref := set.Spec.Template.Spec.ClassRef
	if !ref.IsCluster() {
		return set, class, i.getWhole(ctx, machinev1alpha1.MachineClassGroupVersionKind, ref.Name, class)
	}
	cluster := &machinev1alpha1.ClusterMachineClass{}
	if err := i.getWhole(ctx, machinev1alpha1.ClusterMachineClassGroupVersionKind, ref.Name, cluster); err != nil {
		return nil, nil, err
	}
	m := &machinev1alpha1.Machine{Spec: set.Spec.Template.Spec}
	m.Namespace = i.Namespace
	if problem := plan.Admit(cluster, m, fmt.Sprintf("MachineSet %s: spec.template.spec.classRef.name", i.Set)); problem != nil {
		return nil, nil, errors.New(problem.Message)
	}
	return set, cluster.AsMachineClass(), nil
}

// getWhole reads an object whose fields are copied. It fails if fields were dropped because they do not decode: the copy would
// lack them.
func (i *Import) getWhole(ctx context.Context, kind schema.GroupVersionKind, name string, into any) error {
	if err := i.get(ctx, kind, name, into); err != nil {
		return err
	}
	faults := stored.Faults(into)
	switch {
	case faults == "":
		return nil
	case kind == machinev1alpha1.MachineSetGroupVersionKind:
		return fmt.Errorf("MachineSet %s/%s cannot be decoded: %s: correct these fields first", i.Namespace, name, faults)
	}
	return fmt.Errorf("%s %s cannot be decoded: %s: create a class without these values, and name it in the template of MachineSet %s: a class is immutable", kind.Kind, name, faults, i.Set)
}

func (i *Import) get(ctx context.Context, kind schema.GroupVersionKind, name string, into any) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	key := client.ObjectKey{Namespace: i.Namespace, Name: name}
	if kind == machinev1alpha1.ClusterMachineClassGroupVersionKind {
		key.Namespace = ""
	}
	if err := i.Client.Get(ctx, key, u); err != nil {
		return fmt.Errorf("cannot read %s %s: %w", kind.Kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// errNoComposition is the error of a provider without a Composition.
type errNoComposition struct{ provider string }

func (e errNoComposition) Error() string {
	return fmt.Sprintf("there is no Composition of Machines with the label %s: %s", machinev1alpha1.LabelProvider, e.provider)
}

// IsWithoutComposition reports whether an error of VMKind means that no Composition makes the VMs of the provider.
func IsWithoutComposition(err error) bool { return errors.As(err, new(errNoComposition)) }

// VMKind returns the kind of VM resource that the Composition of a provider creates.
func VMKind(ctx context.Context, c client.Client, provider string) (schema.GroupVersionKind, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionList"})
	if err := c.List(ctx, l, client.MatchingLabels{machinev1alpha1.LabelProvider: provider}); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("cannot list Compositions: %w", err)
	}
	for _, c := range l.Items {
		input := plan.InputOf(plan.Object{Unstructured: &c}, "Infrastructure")
		apiVersion, _, _ := unstructured.NestedString(input, "virtualMachine", "apiVersion")
		kind, _, _ := unstructured.NestedString(input, "virtualMachine", "kind")
		if kind != "" {
			return schema.FromAPIVersionAndKind(apiVersion, kind), nil
		}
	}
	return schema.GroupVersionKind{}, errNoComposition{provider}
}

// orphans returns the orphans that the inventories of a cloud report, by their external names.
func (i *Import) orphans(ctx context.Context, kind schema.GroupVersionKind) (map[string]inventoryv1alpha1.UnclaimedVirtualMachine, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(inventoryv1alpha1.Kind + "List"))
	if err := i.Client.List(ctx, l); err != nil {
		return nil, fmt.Errorf("cannot list the inventories of %s: has its cloud an OrphanCollector? %w", kind.GroupKind(), err)
	}
	out := map[string]inventoryv1alpha1.UnclaimedVirtualMachine{}
	for _, u := range l.Items {
		s := struct {
			Status struct {
				AtProvider inventoryv1alpha1.InventoryObservation `json:"atProvider"`
			} `json:"status"`
		}{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
			return nil, err
		}
		for _, vm := range s.Status.AtProvider.Unclaimed {
			out[vm.ExternalName] = vm
		}
	}
	return out, nil
}

// one turns an orphan into a VM resource, and then into a Machine.
func (i *Import) one(ctx context.Context, o inventoryv1alpha1.UnclaimedVirtualMachine, set *machinev1alpha1.MachineSet, class *machinev1alpha1.MachineClass, kind schema.GroupVersionKind) error {
	forProvider := map[string]any{}
	if raw := class.Spec.ForProvider; raw != nil && len(raw.Raw) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &forProvider); err != nil {
			return fmt.Errorf("%s: spec.forProvider: must be an object: %w", class.Reference(), err)
		}
	}
	node := names.OfMachine(o.Machine, types.UID(o.MachineUID))
	name, isTaken, err := i.nameOf(ctx, o, node)
	if err != nil || isTaken {
		return err
	}
	vm := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"managementPolicies": []any{"Observe", "Delete"},
		"providerConfigRef":  map[string]any{"kind": class.Spec.ProviderConfigRef.Kind, "name": class.Spec.ProviderConfigRef.Name},
		"forProvider":        forProvider,
	}}}
	vm.SetGroupVersionKind(kind)
	vm.SetNamespace(i.Namespace)
	vm.SetName(node)
	vm.SetLabels(map[string]string{machinev1alpha1.LabelMachine: name})
	vm.SetAnnotations(map[string]string{
		xpmeta.AnnotationKeyExternalName: o.ExternalName, AnnotationRole: machinev1alpha1.ResourceVM,
		machinev1alpha1.AnnotationMachineUID: o.MachineUID, machinev1alpha1.AnnotationNodeName: node, machinev1alpha1.AnnotationInstallation: o.Installation,
	})
	m := &machinev1alpha1.Machine{Spec: *set.Spec.Template.Spec.DeepCopy()}
	m.SetNamespace(i.Namespace)
	m.SetName(name)
	m.SetLabels(labels.Merge(machinev1alpha1.LabelsOf(set.Spec.Template.Metadata.Labels), machinev1alpha1.LabelsOf(set.Spec.Selector.MatchLabels)))
	m.SetAnnotations(maps.Clone(set.Spec.Template.Metadata.Annotations))
	m.Spec.ProviderID = &o.ProviderID
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return err
	}
	machine := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(machine.Object, "status")
	machine.SetGroupVersionKind(machinev1alpha1.MachineGroupVersionKind)
	for _, obj := range []*unstructured.Unstructured{vm, machine} {
		switch err := i.Client.Create(ctx, obj); {
		case kerrors.IsAlreadyExists(err):
			i.Log("%s exists already", describe(obj))
		case err != nil:
			return fmt.Errorf("cannot create %s: %w", describe(obj), err)
		default:
			i.Log("created %s", describe(obj))
		}
	}
	return nil
}

// nameOf returns the name for the Machine of an orphan: that of its former Machine, or, if another Machine has
// that name by now, that of its Node. It is taken if the orphan has a Machine already.
func (i *Import) nameOf(ctx context.Context, o inventoryv1alpha1.UnclaimedVirtualMachine, node string) (name string, isTaken bool, err error) {
	for _, name := range []string{o.Machine, node} {
		m := &machinev1alpha1.Machine{}
		err := i.get(ctx, machinev1alpha1.MachineGroupVersionKind, name, m)
		switch {
		case kerrors.IsNotFound(err):
			return name, false, nil
		case err != nil:
			return "", false, err
		case m.Spec.ProviderID != nil && *m.Spec.ProviderID == o.ProviderID:
			i.Log("Machine %s has the VM %s already", name, o.ExternalName)
			return "", true, nil
		}
	}
	return "", false, fmt.Errorf("VM %q: both names of its Machine, %s and %s, are taken", o.ExternalName, o.Machine, node)
}
