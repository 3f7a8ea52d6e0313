package function

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/orphans"
)

// readInventory reads the composed inventory.
func readInventory(req *fnv1.RunFunctionRequest) (orphans.Inventory, error) {
	o, ok := step.Observed(req)[machinev1alpha1.ResourceInventory]
	if !ok {
		return orphans.Inventory{Pending: true}, nil
	}
	i, err := step.As[struct {
		Status struct {
			AtProvider inventoryv1alpha1.InventoryObservation `json:"atProvider"`
		} `json:"status"`
	}](o)
	if err != nil {
		return orphans.Inventory{}, err
	}
	out := orphans.Inventory{Count: i.Status.AtProvider.UnclaimedCount, Claimed: i.Status.AtProvider.ClaimedCount}
	for _, u := range i.Status.AtProvider.Unclaimed {
		vm := orphans.Unclaimed{
			VM: orphans.VM{
				ExternalName: u.ExternalName, ProviderID: u.ProviderID, Installation: u.Installation,
				Cluster: u.Cluster, Owner: ownerOf(u.Namespace, u.Machine, u.MachineUID, u.Name),
			},
			FirstSeen: u.FirstSeen.Time,
		}
		if u.ConfirmedAt != nil {
			vm.ConfirmedAt = &u.ConfirmedAt.Time
		}
		out.Unclaimed = append(out.Unclaimed, vm)
	}
	for _, r := range i.Status.AtProvider.Resources {
		if r.ConfirmedAt != nil && len(out.Unused) < maxUnused {
			out.Unused = append(out.Unused, orphans.Unused{UnusedResource: machinev1alpha1.UnusedResource{
				Type: r.Type, ID: r.ID, Namespace: r.Namespace, Machine: r.Machine,
			}})
		}
	}
	switch synced, current := syncedAt(o); {
	case o.GetDeletionTimestamp() != nil:
		out.Problem = fmt.Sprintf("%s %q is being deleted", o.GetKind(), o.GetName())
	case synced.Status == corev1.ConditionFalse:
		out.Problem = fmt.Sprintf("%s %q: %s", o.GetKind(), o.GetName(), synced.Message)
	case synced.Status != corev1.ConditionTrue || !current:
		out.Pending = true
	}
	return out, nil
}

// ownerOf returns the Owner that the tags and the name of a VM identify. It is empty if they identify
// no Machine that could exist.
func ownerOf(namespace, machine, uid, vmName string) orphans.Owner {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return orphans.Owner{}
	}
	o := orphans.Owner{Namespace: namespace}
	if len(validation.IsDNS1123Subdomain(vmName)) == 0 {
		o.VMName = vmName
	}
	if machine == "" && uid == "" && o.VMName != "" {
		return o
	}
	if uid == "" || len(validation.IsDNS1123Subdomain(machine)) > 0 {
		return orphans.Owner{}
	}
	o.Machine, o.UID = machine, types.UID(uid)
	return o
}

// readAdopted reads a VM resource of the collector. It returns false for one without a VM.
func readAdopted(c plan.Child) (orphans.Adopted, bool) {
	a := c.GetAnnotations()
	out := orphans.Adopted{
		VM: orphans.VM{
			ExternalName: meta.GetExternalName(c),
			ProviderID:   a[machinev1alpha1.AnnotationOrphanProviderID],
			Installation: a[machinev1alpha1.AnnotationOrphanInstallation],
			Cluster:      a[machinev1alpha1.AnnotationOrphanCluster],
			Owner:        ownerOf(a[machinev1alpha1.AnnotationOrphanNamespace], a[machinev1alpha1.AnnotationOrphanMachine], a[machinev1alpha1.AnnotationOrphanMachineUID], a[machinev1alpha1.AnnotationOrphanVMName]),
		},
		Observed:    c.Observed,
		Terminating: c.Terminating,
	}
	if out.ExternalName == "" {
		return out, false // The resource has no VM that it could delete.
	}
	policies, _, _ := unstructured.NestedStringSlice(c.Unstructured.Object, "spec", "managementPolicies")
	out.MayDelete = slices.Contains(policies, "Delete") || slices.Contains(policies, "*")
	out.Seen, out.Missing, out.Trouble = look(c.Object)
	return out, true
}

// readObserved reads the observed version of a VM resource if the required version has no VM: the
// resource must not be deleted before its VM was judged.
func readObserved(c plan.Child, observed map[string]plan.Object) (orphans.Adopted, bool) {
	for _, o := range observed {
		if o.GetName() == c.GetName() && o.GetKind() == c.GetKind() {
			c.Object = o
			return readAdopted(c)
		}
	}
	return orphans.Adopted{}, false
}

// maxUnused is the maximum number of unused resources other than VMs: for each, its Machine is looked
// up.
const maxUnused = 20

// place returns the parameters that select the VMs of a collector's inventory, and the paths of the
// fields that have them.
func place(in *fn.Orphans, c *machinev1alpha1.OrphanCollector) (parameters, paths map[string]any, err error) {
	parameters, paths = map[string]any{}, map[string]any{}
	forProvider, err := forProviderOf(c)
	if err != nil {
		return nil, nil, err
	}
	vm := fieldpath.Pave(map[string]any{"spec": map[string]any{"forProvider": forProvider}})
	for _, f := range []struct{ name, path string }{{"region", in.VirtualMachine.RegionPath}, {"namespace", in.VirtualMachine.NamespacePath}} {
		if f.path == "" {
			continue
		}
		value, err := vm.GetString(f.path)
		if err != nil || value == "" {
			return nil, nil, fmt.Errorf("%s: required, as text: the inventory lists the VMs of one %s", f.path, f.name)
		}
		parameters[f.name], paths[f.name+"Path"] = value, f.path
	}
	return parameters, paths, nil
}

func forProviderOf(c *machinev1alpha1.OrphanCollector) (map[string]any, error) {
	forProvider := map[string]any{}
	if raw := c.Spec.ForProvider; raw != nil && len(raw.Raw) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &forProvider); err != nil {
			return nil, fmt.Errorf("spec.forProvider: must be an object: %w", err)
		}
	}
	return forProvider, nil
}

// newInventory returns nil while the ID of the installation is unknown.
func newInventory(in *fn.Orphans, o orphans.Observed, ignored []string) (*unstructured.Unstructured, error) {
	c := o.Collector
	if o.InstallationProblem != nil {
		return nil, nil
	}
	parameters, paths, err := place(in, c)
	if err != nil {
		return nil, err
	}
	kind := map[string]any{"apiVersion": in.VirtualMachine.APIVersion, "kind": in.VirtualMachine.Kind}
	maps.Copy(kind, paths)
	installations := []any{o.Installation}
	for _, former := range c.Spec.FormerInstallations {
		if former != o.Installation {
			installations = append(installations, former)
		}
	}
	asked := map[string]any{
		"installations":  installations,
		"virtualMachine": kind,
		"interval":       duration(c.Spec.Interval),
		"confirmAfter":   duration(c.Spec.GracePeriod),
	}
	maps.Copy(asked, parameters)
	if len(ignored) > 0 {
		names := make([]any, 0, len(ignored))
		for _, name := range ignored {
			names = append(names, name)
		}
		asked["ignore"] = names
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"managementPolicies": []any{"Observe"},
		"providerConfigRef":  configOf(c),
		"forProvider":        asked,
	}}}
	u.SetAPIVersion(in.Inventory.APIVersion)
	u.SetKind(in.Inventory.Kind)
	u.SetNamespace(namespaceOf(c))
	u.SetName(names.Inventory(c.Name, c.UID))
	u.SetLabels(labels(c))
	return u, nil
}

// newVM returns a VM resource for an existing VM.
func newVM(in *fn.Orphans, c *machinev1alpha1.OrphanCollector, r orphans.Resource) (*unstructured.Unstructured, error) {
	forProvider, err := forProviderOf(c)
	if err != nil {
		return nil, err
	}
	policies := []any{"Observe"}
	if r.MayDelete {
		policies = append(policies, "Delete")
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"managementPolicies": policies,
		"providerConfigRef":  configOf(c),
		"forProvider":        forProvider,
	}}}
	u.SetAPIVersion(in.VirtualMachine.APIVersion)
	u.SetKind(in.VirtualMachine.Kind)
	u.SetNamespace(namespaceOf(c))
	u.SetName(names.Orphan(c.Name, c.UID, r.ExternalName))
	u.SetLabels(labels(c))
	annotations := map[string]string{
		meta.AnnotationKeyExternalName:             r.ExternalName,
		machinev1alpha1.AnnotationOrphanNamespace:  r.Owner.Namespace,
		machinev1alpha1.AnnotationOrphanMachine:    r.Owner.Machine,
		machinev1alpha1.AnnotationOrphanMachineUID: string(r.Owner.UID),
	}
	if r.Owner.VMName != "" {
		annotations[machinev1alpha1.AnnotationOrphanVMName] = r.Owner.VMName
	}
	if r.Cluster != "" {
		annotations[machinev1alpha1.AnnotationOrphanCluster] = r.Cluster
	}
	if r.Installation != "" {
		annotations[machinev1alpha1.AnnotationOrphanInstallation] = r.Installation
	}
	if r.ProviderID != "" {
		annotations[machinev1alpha1.AnnotationOrphanProviderID] = r.ProviderID
	}
	u.SetAnnotations(annotations)
	if err := setFields(u, in.VirtualMachine.Fields, r); err != nil {
		return nil, err
	}
	return u, nil
}

// asObserved returns a composed resource with its present spec.
func asObserved(o plan.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(o.GroupVersionKind())
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	if spec, ok := o.Object["spec"].(map[string]any); ok {
		u.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	return u
}

// labels of the resources that a collector composes. The name of its inventory is short enough for a
// label value.
func labels(c *machinev1alpha1.OrphanCollector) map[string]string {
	return map[string]string{machinev1alpha1.LabelOrphanCollector: names.Inventory(c.Name, c.UID)}
}

// namespaceOf returns the namespace of the resources that a collector composes. The schema has the
// same default.
func namespaceOf(c *machinev1alpha1.OrphanCollector) string {
	return cmp.Or(c.Spec.Namespace, machinev1alpha1.NamespaceOfInstallations)
}

func configOf(c *machinev1alpha1.OrphanCollector) map[string]any {
	return map[string]any{"kind": c.Spec.ProviderConfigRef.Kind, "name": c.Spec.ProviderConfigRef.Name}
}

func duration(d metav1.Duration) string { return d.Duration.Round(time.Millisecond).String() }
