package lift

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// secretPatience is how long a Secret may be missing before its absence is reported: a Secret that is created
// together with its VM takes some seconds if many are created.
const secretPatience = 30 * time.Second

// secretMinPoll and secretMaxPoll bound the interval of the reads.
const (
	secretMinPoll = 500 * time.Millisecond
	secretMaxPoll = 10 * time.Second
)

// awaitSecrets delays the creation of a resource until the Secrets that it refers to exist, which may be
// created after it. It blocks no worker and writes nothing: an attempt to create the resource would be recorded
// as a failed one.
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
		// The inner reconciler reports the missing Secret.
		if _, err := inner.Reconcile(ctx, req); err != nil {
			return reconcile.Result{}, err
		}
		return again, nil
	})
}

// mayBeCreated reports whether the reconciler would create the resource, and so read its Secrets.
func mayBeCreated(tr ujresource.Terraformed) bool {
	return meta.GetExternalName(tr) == "" && !meta.WasDeleted(tr) && !meta.IsPaused(tr)
}
