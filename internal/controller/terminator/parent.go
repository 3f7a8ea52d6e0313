package terminator

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/internal/finalizer"
)

// parents reconciles MachineSets or MachineDeployments.
type parents struct {
	gvk    schema.GroupVersionKind
	child  schema.GroupVersionKind
	label  string        // of a child, the parent's name
	client client.Client // writes
	live   client.Reader
	views  client.Reader // cache
	// children that the cache has.
	children func(ctx context.Context, parent client.Object) (int, error)
	reporter *reporter
}

// Reconcile keeps a parent until its last child is gone, and reports what it waits for.
func (r *parents) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := finalizer.NewMetadata(r.gvk)
	if err := r.views.Get(ctx, req.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	left := 1
	if p.GetDeletionTimestamp() != nil {
		var err error
		if left, err = r.children(ctx, p); err != nil {
			return reconcile.Result{}, err
		}
	}
	s := finalizer.StateOf(p).Next(left > 0)
	if s == finalizer.Remove {
		// A child may be so new that the cache lacks it.
		items, err := owned(ctx, r.live, r.child, r.label, p)
		if err != nil {
			return reconcile.Result{}, err
		}
		s = finalizer.StateOf(p).Next(len(items) > 0)
	}
	if err := finalizer.Take(ctx, r.client, r.gvk, p, s); err != nil || p.GetDeletionTimestamp() == nil || s == finalizer.Remove {
		return reconcile.Result{}, err
	}
	again, err := r.reporter.report(ctx, req.NamespacedName)
	return reconcile.Result{RequeueAfter: again}, err
}
