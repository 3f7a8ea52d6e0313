package mr

import (
	"context"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Again lets an ExternalClient choose the time of its next call. The managed reconciler itself only
// has its poll interval, and a backoff that grows to a minute during a deletion.
type Again struct{ after sync.Map }

// After requests a reconcile of obj after d, which replaces the delay of the managed reconciler. It
// applies to the present reconcile.
func (a *Again) After(obj client.Object, d time.Duration) {
	a.after.Store(client.ObjectKeyFromObject(obj), d)
}

func (a *Again) wrap(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		a.after.Delete(req.NamespacedName) // left by a reconcile that panicked
		res, err := inner.Reconcile(ctx, req)
		d, asked := a.after.LoadAndDelete(req.NamespacedName)
		if after, ok := d.(time.Duration); asked && ok && err == nil {
			return reconcile.Result{RequeueAfter: after}, nil
		}
		return res, err
	})
}

// written removes the request of a reconcile that meets a conflict: its observation was not recorded.
// The managed reconciler requests another reconcile at once, and hides the cause.
func (a *Again) written(obj client.Object, err error) error {
	if kerrors.IsConflict(err) {
		a.after.Delete(client.ObjectKeyFromObject(obj))
	}
	return err
}

// manager returns the manager for the wrapped managed reconciler.
func (a *Again) manager(m manager.Manager) manager.Manager {
	return managerWith{Manager: m, client: heedingClient{Client: m.GetClient(), again: a}}
}

// heedingClient passes the results of its writes to Again.
type heedingClient struct {
	client.Client
	again *Again
}

func (c heedingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.again.written(obj, c.Client.Update(ctx, obj, opts...))
}

func (c heedingClient) Status() client.SubResourceWriter {
	return heedingStatus{SubResourceWriter: c.Client.Status(), again: c.again}
}

type heedingStatus struct {
	client.SubResourceWriter
	again *Again
}

func (w heedingStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return w.again.written(obj, w.SubResourceWriter.Update(ctx, obj, opts...))
}
