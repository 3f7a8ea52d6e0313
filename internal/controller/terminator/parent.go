package terminator

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

// parents reconciles MachineSets, MachineDeployments or NodePools.
type parents struct {
	gvk schema.GroupVersionKind
	// owner is the kind that composes these, empty for NodePools.
	owner  schema.GroupVersionKind
	child  schema.GroupVersionKind
	label  string        // of a child, the parent's name
	client client.Client // writes
	live   client.Reader
	views  client.Reader // cache
	// children counts the children of a parent in the cache.
	children func(ctx context.Context, parent client.Object) (int, error)
	reporter *reporter
}

// Reconcile keeps a parent until its last child is gone, and reports the progress.
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
	collected := ""
	if left > 0 {
		var err error
		if collected, err = r.collectedBy(ctx, p); err != nil {
			return reconcile.Result{}, err
		}
	}
	if collected != "" {
		again, err := r.reporter.report(ctx, req.NamespacedName, collected)
		return reconcile.Result{RequeueAfter: again}, err
	}
	s := finalizer.StateOf(p).Next(left > 0)
	if s == finalizer.Remove {
		// A new child may be missing in the cache.
		items, err := owned(ctx, r.live, r.child, r.label, p)
		if err != nil {
			return reconcile.Result{}, err
		}
		s = finalizer.StateOf(p).Next(len(items) > 0)
	}
	err := finalizer.Take(ctx, r.client, r.gvk, p, s)
	switch {
	case kerrors.IsConflict(err): // It is ordinary, and no error for the log: Crossplane writes these objects too.
		return reconcile.Result{RequeueAfter: afterConflict}, nil
	case err != nil, p.GetDeletionTimestamp() == nil, s == finalizer.Remove:
		return reconcile.Result{}, err
	}
	again, err := r.reporter.report(ctx, req.NamespacedName, "")
	return reconcile.Result{RequeueAfter: again}, err
}

// collectedBy returns the owner that controls the object and no longer exists, while the object is
// being deleted. It is empty if the owner exists or a user confirmed the deletion. A deletion in the
// foreground has started before: the garbage collector deletes in the background if an owner does not
// exist.
func (r *parents) collectedBy(ctx context.Context, p *metav1.PartialObjectMetadata) (string, error) {
	if r.owner.Empty() || p.GetDeletionTimestamp() == nil || finalizer.StateOf(p).Foreground || p.GetAnnotations()[v1alpha1.AnnotationConfirmDeletion] == "true" {
		return "", nil
	}
	name, err := finalizer.LostOwner(ctx, r.live, p, r.owner)
	if name == "" {
		return "", err
	}
	return r.owner.Kind + " " + name, nil
}
