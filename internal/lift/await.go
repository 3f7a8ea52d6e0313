package lift

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// secretPatience is how long a Secret may be missing before its absence is reported: a
// Secret that is created together with its VM takes some seconds when many are.
const secretPatience = 30 * time.Second

// secretMinPoll and secretMaxPoll bound how often it is looked for one.
const (
	secretMinPoll = 500 * time.Millisecond
	secretMaxPoll = 10 * time.Second
)

// awaitSecrets lets what may be created wait for the Secrets that it refers to, which
// may come after it. It holds no worker meanwhile and writes nothing: an attempt to
// create it would be put down as one that failed.
func awaitSecrets(inner reconcile.Reconciler, kube client.Reader, fresh func() ujresource.Terraformed, now func() time.Time) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		tr := fresh()
		if err := kube.Get(ctx, req.NamespacedName, tr); err != nil || !mayBeCreated(tr) || checkSecrets(ctx, kube, tr) == nil {
			return inner.Reconcile(ctx, req)
		}
		age := now().Sub(tr.GetCreationTimestamp().Time)
		again := reconcile.Result{RequeueAfter: min(max(age/2, secretMinPoll), secretMaxPoll)}
		if age < secretPatience {
			return again, nil
		}
		// It says what is missing.
		if _, err := inner.Reconcile(ctx, req); err != nil {
			return reconcile.Result{}, err
		}
		return again, nil
	})
}

// mayBeCreated says whether the reconciler would create it, and so read its Secrets.
func mayBeCreated(tr ujresource.Terraformed) bool {
	return meta.GetExternalName(tr) == "" && !meta.WasDeleted(tr) && !meta.IsPaused(tr)
}
