package simulator

import (
	"context"
	"errors"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/crossplane/upjet/v2/pkg/controller/handler"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	tferrors "github.com/crossplane/upjet/v2/pkg/terraform/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operations are the operations of one process. Like upjet, it keeps them by UID, and loses them
// when the process ends.
type operations struct {
	client *kindClient
	events *handler.EventHandler
	// runsCLI means that the operations are those of the Terraform CLI, which upjet calls in a workspace.
	runsCLI bool
	// life is the context of the process that runs them.
	life context.Context
	all  *sync.WaitGroup

	mu sync.Mutex
	of map[types.UID]*operation
}

// An operation is the last one of a resource.
type operation struct {
	running bool
	// created is the external name of the created resource, which the next observation records.
	created string
	err     error
}

// An async client behaves like that of upjet: an operation continues in the background, and reports
// its result by conditions. While it runs, the resource counts as existing and up to date.
type async struct {
	*external
	*operations
}

func (a *async) Disconnect(ctx context.Context) error { return a.external.Disconnect(ctx) }

func (o *operations) last(uid types.UID) *operation {
	if o.of[uid] == nil {
		o.of[uid] = &operation{}
	}
	return o.of[uid]
}

// byFailures is the name of the rate limiter for the reconciles that a failed operation requests.
const byFailures = "failures"

// begin starts an operation. Like upjet in the process of the provider, it returns the error of the operation before,
// and then relies on the reconciler for the next attempt: if the operation takes longer than the pause of the
// reconciler, there is none before the next poll. With the CLI, each failure requests the next attempt.
func (o *operations) begin(m *managedResource, do func(context.Context) (created string, err error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	op := o.last(m.GetUID())
	if op.running {
		return nil
	}
	before := op.err
	op.running = true
	o.all.Go(func() {
		created, err := do(o.life)
		o.mu.Lock()
		if errors.Is(err, errDied) {
			// A dead process keeps neither the operation nor its result.
			delete(o.of, m.GetUID())
			o.mu.Unlock()
			return
		}
		op.running, op.err = false, err
		if err == nil {
			op.created = created
		}
		o.mu.Unlock()
		o.report(m, err, o.runsCLI || err == nil || before == nil)
	})
	if o.runsCLI {
		return nil
	}
	return before
}

// report writes the result of an operation to the conditions of its resource.
func (o *operations) report(m *managedResource, ended error, request bool) {
	key := client.ObjectKeyFromObject(m)
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now := o.client.new()
		if err := o.client.Get(o.life, key, now); err != nil {
			return client.IgnoreNotFound(err)
		}
		now.SetConditions(ujresource.LastAsyncOperationCondition(ended), ujresource.AsyncOperationFinishedCondition())
		if ended != nil {
			now.SetConditions(xpv2.ReconcileError(ended))
		} else {
			now.SetConditions(xpv2.ReconcileSuccess())
		}
		return o.client.Status().Update(o.life, now)
	})
	if !request {
		return
	}
	limiter := byFailures
	if ended == nil {
		o.events.Forget(byFailures, key)
		limiter = handler.NoRateLimiter
	}
	o.events.RequestReconcile(limiter, key, nil)
}

func (a *async) Observe(ctx context.Context, mg xpresource.Managed) (managed.ExternalObservation, error) {
	a.mu.Lock()
	op := *a.last(mg.GetUID())
	a.mu.Unlock()
	if op.running {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	named := op.created != "" && meta.GetExternalName(mg) == ""
	if named {
		meta.SetExternalName(mg, op.created)
	}
	o, err := a.external.Observe(ctx, mg)
	if err == nil && o.ResourceExists && !meta.WasDeleted(mg) {
		mg.SetConditions(ujresource.LastAsyncOperationCondition(nil), xpv2.ReconcileSuccess())
		o.ResourceLateInitialized = named || o.ResourceLateInitialized
	}
	return o, err
}

func (a *async) Create(_ context.Context, mg xpresource.Managed) (managed.ExternalCreation, error) {
	m := &managedResource{Unstructured: *mg.(*managedResource).DeepCopy()}
	return managed.ExternalCreation{}, a.begin(m, func(ctx context.Context) (string, error) {
		id, err := a.external.create(ctx, m)
		if errors.Is(err, errDied) {
			return "", err
		}
		return id, tferrors.NewAsyncCreateFailed(err)
	})
}

func (a *async) Delete(_ context.Context, mg xpresource.Managed) (managed.ExternalDelete, error) {
	m := &managedResource{Unstructured: *mg.(*managedResource).DeepCopy()}
	return managed.ExternalDelete{}, a.begin(m, func(ctx context.Context) (string, error) {
		return "", tferrors.NewAsyncDeleteFailed(a.external.delete(ctx, m))
	})
}
