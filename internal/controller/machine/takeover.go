package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
)

// A VM resource has no controller, or one with a UID that does not exist, after it was restored
// from a backup, moved to another control cluster, or imported. The Machine of its namespace that
// its label names takes it over. The annotations of the resource, which no tenant may write,
// identify the VM and the Node.

// takeOver makes the Machine the controller of the resources that wait for it, if it has no VM resource. The
// problem is why the Machine may not have a waiting VM: no other VM is created meanwhile.
func (r *Reconciler) takeOver(ctx context.Context, m *machinev1alpha1.Machine, steps []pipeline.Step, observed composed) (composed, *plan.Problem, error) {
	if observed[machinev1alpha1.ResourceVM] != nil {
		return observed, nil, nil
	}
	kinds, optional := kindsOf(steps)
	waiting, err := r.waitingFor(ctx, m, kinds)
	if err != nil {
		return observed, nil, err
	}
	vms := waiting[machinev1alpha1.ResourceVM]
	switch {
	case len(vms) == 0 && isRestored(m):
		return observed, &plan.Problem{
			Reason:  machinev1alpha1.ReasonRestoredWithoutVM,
			Message: fmt.Sprintf("spec.providerID is %q, and this Machine has neither a status nor a %s: restore the resource, or delete the Machine. No other VM is made for it", *m.Spec.ProviderID, kinds[machinev1alpha1.ResourceVM].Kind),
		}, nil
	case len(vms) == 0:
		return observed, nil, nil
	case len(vms) > 1:
		return observed, notIdentified("the %s %s all wait for this Machine: delete those that are not its own", kinds[machinev1alpha1.ResourceVM].Kind, strings.Join(nodekeeper.NamesOf(vms), " and ")), nil
	}
	vm := vms[0]
	if problem, err := r.refuses(ctx, m, vm); problem != nil || err != nil {
		return observed, problem, err
	}
	more, err := r.waitingFor(ctx, m, namedBy(vm, optional))
	if err != nil {
		return observed, nil, err
	}
	maps.Copy(waiting, more)
	out := maps.Clone(observed)
	for _, role := range slices.Sorted(maps.Keys(waiting)) {
		if role == machinev1alpha1.ResourceVM {
			continue
		}
		for _, obj := range waiting[role] {
			if out[role] == nil {
				if out[role], err = r.own(ctx, m, obj, role); err != nil {
					return observed, nil, err
				}
			}
		}
	}
	// The VM comes last: while the Machine has none, the next reconcile retries the companions too.
	if out[machinev1alpha1.ResourceVM], err = r.own(ctx, m, vm, machinev1alpha1.ResourceVM); err != nil {
		return observed, nil, err
	}
	return out, nil, nil
}

// isRestored reports whether a Machine had a VM before its status was lost, as in a restore.
func isRestored(m *machinev1alpha1.Machine) bool {
	return m.Spec.ProviderID != nil && m.Status.ProviderID == ""
}

// waitingFor returns by role the resources that the Machine controls already, and those whose Machine is gone.
func (r *Reconciler) waitingFor(ctx context.Context, m *machinev1alpha1.Machine, kinds map[string]schema.GroupVersionKind) (map[string][]*unstructured.Unstructured, error) {
	out := map[string][]*unstructured.Unstructured{}
	for role, gvk := range kinds {
		list, err := r.labeled(ctx, gvk, m)
		switch {
		case meta.IsNoMatchError(err):
			continue
		case errors.Is(err, context.DeadlineExceeded):
			return nil, fmt.Errorf("cannot list %s: may provider-drover list and watch %s?", gvk.Kind, gvk.GroupKind())
		case err != nil:
			return nil, fmt.Errorf("cannot list %s: %w", gvk.Kind, err)
		}
		for i := range list {
			obj := &list[i]
			if of := obj.GetAnnotations()[roleAnnotation]; (of == "" || of == role) && waitsFor(obj, m) {
				out[role] = append(out[role], obj)
			}
		}
	}
	return out, nil
}

// waitsFor reports whether a resource with the Machine's name in its label has no controller, or a Machine of
// the same name. If the latter has another UID, it is gone.
func waitsFor(obj *unstructured.Unstructured, m *machinev1alpha1.Machine) bool {
	if obj.GetDeletionTimestamp() != nil {
		return false
	}
	if metav1.GetControllerOfNoCopy(obj) == nil {
		return true
	}
	owner, ok := finalizer.ControllerOf(obj, machineKind)
	return ok && owner.Name == m.GetName()
}

// refuses returns the problem why a Machine may not have the VM of a resource.
func (r *Reconciler) refuses(ctx context.Context, m *machinev1alpha1.Machine, vm *unstructured.Unstructured) (*plan.Problem, error) {
	if metav1.IsControlledBy(vm, m) {
		return nil, nil
	}
	id := identityIn(m, vm)
	if id == nil {
		return notIdentified("%s %q waits for this Machine, and lacks the annotation %s, which names the Node of its VM", vm.GetKind(), vm.GetName(), machinev1alpha1.AnnotationNodeName), nil
	}
	if xpmeta.GetExternalName(vm) == "" {
		return notIdentified("%s %q waits for this Machine, and lacks the annotation %s, which names its VM", vm.GetKind(), vm.GetName(), xpmeta.AnnotationKeyExternalName), nil
	}
	known, err := r.installations(ctx)
	if err != nil {
		return nil, err
	}
	of := vm.GetAnnotations()[machinev1alpha1.AnnotationInstallation]
	switch {
	case of == "":
		return notIdentified("%s %q waits for this Machine, and lacks the annotation %s: if no other control cluster runs its VM, set it to %q, which is this installation", vm.GetKind(), vm.GetName(), machinev1alpha1.AnnotationInstallation, known.Present), nil
	case of != known.Present && !known.Gone[of]:
		return &plan.Problem{
			Reason: machinev1alpha1.ReasonVMOfAnotherInstallation,
			Message: fmt.Sprintf("%s %q, which waits for this Machine, is of installation %q of Drover, and this is %q. If that one is gone and runs nowhere any more: kubectl -n %s patch configmap %s --type=merge -p '{\"data\":{%q:\"Lost\"}}'",
				vm.GetKind(), vm.GetName(), of, known.Present, machinev1alpha1.NamespaceOfInstallations, machinev1alpha1.ConfigMapOfInstallations, of),
		}, nil
	}
	list := &machinev1alpha1.MachineList{}
	if err := r.client.List(ctx, list, client.MatchingFields{byToken: string(id.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.GetUID() != m.GetUID() && r.isKnownAs(other, id.UID) {
			return notIdentified("%s %q waits for this Machine, and stands for the VM of the Machine %s/%s, which exists: delete the resource that is a copy, after its spec.managementPolicies are [Observe]", vm.GetKind(), vm.GetName(), other.GetNamespace(), other.GetName()), nil
		}
	}
	return nil, nil
}

// isKnownAs reports whether a Machine certainly has an identity: the status is not read, since it can be
// forged.
func (r *Reconciler) isKnownAs(m *machinev1alpha1.Machine, uid types.UID) bool {
	known, _ := r.parameters.get(m.GetUID())
	return m.GetUID() == uid || known.Identity != nil && known.Identity.UID == uid
}

func notIdentified(format string, args ...any) *plan.Problem {
	return &plan.Problem{Reason: machinev1alpha1.ReasonVMNotIdentified, Message: fmt.Sprintf(format, args...)}
}

// own makes the Machine the controller of a resource, and keeps its spec. The resource is read again from the
// API server, so that a concurrent change is a conflict.
func (r *Reconciler) own(ctx context.Context, m *machinev1alpha1.Machine, seen *unstructured.Unstructured, role string) (*unstructured.Unstructured, error) {
	if metav1.IsControlledBy(seen, m) {
		return seen, nil
	}
	if err := r.checkAlive(ctx, m); err != nil {
		return nil, err
	}
	was, err := r.readLive(ctx, seen.GroupVersionKind(), client.ObjectKeyFromObject(seen))
	if err != nil {
		return nil, err
	}
	if was == nil || was.GetUID() != seen.GetUID() || !waitsFor(was, m) {
		return nil, errMachineChanged
	}
	is := was.DeepCopy()
	if role == machinev1alpha1.ResourceVM && !metav1.IsControlledBy(was, m) {
		keepIdentity(is, was)
	}
	is.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m, machineKind)})
	is.SetLabels(labels.Merge(is.GetLabels(), labels.Set{labelComposite: m.GetName()}))
	annotate(is, roleAnnotation, role)
	controllerutil.AddFinalizer(is, machinev1alpha1.FinalizerDrain)
	if err := r.client.Patch(ctx, is, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("cannot take over %s %q: %w", is.GetKind(), is.GetName(), err)
	}
	is.SetManagedFields(nil)
	r.written.put(is)
	if role == machinev1alpha1.ResourceVM {
		r.record.Event(m, event.Normal(machinev1alpha1.EventVMTakenOver, fmt.Sprintf("Took over %s %q with the VM %q, whose Node is %s", is.GetKind(), is.GetName(), xpmeta.GetExternalName(is), is.GetAnnotations()[machinev1alpha1.AnnotationNodeName])))
	}
	return is, nil
}

// keepIdentity adds the identity of its last controller to a VM resource whose annotations lack one.
func keepIdentity(vm, was client.Object) {
	before := metav1.GetControllerOfNoCopy(was)
	if before == nil {
		return
	}
	for key, value := range map[string]string{machinev1alpha1.AnnotationMachineUID: string(before.UID), machinev1alpha1.AnnotationNodeName: was.GetName()} {
		if vm.GetAnnotations()[key] == "" {
			annotate(vm, key, value)
		}
	}
}

// identityIn returns the identity in the VM resource of a Machine, nil if it has none. A VM that Drover did not
// create has the UID of its Machine.
func identityIn(m *machinev1alpha1.Machine, vm metav1.Object) *machinev1alpha1.MachineIdentity {
	a := vm.GetAnnotations()
	id := machinev1alpha1.MachineIdentity{UID: cmp.Or(types.UID(a[machinev1alpha1.AnnotationMachineUID]), m.GetUID()), NodeName: a[machinev1alpha1.AnnotationNodeName]}
	if id.NodeName == "" {
		return nil
	}
	return &id
}

// identify sets the identity of a Machine by the VM resource that it controls, and overwrites any other one in
// its status. Without a VM resource, the identity that this process observed last counts.
func (r *Reconciler) identify(ctx context.Context, m *machinev1alpha1.Machine, vm metav1.Object) error {
	var id *machinev1alpha1.MachineIdentity
	if vm != nil {
		id = identityIn(m, vm)
	} else if known, ok := r.parameters.get(m.GetUID()); ok {
		id = known.Identity
	}
	if own := identity.Own(m); id != nil && *id == own {
		id = nil
	}
	if ptr.Equal(id, m.Status.Identity) {
		return nil
	}
	status := *m.Status.DeepCopy()
	status.Identity = id
	_, err := r.writeStatus(ctx, m, status)
	return err
}

// inherit creates another resource for the VM or companion of a held resource: the deletion of the held resource cannot be
// undone.
func (r *Reconciler) inherit(ctx context.Context, m *machinev1alpha1.Machine, of *unstructured.Unstructured) (*plan.Problem, error) {
	role := of.GetAnnotations()[roleAnnotation]
	if !machinev1alpha1.IsInfrastructure(role) || xpmeta.GetExternalName(of) == "" || xpmeta.ExternalCreateIncomplete(of) {
		return nil, nil
	}
	heir := heirOf(m, role, of)
	there, err := r.readLive(ctx, heir.GroupVersionKind(), client.ObjectKeyFromObject(heir))
	if err != nil || there != nil {
		return nil, err
	}
	if role == machinev1alpha1.ResourceVM {
		if problem, err := r.refuses(ctx, m, heir); problem != nil || err != nil {
			return problem, err
		}
	}
	if _, err := r.lookAt(ctx, m); err != nil {
		return nil, err
	}
	heir.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m, machineKind)})
	if err := r.client.Create(ctx, heir); err != nil {
		return nil, client.IgnoreAlreadyExists(err)
	}
	r.written.put(heir)
	if role == machinev1alpha1.ResourceVM {
		r.record.Event(m, event.Normal(machinev1alpha1.EventVMTakenOver, fmt.Sprintf("Took over the VM %q from %s %q, which is being deleted", xpmeta.GetExternalName(of), of.GetKind(), of.GetName())))
	}
	return nil, nil
}

// heirOf returns a resource for the same VM. Its provider may observe and delete the VM, and nothing else.
func heirOf(m *machinev1alpha1.Machine, role string, of *unstructured.Unstructured) *unstructured.Unstructured {
	heir := &unstructured.Unstructured{Object: map[string]any{}}
	heir.SetGroupVersionKind(of.GroupVersionKind())
	heir.SetNamespace(m.GetNamespace())
	heir.SetName(names.OfMachine(m.GetName(), m.GetUID()))
	annotations := map[string]string{}
	for _, key := range append([]string{roleAnnotation, xpmeta.AnnotationKeyExternalName}, plan.AnnotationsOfVM()...) {
		if v, ok := of.GetAnnotations()[key]; ok {
			annotations[key] = v
		}
	}
	heir.SetAnnotations(annotations)
	if role == machinev1alpha1.ResourceVM {
		keepIdentity(heir, of)
	}
	if machinev1alpha1.IsCompanion(role) {
		heir.SetName(names.OfCompanion(m.GetName(), m.GetUID(), role[len(machinev1alpha1.ResourceCompanionPrefix):]))
	}
	heir.SetLabels(labels.Merge(of.GetLabels(), labels.Set{labelComposite: m.GetName(), machinev1alpha1.LabelMachine: m.GetName()}))
	heir.SetFinalizers([]string{machinev1alpha1.FinalizerDrain})
	spec, _, _ := unstructured.NestedMap(of.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	spec[managementPolicies] = []any{"Observe", "Delete"}
	heir.Object["spec"] = spec
	return heir
}
