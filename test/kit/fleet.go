package kit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/patience"
)

// Versions of the kubelet that tests roll between. They need not exist: the local cloud does not
// run the kubelet.
const (
	OldVersion = "v1.35.3"
	NewVersion = "v1.35.4"
)

// localProvider is the provider of the local cloud.
const localProvider = "local"

// A Fleet is a namespace with a MachineClass, for one test.
type Fleet struct {
	*Plane
	Namespace string
	// Provider selects the Composition of the fleet's XRs if their kind has several Compositions.
	Provider string
	// Cluster that the Machines join. config refers to its configuration.
	Cluster *Cluster
	config  machinev1alpha1.ClusterReference
}

// NewFleet creates a namespace with a class named small. When the test ends, all objects in the
// namespace are deleted. If that takes too long, the test fails: no object may leak.
func (p *Plane) NewFleet(t testing.TB) Fleet {
	t.Helper()
	f, err := p.MakeFleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// MakeFleet is NewFleet for code that is not a test.
func (p *Plane) MakeFleet(ctx context.Context) (Fleet, error) {
	return p.MakeFleetIn(ctx, NewNamespaceName())
}

// NewNamespaceName returns an unused name for a namespace.
func NewNamespaceName() string { return "e2e-" + rand.String(8) }

// MakeFleetIn is MakeFleet in a namespace that does not exist yet.
func (p *Plane) MakeFleetIn(ctx context.Context, namespace string) (Fleet, error) {
	if err := p.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return Fleet{}, err
	}
	f := Fleet{Plane: p, Namespace: namespace, Provider: localProvider, Cluster: p.Control}
	return f, p.Client.Create(ctx, f.Class("small", localProvider, `{"image":"ubuntu-24.04","size":"small"}`))
}

// Create an object, or fail the test.
func (f Fleet) Create(t testing.TB, o client.Object) {
	t.Helper()
	if err := f.Make(t.Context(), o); err != nil {
		t.Fatalf("%s: %v", o.GetName(), err)
	}
}

// Make is Create for code that is not a test.
func (f Fleet) Make(ctx context.Context, o client.Object) (err error) {
	create := o
	switch o.(type) {
	case *machinev1alpha1.Machine:
		create, err = f.selecting(o, machinev1alpha1.MachineGroupVersionKind)
	case *machinev1alpha1.OrphanCollector:
		create, err = f.selecting(o, machinev1alpha1.OrphanCollectorGroupVersionKind)
	}
	if err != nil {
		return err
	}
	return f.Client.Create(ctx, create)
}

// Age moves the time at which inventories of a namespace first saw each unclaimed VM into the
// past, until the context ends. Otherwise tests would wait too long: an OrphanCollector that
// deletes must have a long grace period.
func (p *Plane) Age(ctx context.Context, group, namespace string, by time.Duration) {
	aged := map[string]bool{}
	for ctx.Err() == nil {
		p.ageOnce(ctx, schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: inventoryv1alpha1.Kind + "List"}, namespace, by, aged)
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// ageOnce skips objects that it cannot change now. The next call retries them.
func (p *Plane) ageOnce(ctx context.Context, kind schema.GroupVersionKind, namespace string, by time.Duration, aged map[string]bool) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind)
	if err := p.Client.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return
	}
	for i := range l.Items {
		var changed []string
		for list, id := range map[string]string{"unclaimed": "externalName", "resources": "id"} {
			changed = append(changed, ageList(&l.Items[i], list, id, by, aged)...)
		}
		// The update fails if the inventory has changed since it was read.
		if len(changed) > 0 && p.Client.Status().Update(ctx, &l.Items[i]) == nil {
			for _, key := range changed {
				aged[key] = true
			}
		}
	}
}

// ageList moves each firstSeen time in a list of an inventory once. It returns the keys of the entries that it
// changed, before and after.
func ageList(inventory *unstructured.Unstructured, list, id string, by time.Duration, aged map[string]bool) []string {
	entries, _, _ := unstructured.NestedSlice(inventory.Object, "status", "atProvider", list)
	var changed []string
	for _, e := range entries {
		entry, ok := e.(map[string]any)
		if !ok {
			continue
		}
		first, err := time.Parse(time.RFC3339, fmt.Sprint(entry["firstSeen"]))
		key := fmt.Sprint(inventory.GetUID(), entry[id], entry["firstSeen"])
		if err != nil || aged[key] {
			continue
		}
		earlier := first.Add(-by).Format(time.RFC3339)
		entry["firstSeen"] = earlier
		changed = append(changed, key, fmt.Sprint(inventory.GetUID(), entry[id], earlier))
	}
	if len(changed) == 0 || unstructured.SetNestedSlice(inventory.Object, entries, "status", "atProvider", list) != nil {
		return nil
	}
	return changed
}

// selecting returns an XR that selects its Composition, as in examples/local: each cloud has a
// Composition, and Crossplane would choose any that fits.
func (f Fleet) selecting(xr client.Object, kind schema.GroupVersionKind) (client.Object, error) {
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(xr)
	if err != nil {
		return nil, err
	}
	delete(o, "status")
	u := &unstructured.Unstructured{Object: o}
	u.SetGroupVersionKind(kind)
	return u, unstructured.SetNestedField(o, f.Provider, "spec", "crossplane", "compositionSelector", "matchLabels", machinev1alpha1.LabelProvider)
}

// Class returns a MachineClass.
func (f Fleet) Class(name, provider, forProvider string) *machinev1alpha1.MachineClass {
	c := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	c.Spec.Provider = provider
	c.Spec.ForProvider = rawJSON(forProvider)
	return c
}

// ClusterClass returns a ClusterMachineClass like the class small, which the namespaces may use.
func (f Fleet) ClusterClass(name string, namespaces ...string) *machinev1alpha1.ClusterMachineClass {
	c := &machinev1alpha1.ClusterMachineClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.MachineClassSpec = f.Class(name, localProvider, `{"image":"ubuntu-24.04","size":"small"}`).Spec
	for _, n := range namespaces {
		c.Spec.AllowedNamespaces = append(c.Spec.AllowedNamespaces, clusterv1alpha1.NamespacePattern(n))
	}
	return c
}

// MachineSpec returns the spec of a Machine of class small.
func (f Fleet) MachineSpec(version string) machinev1alpha1.MachineSpec {
	return machinev1alpha1.MachineSpec{
		ClassRef:   machinev1alpha1.ClassReference{Name: "small"},
		Version:    version,
		ClusterRef: f.config,
	}
}

// Deployment returns a MachineDeployment of class small.
func (f Fleet) Deployment(name string, replicas int32, maxSurge, maxUnavailable int) *machinev1alpha1.MachineDeployment {
	labels := map[string]machinev1alpha1.LabelValue{"pool": machinev1alpha1.LabelValue(name)}
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	md.Spec.Replicas = replicas
	md.Spec.Selector.MatchLabels = labels
	md.Spec.Template.Metadata.Labels = labels
	md.Spec.Template.Spec = f.MachineSpec(OldVersion)
	md.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt(maxSurge))
	md.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt(maxUnavailable))
	return md
}

// Patch applies a JSON merge patch, or fails the test.
func (f Fleet) Patch(t testing.TB, o client.Object, patch string) {
	t.Helper()
	if err := f.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// CreateIn creates an object in a cluster, or fails the test. It retries, because the namespace
// may still lack objects such as its service account.
func (f Fleet) CreateIn(t testing.TB, c *Cluster, o client.Object) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := c.Client.Create(ctx, o); err != nil {
			return fmt.Sprintf("%s: %v", o.GetName(), err)
		}
		return ""
	})
}

// PatchIn applies a JSON merge patch in a cluster, or fails the test.
func (f Fleet) PatchIn(t testing.TB, c *Cluster, o client.Object, patch string) {
	t.Helper()
	if err := c.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// PatchStatusIn applies a JSON merge patch to a status in a cluster, or fails the test.
func (f Fleet) PatchStatusIn(t testing.TB, c *Cluster, o client.Object, patch string) {
	t.Helper()
	if err := c.Client.Status().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// Machines of the fleet, by name.
func (f Fleet) Machines(ctx context.Context) ([]machinev1alpha1.Machine, error) {
	l := &machinev1alpha1.MachineList{}
	if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
		return nil, err
	}
	slices.SortFunc(l.Items, func(a, b machinev1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return l.Items, nil
}

// Nodes of the fleet in the target cluster.
func (f Fleet) Nodes(ctx context.Context) ([]corev1.Node, error) {
	l := &corev1.NodeList{}
	if err := f.Cluster.Client.List(ctx, l); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(l.Items, func(n corev1.Node) bool {
		return n.Annotations[machinev1alpha1.AnnotationNamespace] != f.Namespace
	}), nil
}

// VMs of the fleet in the local cloud.
func (f Fleet) VMs(ctx context.Context) ([]localcloud.VM, error) {
	return f.Cloud.ListVMs(ctx, localcloud.ListVMsOptions{Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}})
}

// AwaitDeployment waits until a MachineDeployment is settled: it has as many Machines, Nodes and
// VMs as replicas, all of the template's version and Ready.
func (f Fleet) AwaitDeployment(t testing.TB, name string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string { return f.Unsettled(ctx, name) }, f.Describe)
}

// Unsettled returns the state that AwaitDeployment still waits for, "" if the deployment is
// settled.
func (f Fleet) Unsettled(ctx context.Context, name string) string {
	md := &machinev1alpha1.MachineDeployment{}
	if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, md); err != nil {
		return err.Error()
	}
	want, s := md.Spec.Replicas, md.Status
	if s.ObservedGeneration != md.Generation || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want || s.TerminatingReplicas != 0 {
		return fmt.Sprintf("MachineDeployment %s wants %d and has status %+v", name, want, s)
	}
	machines, err := f.Machines(ctx)
	if err != nil {
		return err.Error()
	}
	n := int32(0)
	for _, m := range machines {
		if m.Labels[machinev1alpha1.LabelDeployment] != name {
			continue
		}
		n++
		if m.Status.Phase != machinev1alpha1.MachineRunning || m.Spec.Version != md.Spec.Template.Spec.Version {
			return fmt.Sprintf("Machine %s is %s with version %s", m.Name, m.Status.Phase, m.Spec.Version)
		}
	}
	if n != want {
		return fmt.Sprintf("MachineDeployment %s wants %d and has %d Machines", name, want, n)
	}
	return ""
}

// AwaitNothing waits until the fleet has no object in any cluster and no VM, except its class.
func (f Fleet) AwaitNothing(t testing.TB) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		left := f.Left(ctx)
		if len(left) == 0 {
			return ""
		}
		return "left over: " + strings.Join(left, ", ")
	}, f.Describe)
}

// Left returns the objects and VMs that AwaitNothing still waits for.
func (f Fleet) Left(ctx context.Context) []string {
	var left []string
	for _, l := range []client.ObjectList{
		&machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{},
		&corev1.SecretList{},
	} {
		if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
			return []string{err.Error()}
		}
		left = append(left, slices.DeleteFunc(namesIn(l), f.isKubeconfig)...)
	}
	nodes, err := f.Nodes(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for _, n := range nodes {
		left = append(left, "Node "+n.Name)
	}
	vms, err := f.VMs(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for _, vm := range vms {
		left = append(left, "VM "+vm.ID)
	}
	tokens, err := f.BootstrapTokens(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	return append(left, tokens...)
}

// BootstrapTokens of this fleet that the target cluster still has.
func (f Fleet) BootstrapTokens(ctx context.Context) ([]string, error) {
	l := &corev1.SecretList{}
	if err := f.Cluster.Client.List(ctx, l, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return nil, err
	}
	var out []string
	for _, s := range l.Items {
		if s.Type == "bootstrap.kubernetes.io/token" && strings.Contains(string(s.Data["description"]), f.Namespace+"/") {
			out = append(out, "Secret "+s.Name)
		}
	}
	return out, nil
}

// DeleteDeployment deletes a MachineDeployment and waits until the fleet is empty.
func (f Fleet) DeleteDeployment(t testing.TB, name string) {
	t.Helper()
	md := f.Deployment(name, 0, 1, 0)
	if err := f.Client.Delete(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	f.AwaitNothing(t)
}
