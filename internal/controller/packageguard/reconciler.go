package packageguard

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// timeout of a reconcile. A cache that cannot sync must not block the worker.
	timeout = time.Minute
	// retryInterval after the API server lacked the kind or the right. Both come from an
	// administrator, and without an event.
	retryInterval = 10 * time.Minute

	fieldOwner = client.FieldOwner("provider-drover/packageguard")
)

// A reconciler keeps the ClusterUsage. It serves one request at a time.
type reconciler struct {
	machines client.Reader // a cache
	provider *providerFinder
	usage    *view
	client   client.Writer
	log      logging.Logger
	now      func() time.Time

	// blockedUntil is when the API server is called again after it lacked the kind or
	// the right; logged is the error that was logged last.
	blockedUntil time.Time
	logged       string
}

// Reconcile makes the ClusterUsage what it should be.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if wait := r.blockedUntil.Sub(r.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	hasMachines, err := r.hasMachines(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = r.guard(ctx, hasMachines)
	switch {
	case err == nil:
		r.logged = ""
		return reconcile.Result{}, nil
	case !isUnavailable(err):
		return reconcile.Result{}, err
	case !hasMachines && meta.IsNoMatchError(err):
		return reconcile.Result{}, nil // There is nothing to guard, and no guard to delete.
	}
	if r.logged != err.Error() {
		r.logged = err.Error()
		r.log.Info("Cannot keep the ClusterUsage that protects the package of Machines from deletion", "error", err, "retryInterval", retryInterval)
	}
	r.blockedUntil = r.now().Add(retryInterval)
	return reconcile.Result{RequeueAfter: retryInterval}, nil
}

func (r *reconciler) hasMachines(ctx context.Context) (bool, error) {
	list := &v1alpha1.MachineList{}
	err := r.machines.List(ctx, list, client.Limit(1), client.UnsafeDisableDeepCopy)
	return len(list.Items) > 0, err
}

func (r *reconciler) guard(ctx context.Context, hasMachines bool) error {
	o := observation{hasMachines: hasMachines}
	if hasMachines {
		var err error
		if o.provider, err = r.provider.find(ctx); err != nil || o.provider == "" {
			return err
		}
	}
	u := newUsage()
	found, err := r.usage.get(ctx, u)
	if err != nil {
		return err
	}
	if found {
		o.usage = usageOf(u)
	}
	return r.write(ctx, decide(o), u, o.provider)
}

// write carries out the action on the usage as it was read. An error that proves this view
// of it stale is no failure: the watch brings the present state, and another decision.
func (r *reconciler) write(ctx context.Context, a action, u *unstructured.Unstructured, provider string) error {
	var err error
	switch a {
	case create:
		u = newUsage()
		u.Object["spec"] = desiredSpec(provider)
		err = client.IgnoreAlreadyExists(r.client.Create(ctx, u, fieldOwner))
	case update:
		u.Object["spec"] = desiredSpec(provider)
		if err = client.IgnoreNotFound(r.client.Update(ctx, u, fieldOwner)); kerrors.IsConflict(err) {
			err = nil
		}
	case remove:
		err = client.IgnoreNotFound(r.client.Delete(ctx, u))
	case keep:
	}
	if err != nil {
		return wrap(err, "%s ClusterUsage %s", a, UsageName)
	}
	return nil
}

// isUnavailable reports whether the API server lacks the kind, or this provider the right.
// The REST mapper may know a kind that is gone; its objects are then not found.
func isUnavailable(err error) bool {
	return meta.IsNoMatchError(err) || kerrors.IsForbidden(err) || kerrors.IsNotFound(err)
}
