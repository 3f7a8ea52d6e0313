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
	// retryInterval is the delay after the API server lacked the kind or the right. An administrator
	// adds both, and no event reports it.
	retryInterval = 10 * time.Minute

	fieldOwner = client.FieldOwner("provider-drover/packageguard")
)

// A reconciler maintains the ClusterUsages. It serves one request at a time.
type reconciler struct {
	machines client.Reader // a cache
	usages   *view
	client   client.Writer
	log      logging.Logger
	now      func() time.Time

	// guards by the name of their ClusterUsage. Those of API groups are added by newGroup
	// when they are requested first.
	guards   map[string]*guard
	newGroup func(group string) *guard
}

// Reconcile creates, updates or deletes the ClusterUsage of this name.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	g := r.guards[req.Name]
	if g == nil {
		group := groupOfUsage(req.Name)
		if group == "" {
			return reconcile.Result{}, nil // The ClusterUsage has the label, but does not belong to this controller.
		}
		g = r.newGroup(group)
		r.guards[req.Name] = g
	}
	if wait := g.blockedUntil.Sub(r.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	isNeeded, err := r.isNeeded(ctx, g)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = r.keep(ctx, g, isNeeded)
	switch {
	case err == nil:
		g.logged = ""
		return reconcile.Result{}, nil
	case !isUnavailable(err):
		return reconcile.Result{}, err
	case !isNeeded && meta.IsNoMatchError(err):
		return reconcile.Result{}, nil // There is nothing to guard, and no guard to delete.
	}
	if g.logged != err.Error() {
		g.logged = err.Error()
		r.log.Info("Cannot keep the ClusterUsage that protects a package from deletion while Machines exist",
			"usage", g.usage, "kind", g.kind, "error", err, "retryInterval", retryInterval)
	}
	g.blockedUntil = r.now().Add(retryInterval)
	return reconcile.Result{RequeueAfter: retryInterval}, nil
}

func (r *reconciler) isNeeded(ctx context.Context, g *guard) (bool, error) {
	list := &v1alpha1.MachineList{}
	err := r.machines.List(ctx, list, append([]client.ListOption{client.Limit(1), client.UnsafeDisableDeepCopy}, g.machines...)...)
	return len(list.Items) > 0, err
}

func (r *reconciler) keep(ctx context.Context, g *guard, isNeeded bool) error {
	o := observation{isNeeded: isNeeded}
	if isNeeded {
		name, err := g.finder.find(ctx)
		if err != nil || name == "" {
			return err
		}
		o.desired = desiredSpec(g.kind, name, g.reason)
	}
	u := newUsage(g.usage)
	found, err := r.usages.get(ctx, u)
	if err != nil {
		return err
	}
	if found {
		o.usage = usageOf(u)
	}
	return r.write(ctx, decide(o), u, o.desired)
}

// write carries out the action on the usage as it was read. An error that proves this view stale is
// no failure: the watch delivers the present state, which causes another decision.
func (r *reconciler) write(ctx context.Context, a action, u *unstructured.Unstructured, desired map[string]any) error {
	name := u.GetName()
	var err error
	switch a {
	case create:
		u = newUsage(name)
		u.Object["spec"] = desired
		err = client.IgnoreAlreadyExists(r.client.Create(ctx, u, fieldOwner))
	case update:
		u.Object["spec"] = desired
		if err = client.IgnoreNotFound(r.client.Update(ctx, u, fieldOwner)); kerrors.IsConflict(err) {
			err = nil
		}
	case remove:
		err = client.IgnoreNotFound(r.client.Delete(ctx, u))
	case keep:
	}
	if err != nil {
		return wrap(err, "%s ClusterUsage %s", a, name)
	}
	return nil
}

// isUnavailable reports whether the API server lacks the kind, or this provider the right.
// The REST mapper may know a kind that is gone; its objects are then not found.
func isUnavailable(err error) bool {
	return meta.IsNoMatchError(err) || kerrors.IsForbidden(err) || kerrors.IsNotFound(err)
}
