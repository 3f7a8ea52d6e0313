package machine

import (
	"context"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/stored"
)

// Reconcile reconciles a Machine.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &machinev1alpha1.Machine{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		if kerrors.IsNotFound(err) {
			r.forget(req)
			_, err := r.releaseHeld(ctx, req.NamespacedName, nil)
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, err
	}
	problem, err := r.releaseHeld(ctx, req.NamespacedName, m)
	if err != nil {
		return reconcile.Result{}, err
	}
	if before, ok := r.written.uidOf(req.NamespacedName); ok && before != m.GetUID() {
		r.forget(req) // The Machine was deleted and created again between two reconciles.
	}
	m = r.freshest(m)
	r.written.knows(req.NamespacedName, m.GetUID())
	if problem != nil {
		return reconcile.Result{RequeueAfter: afterError}, r.refuse(ctx, m, problem)
	}
	result, err := r.reconcile(ctx, m)
	switch {
	case isStale(err):
		return reconcile.Result{RequeueAfter: afterConflict}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return result, nil
}

func (r *Reconciler) reconcile(ctx context.Context, m *machinev1alpha1.Machine) (reconcile.Result, error) {
	switch {
	case xpmeta.IsPaused(m):
		return reconcile.Result{}, r.pause(ctx, m)
	case m.GetDeletionTimestamp() != nil:
		return r.terminate(ctx, m)
	}
	if next := finalizer.StateOf(m).Next(true); next != finalizer.Nothing {
		return reconcile.Result{}, finalizer.Take(ctx, r.client, machineKind, m, next)
	}
	if fields := stored.Faults(m); fields != "" {
		// The defaults of the fields would decide about the VM otherwise. A deletion uses them, so that it ends.
		return reconcile.Result{}, r.refuse(ctx, m, plan.NotDecodable(fields))
	}
	return r.advance(ctx, m)
}

// forget removes a deleted Machine from the memory of the process.
func (r *Reconciler) forget(req reconcile.Request) {
	uid, ok := r.written.uidOf(req.NamespacedName)
	if !ok {
		return
	}
	r.written.dropMachine(req.NamespacedName)
	r.parameters.drop(uid)
	r.tokens.Forget(uid)
	r.nodes.Forget(uid)
	r.watches.forget(req.NamespacedName)
}

// freshest returns the newer one of the Machine in the cache and the Machine as this process wrote it last.
func (r *Reconciler) freshest(cached *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	if obj, ok := r.written.get(overlayKey{kind: machineKind.GroupKind(), name: client.ObjectKeyFromObject(cached)}, cached); ok {
		if m, ok := obj.(*machinev1alpha1.Machine); ok {
			return m.DeepCopy()
		}
	}
	m := cached.DeepCopy()
	m.SetGroupVersionKind(machineKind)
	m.SetManagedFields(nil)
	return m
}
