package mr

import (
	"context"
	"errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/internal/stored"
)

// Guard returns a reconciler that leaves a managed resource alone while a field of it cannot be decoded, and reports
// the field with the condition Synced: the default of the field would change the external resource. If the resource
// is being deleted, inner deletes the external resource without the field. kind is an empty object of the resource.
func Guard(c client.Client, kind client.Object, inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		mg, ok := kind.DeepCopyObject().(resource.Managed)
		if !ok || c.Get(ctx, req.NamespacedName, mg) != nil {
			return inner.Reconcile(ctx, req) // It reports the error.
		}
		fields := stored.Faults(mg)
		if fields == "" || mg.GetDeletionTimestamp() != nil {
			return inner.Reconcile(ctx, req)
		}
		was, ok := mg.DeepCopyObject().(client.Object)
		condition := xpv2.ReconcileError(errors.New("cannot decode " + fields))
		if !ok || mg.GetCondition(xpv2.TypeSynced).Equal(condition) {
			return reconcile.Result{}, nil
		}
		mg.SetConditions(condition)
		return reconcile.Result{}, client.IgnoreNotFound(c.Status().Patch(ctx, mg, client.MergeFrom(was)))
	})
}
