package mr

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Again lets an ExternalClient say when it wants to be called again. The managed
// reconciler itself knows only its poll interval, and a backoff that grows to a
// minute while a deletion is under way.
type Again struct{ after sync.Map }

// After asks for a reconcile of obj after d, instead of what the managed reconciler
// decides. It counts for the reconcile that is under way.
func (a *Again) After(obj client.Object, d time.Duration) {
	a.after.Store(client.ObjectKeyFromObject(obj), d)
}

func (a *Again) wrap(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		a.after.Delete(req.NamespacedName) // of a reconcile that panicked
		res, err := inner.Reconcile(ctx, req)
		d, asked := a.after.LoadAndDelete(req.NamespacedName)
		if after, ok := d.(time.Duration); asked && ok && err == nil {
			return reconcile.Result{RequeueAfter: after}, nil
		}
		return res, err
	})
}
