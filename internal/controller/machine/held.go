package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/plan"
)

// releaseHeld releases the resources of a Machine's name that wait for another Machine than m, which is nil if
// no Machine has the name. The Machine inherits their VM and companions. The returned problem is why it may
// not.
func (r *Reconciler) releaseHeld(ctx context.Context, name types.NamespacedName, m *machinev1alpha1.Machine) (*plan.Problem, error) {
	var errs []error
	var problem *plan.Problem
	for s, owner := range r.watches.heldOf(name) {
		if m != nil && owner == m.GetUID() {
			continue
		}
		refused, err := r.letGo(ctx, name, m, s)
		errs = append(errs, err)
		if refused != nil {
			problem = refused
		}
	}
	return problem, errors.Join(errs...)
}

// letGo releases a held resource and keeps its VM, which may be in use. Unless the Machine of its name inherits the VM,
// the VM is an orphan then, and an OrphanCollector reports it. The permission to delete is removed before the
// finalizer that keeps the provider from deleting.
func (r *Reconciler) letGo(ctx context.Context, machine types.NamespacedName, m *machinev1alpha1.Machine, s heldResource) (*plan.Problem, error) {
	obj, err := r.readLive(ctx, s.gvk, types.NamespacedName{Namespace: machine.Namespace, Name: s.name})
	if err != nil || obj == nil || !isHeld(obj) {
		return nil, err
	}
	if lost, err := finalizer.LostOwner(ctx, r.live, obj, machineKind); err != nil || lost == "" {
		return nil, err
	}
	if m != nil && inherits(m) {
		if problem, err := r.inherit(ctx, m, obj); problem != nil || err != nil {
			return problem, err
		}
	}
	return nil, r.keepVM(ctx, machine, s, obj)
}

// inherits reports whether a Machine inherits the VM of a held resource: the Machine is not being deleted, or only by
// the garbage collector.
func inherits(m *machinev1alpha1.Machine) bool {
	d := m.Status.Deletion
	return m.GetDeletionTimestamp() == nil || d == nil || !d.Stage.HasBegun()
}

// keepVM lets a held resource be deleted, and keeps its VM.
func (r *Reconciler) keepVM(ctx context.Context, machine types.NamespacedName, s heldResource, obj *unstructured.Unstructured) error {
	kept := obj.DeepCopy()
	if err := unstructured.SetNestedStringSlice(kept.Object, []string{"Observe"}, "spec", managementPolicies); err != nil {
		return err
	}
	if err := r.client.Patch(ctx, kept, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	if p, _, _ := unstructured.NestedStringSlice(kept.Object, "spec", managementPolicies); !slices.Equal(p, []string{"Observe"}) {
		return fmt.Errorf("%s %s of Machine %s, which does not exist, cannot be released: its kind has no spec.%s, so that its provider would delete what it stands for", s.gvk.Kind, s.name, machine, managementPolicies)
	}
	if err := finalizer.Patch(ctx, r.client, s.gvk, kept, func(m client.Object) {
		controllerutil.RemoveFinalizer(m, machinev1alpha1.FinalizerDrain)
	}); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.record.Event(kept, event.Warning(machinev1alpha1.EventKeptWithoutMachine, fmt.Errorf("its Machine %s with the UID %s does not exist: this resource goes, and %s %q is kept at its cloud, where an OrphanCollector finds it", machine, metav1.GetControllerOfNoCopy(obj).UID, s.gvk.Kind, xpmeta.GetExternalName(kept))))
	return nil
}
