package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// kindsKept is the time that the contract of a kind is kept. An upgrade of a provider changes it.
const kindsKept = time.Minute

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// An account is a cluster with providers of Cluster API, and a Cluster in it.
type account struct {
	kube client.Client
	spec v1alpha1.ProviderConfigSpec
	now  func() time.Time

	mu    sync.Mutex
	kinds map[schema.GroupKind]keptKind
}

type keptKind struct {
	kind
	at time.Time
}

var _ native.Account[*v1alpha1.VirtualMachine] = &account{}

// Place is the cluster, by the UID of its namespace kube-system, and the name of the Cluster.
func (a *account) Place(ctx context.Context) (string, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := a.kube.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", classify("cannot read namespace "+metav1.NamespaceSystem, err)
	}
	return "Cluster " + a.spec.ClusterName + " in the cluster " + string(ns.UID), nil
}

// kindOf returns the version and the contract of a kind of a provider.
func (a *account) kindOf(ctx context.Context, k schema.GroupKind) (kind, error) {
	found, err := a.installed(ctx, k)
	if err != nil {
		return kind{}, err
	}
	if found.core, err = a.core(ctx); err != nil {
		return kind{}, err
	}
	return found, nil
}

// core returns the version of Cluster API's own kinds: the newest one that the label of the CRD of Clusters has. Nothing converts
// objects here, so that all that read them must read the version that they are written in. Providers read the version of the
// release of Cluster API that the CRDs are of, whatever contract they fulfill.
func (a *account) core(ctx context.Context) (contract, error) {
	found, err := a.installed(ctx, schema.GroupKind{Group: coreGroup, Kind: "Cluster"})
	return found.contract, err
}

// installed returns what the CRD of a kind says of it.
func (a *account) installed(ctx context.Context, k schema.GroupKind) (kind, error) {
	a.mu.Lock()
	kept, ok := a.kinds[k]
	a.mu.Unlock()
	if ok && a.now().Sub(kept.at) < kindsKept {
		return kept.kind, nil
	}
	labels, err := a.crdLabels(ctx, k)
	if err != nil {
		return kind{}, err
	}
	found, err := kindOf(k, labels)
	if err != nil {
		return kind{}, refused(k.String(), err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds[k] = keptKind{kind: found, at: a.now()}
	return found, nil
}

// crdLabels returns the labels of the CRD of a kind.
func (a *account) crdLabels(ctx context.Context, k schema.GroupKind) (map[string]string, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(crdKind)
	if err := a.kube.Get(ctx, types.NamespacedName{Name: crdName(k)}, crd); err != nil {
		if kerrors.IsNotFound(err) {
			return nil, refused(k.String(), fmt.Errorf("the API server has no CRD %s: install its provider of Cluster API", crdName(k)))
		}
		return nil, classify("cannot read the CRD "+crdName(k), err)
	}
	return crd.GetLabels(), nil
}

// get returns an object, nil if it does not exist.
func (a *account) get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	o := newObject(gvk, namespace, name)
	switch err := a.kube.Get(ctx, client.ObjectKeyFromObject(o), o); {
	case kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, classify("cannot read "+gvk.Kind+" "+namespace+"/"+name, err)
	}
	return o, nil
}

// FindLost returns "": the external name is known before the creation.
func (a *account) FindLost(context.Context, *v1alpha1.VirtualMachine) (string, error) { return "", nil }

// infraMachine returns the InfraMachine of a VM, nil if it does not exist.
func (a *account) infraMachine(ctx context.Context, vm *v1alpha1.VirtualMachine) (kind, *unstructured.Unstructured, error) {
	name := meta.GetExternalName(vm)
	group, namespace, object := a.whereabouts(vm)
	if object == "" {
		return a.search(ctx, name)
	}
	k, err := a.kindOf(ctx, group)
	if err != nil {
		return kind{}, nil, err
	}
	o, err := a.get(ctx, k.GroupVersionKind, namespace, object)
	if err != nil || o == nil || o.GetLabels()[v1alpha1.LabelVirtualMachine] != name {
		return k, nil, err
	}
	return k, o, nil
}

// whereabouts returns the kind, the namespace and the name of the InfraMachine: by the status, or by the spec that it was
// created from. The name is "" if neither is known, as for a VirtualMachine that takes over the VM of another one.
func (a *account) whereabouts(vm *v1alpha1.VirtualMachine) (k schema.GroupKind, namespace, name string) {
	if at := vm.Status.AtProvider.InfraMachine; at != nil {
		return schema.FromAPIVersionAndKind(at.APIVersion, at.Kind).GroupKind(), at.Namespace, at.Name
	}
	p := vm.Spec.ForProvider
	if meta.GetExternalName(vm) != string(vm.GetUID()) || p.Name == nil || p.InfraMachine == nil || !slices.Contains(a.spec.InfraMachineKinds, p.InfraMachine.GroupKind) {
		return schema.GroupKind{}, "", ""
	}
	return p.InfraMachine.GroupKind.GroupKind(), vm.Namespace, *p.Name
}

// search returns the InfraMachine with an external name, in all namespaces and of all kinds of the configuration.
func (a *account) search(ctx context.Context, name string) (kind, *unstructured.Unstructured, error) {
	for _, gk := range a.spec.InfraMachineKinds {
		k, err := a.kindOf(ctx, gk.GroupKind())
		if err != nil {
			return kind{}, nil, err
		}
		found, err := a.labeled(ctx, k.GroupVersionKind, v1alpha1.LabelVirtualMachine, name)
		if err != nil {
			return kind{}, nil, err
		}
		if len(found) > 0 {
			return k, &found[0], nil
		}
	}
	return kind{}, nil, nil
}

// Get returns the state of the InfraMachine.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, _ time.Time) (native.VM, error) {
	k, o, err := a.infraMachine(ctx, vm)
	if err != nil {
		return native.VM{}, err
	}
	at := &vm.Status.AtProvider
	if o == nil {
		if at.InfraMachine != nil {
			at.InfraMachine.Conditions, at.InfraMachine.Paused, at.Error = nil, false, ""
		}
		if !meta.WasDeleted(vm) {
			return native.VM{}, nil
		}
		m, err := a.machine(ctx, vm)
		if m != nil {
			return native.VM{State: native.StateIncomplete, Text: "deleting its Machine"}, err
		}
		return native.VM{}, err
	}
	r := read(k.contract, o)
	apiVersion, kindName := k.ToAPIVersionAndKind()
	at.InfraMachine = &v1alpha1.InfraMachineObservation{
		APIVersion: apiVersion, Kind: kindName, Namespace: o.GetNamespace(), Name: o.GetName(), Contract: string(k.contract),
		Paused: r.paused, Conditions: r.conditions,
	}
	at.FailureDomain, at.Interruptible, at.Error = r.failureDomain, r.interruptible, r.problem
	out := native.VM{ProviderID: r.providerID, Addresses: r.addresses}
	switch {
	case o.GetDeletionTimestamp() != nil:
		out.State, out.Text = native.StateDeleting, "deleting: "+r.waitsFor()
	case r.failed != "":
		out.State, out.Text = native.StateFailed, r.failed
	case r.provisioned && r.providerID != "":
		out.State = native.StateRunning
	default:
		return a.unfinished(ctx, vm, k, o, r, out)
	}
	return out, nil
}

// unfinished returns the state of an InfraMachine that its provider has not completed: Incomplete if its Cluster, its
// Machine or the user data need another step.
func (a *account) unfinished(ctx context.Context, vm *v1alpha1.VirtualMachine, k kind, o *unstructured.Unstructured, r report, out native.VM) (native.VM, error) {
	out.State, out.Text = native.StateCreating, r.waitsFor()
	if vm.Observation().ProviderID != "" {
		// A provider never takes the report back that a VM is provisioned. If it does, the VM may still run.
		out.State = native.StateRunning
		return out, nil
	}
	c, err := a.get(ctx, k.core.coreKind("Cluster"), o.GetNamespace(), a.spec.ClusterName)
	if err != nil {
		return native.VM{}, err
	}
	if (c == nil || !isClusterReady(k.core, c)) && a.spec.InfraCluster != nil {
		out.State, out.Text = native.StateIncomplete, fmt.Sprintf("waiting for %s %s, which has not reported that it is provisioned", a.spec.InfraCluster.Kind, a.spec.InfraCluster.Name)
	}
	if at := &vm.Status.AtProvider; at.Error == "" && (r.paused || out.State == native.StateIncomplete) {
		// Neither ends by itself.
		at.Error = string(fn.ErrorTransient) + ": " + out.Text
	}
	return out, nil
}

// machine returns the Machine of a VM, nil if it does not exist.
func (a *account) machine(ctx context.Context, vm *v1alpha1.VirtualMachine) (*unstructured.Unstructured, error) {
	_, namespace, object := a.whereabouts(vm)
	c, err := a.core(ctx)
	if err != nil {
		return nil, err
	}
	gvk := c.coreKind("Machine")
	if object == "" {
		found, err := a.labeled(ctx, gvk, v1alpha1.LabelVirtualMachine, meta.GetExternalName(vm))
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return &found[0], nil
	}
	o, err := a.get(ctx, gvk, namespace, object)
	if err != nil || o == nil || o.GetLabels()[v1alpha1.LabelVirtualMachine] != meta.GetExternalName(vm) {
		return nil, err
	}
	return o, nil
}

// Continue completes the Cluster as far as it can be.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, _ native.UserData) error {
	k, o, err := a.infraMachine(ctx, vm)
	if err != nil || o == nil {
		return err
	}
	_, err = a.keepCluster(ctx, k.core, o.GetNamespace())
	return err
}

// Create creates the objects of a VM, the InfraMachine last. Each step finds the object of an earlier creation.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	p, name := vm.Spec.ForProvider, meta.GetExternalName(vm)
	k, err := a.kindOf(ctx, p.InfraMachine.GroupKind.GroupKind())
	if err != nil {
		return err
	}
	cluster, err := a.keepCluster(ctx, k.core, vm.Namespace)
	if err != nil {
		return native.Refused(err)
	}
	machine, err := a.ensure(ctx, machineOf(vm, name, a.spec, k, cluster), v1alpha1.LabelVirtualMachine, name)
	if err != nil {
		return err
	}
	if err := a.writeStatus(ctx, machine, machineStatus(k.core, vm, a.now())); err != nil {
		return err
	}
	if err := a.publish(ctx, vm, machine, userData); err != nil {
		return err
	}
	infra, err := infraMachineOf(vm, name, a.spec, k)
	if err != nil {
		return native.Invalid("infraMachine.spec", "%w", err)
	}
	infra.SetOwnerReferences([]metav1.OwnerReference{ownedBy(machine)})
	_, err = a.ensure(ctx, infra, v1alpha1.LabelVirtualMachine, name)
	return err
}

// ensure creates an object of a VM or a Bootstrap, or returns the existing one. The value of the label identifies it.
func (a *account) ensure(ctx context.Context, o *unstructured.Unstructured, label, value string) (*unstructured.Unstructured, error) {
	what := describe(o)
	gvk := o.GroupVersionKind()
	err := a.kube.Create(ctx, o)
	if !kerrors.IsAlreadyExists(err) {
		return o, classify("cannot create "+what, err)
	}
	there, err := a.get(ctx, gvk, o.GetNamespace(), o.GetName())
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, classify("cannot create "+what, kerrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, o.GetName(), errors.New("it was deleted meanwhile")))
	case there.GetLabels()[label] != value:
		return nil, refused("forProvider.name", fmt.Errorf("invalid value %q: %s exists and has another owner: its label %s is not %s", o.GetName(), what, label, value))
	}
	return there, nil
}

// publish writes the user data to a Secret as a bootstrap provider does.
func (a *account) publish(ctx context.Context, vm *v1alpha1.VirtualMachine, machine *unstructured.Unstructured, userData native.UserData) error {
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: vm.Namespace, Name: *vm.Spec.ForProvider.Name,
			Labels:          map[string]string{v1alpha1.LabelVirtualMachine: meta.GetExternalName(vm), labelCluster: a.spec.ClusterName},
			OwnerReferences: []metav1.OwnerReference{ownedBy(machine)},
		},
		Type: bootstrapSecretType,
		Data: map[string][]byte{"value": []byte(data), "format": []byte(formatOf(data))},
	}
	what := "cannot create Secret " + s.Namespace + "/" + s.Name
	if err := a.kube.Create(ctx, s); err == nil || !kerrors.IsAlreadyExists(err) {
		return classify(what, err)
	}
	there := &corev1.Secret{}
	if err := a.kube.Get(ctx, client.ObjectKeyFromObject(s), there); err != nil {
		return classify(what, err)
	}
	if !metav1.IsControlledBy(there, machine) {
		return refused("forProvider.name", fmt.Errorf("invalid value %q: a Secret of this name exists and is not that of this VM", s.Name))
	}
	// The user data of an earlier attempt may have another token.
	there.Data = s.Data
	return classify(what, a.kube.Update(ctx, there))
}

// writeStatus sets the status of an object that this package keeps.
func (a *account) writeStatus(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	before := o.DeepCopy()
	o.Object["status"] = status
	return classify("cannot write the status of "+describe(o), a.kube.Status().Patch(ctx, o, client.MergeFrom(before)))
}

// Reboot returns an error: the contract has no reboots, and the Composition asks for none.
func (a *account) Reboot(context.Context, *v1alpha1.VirtualMachine, machinev1alpha1.RebootMode) error {
	return refused("reboot", errors.New("the contract of Cluster API has no reboots"))
}

// Delete deletes the InfraMachine, and when it is gone the user data and the Machine.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	k, o, err := a.infraMachine(ctx, vm)
	if err != nil {
		return err
	}
	if o != nil {
		if r := read(k.contract, o); r.paused {
			// Its provider would not delete the VM.
			return &native.Error{Class: fn.ErrorTransient, What: "cannot delete " + describe(o), Err: errors.New(r.waitsFor()), Refused: true}
		}
		uid := o.GetUID()
		err := a.kube.Delete(ctx, o, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		return classify("cannot delete "+describe(o), client.IgnoreNotFound(err))
	}
	m, err := a.machine(ctx, vm)
	if err != nil || m == nil {
		return err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName()}}
	if err := a.deleteSecret(ctx, s, m); err != nil {
		return err
	}
	return a.release(ctx, m)
}

// release deletes a Machine of cluster.x-k8s.io whose InfraMachine or BootstrapConfig is gone. The deletion comes first: Cluster
// API's own controller would add its finalizer again, and never removes that of a paused Machine.
func (a *account) release(ctx context.Context, m *unstructured.Unstructured) error {
	what, uid := "cannot delete "+describe(m), m.GetUID()
	if m.GetDeletionTimestamp() == nil {
		if err := a.kube.Delete(ctx, m, client.Preconditions{UID: &uid}); err != nil {
			return classify(what, client.IgnoreNotFound(err))
		}
		var err error
		if m, err = a.get(ctx, m.GroupVersionKind(), m.GetNamespace(), m.GetName()); err != nil || m == nil || m.GetUID() != uid {
			return err
		}
	}
	before := m.DeepCopy()
	ours := controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerMachine)
	if controllerutil.RemoveFinalizer(m, finalizerCore) || ours {
		return classify(what, client.IgnoreNotFound(a.kube.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	return nil
}

// deleteSecret deletes the user data of a Machine, if it is that of the Machine.
func (a *account) deleteSecret(ctx context.Context, s *corev1.Secret, machine *unstructured.Unstructured) error {
	what := "cannot delete Secret " + s.Namespace + "/" + s.Name
	if err := a.kube.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return classify(what, client.IgnoreNotFound(err))
	}
	if !metav1.IsControlledBy(s, machine) {
		return nil
	}
	return classify(what, client.IgnoreNotFound(a.kube.Delete(ctx, s)))
}
