package jointoken

import (
	"context"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

// Setup adds the controller to the manager.
func Setup(_ context.Context, mgr ctrl.Manager, o controller.Options, pool *target.Pool) error {
	recorder := mr.RecorderFor(mgr, v1alpha1.JoinTokenGroupVersionKind)
	if err := mgr.Add(&sweeper{
		connect: func(ctx context.Context, ref target.Ref) (sweepable, error) {
			conn, err := pool.Get(ctx, ref)
			if err != nil {
				return sweepable{}, err
			}
			return sweepable{kube: conn.Kube, classify: conn.Classify, config: conn.UID}, nil
		},
		cached: mgr.GetClient(), live: mgr.GetAPIReader(), record: recorder, log: o.Logger, every: o.PollInterval,
	}); err != nil {
		return err
	}
	return mr.Controller[*v1alpha1.JoinToken]{
		Kind:      v1alpha1.JoinTokenGroupVersionKind,
		Object:    &v1alpha1.JoinToken{},
		List:      &v1alpha1.JoinTokenList{},
		Connector: &connector{pool: pool, shared: &shared{control: mgr.GetAPIReader(), record: recorder, now: time.Now}},
		Again:     &mr.Again{},
		Recorder:  recorder,
		Options: []managed.ReconcilerOption{
			managed.WithInitializers(managed.InitializerFn(nameByUID)),
			managed.WithPollIntervalHook(pollUntilRenewal(time.Now)),
		},
	}.Setup(mgr, o)
}

// nameByUID sets the external name, which comes out the same each time: it need not be
// written, and is with the finalizer if a JoinToken was made without that.
func nameByUID(_ context.Context, mg resource.Managed) error {
	if meta.GetExternalName(mg) == "" {
		meta.SetExternalName(mg, names.TokenID(mg.GetUID()))
	}
	return nil
}

// pollUntilRenewal makes sure that a token is renewed in time, however long the
// poll interval is. One that is revoked is not looked at again: nothing becomes of it.
func pollUntilRenewal(now func() time.Time) managed.PollIntervalHook {
	return func(mg resource.Managed, poll time.Duration) time.Duration {
		jt, ok := mg.(*v1alpha1.JoinToken)
		switch {
		case !ok:
			return poll
		case jt.Spec.ForProvider.Revoked && jt.Status.GetCondition(xpv1.TypeReady).Reason == v1alpha1.ReasonRevoked:
			return 0
		case jt.Status.AtProvider.ExpirationTime == nil:
			return poll
		}
		life := time.Duration(float64(jt.Spec.ForProvider.TTL.Duration) * (1 - renewAt))
		left := jt.Status.AtProvider.ExpirationTime.Add(-life).Sub(now())
		return min(poll, max(left, time.Second))
	}
}
