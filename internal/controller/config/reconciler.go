package config

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// idleAfter is how long a watch of Nodes continues after the last Machine is gone.
const idleAfter = 2 * time.Minute

// prober reaches target clusters.
type prober interface {
	Probe(ctx context.Context, ref target.Ref) probe
	Forget(ref target.Ref)
	StopIdle(ref target.Ref, since time.Time)
}

// reconciler of one of the two kinds of configurations.
type reconciler struct {
	client client.Client
	empty  func() client.Object
	probe  prober
	record event.Recorder
	now    func() time.Time

	against sync.Map // target.Ref to the number of probes in a row that contradict its condition
}

// Reconcile probes the target cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.empty()
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	o, ok := asObject(obj)
	if !ok {
		return reconcile.Result{}, fmt.Errorf("unexpected type %T", obj)
	}
	machines, err := users(ctx, r.client, o.ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	if meta.WasDeleted(o) {
		if use := inUse(machines); use != "" {
			r.record.Event(o.Object, event.Warning(v1alpha1.EventInUse, errors.New("not deleted: "+use)))
		} else {
			return reconcile.Result{}, r.release(ctx, o)
		}
	} else if err := r.hold(ctx, o); err != nil {
		return reconcile.Result{}, err
	}
	if machines == 0 {
		r.probe.StopIdle(o.ref, r.now().Add(-idleAfter))
	}
	next, err := r.measure(ctx, o)
	return reconcile.Result{RequeueAfter: next}, err
}

// isDoubted reports whether probes contradict the condition of a configuration, so that it is probed again soon anyway.
func (r *reconciler) isDoubted(ref target.Ref) bool {
	return r.contradictions(ref) > 0
}

// contradictions is how many probes in a row contradict the condition of a configuration.
func (r *reconciler) contradictions(ref target.Ref) int {
	n, _ := r.against.Load(ref)
	against, _ := n.(int)
	return against
}

func (r *reconciler) measure(ctx context.Context, o object) (time.Duration, error) {
	was := o.reachable()
	p := r.probe.Probe(ctx, o.ref)
	if p.err != nil && !target.Is(p.err) {
		return 0, p.err // The error is about the control cluster, not the target cluster.
	}
	j := judge(was, o.status.Version, r.contradictions(o.ref), p)
	r.against.Store(o.ref, j.against)

	before := o.status.DeepCopy()
	o.status.SetConditions(j.condition)
	o.status.Version = j.version
	o.status.Outage = outage(o.status.Outage, was, j.condition)
	could := o.status.GetCondition(v1alpha1.ConditionAuthorized)
	if p.rights != nil {
		o.status.SetConditions(authorized(could, *p.rights))
	}
	if p.client != nil {
		o.status.ClientCertificates = p.client
	}
	if equality.Semantic.DeepEqual(before, o.status) {
		return j.next, nil
	}
	if err := r.client.Status().Update(ctx, o.Object); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if was.Status != j.condition.Status {
		r.recordReachability(o, p.err)
	}
	if can := o.status.GetCondition(v1alpha1.ConditionAuthorized); can.Status != could.Status && can.Status == corev1.ConditionFalse {
		r.record.Event(o.Object, event.Warning(v1alpha1.ReasonRightsMissing, errors.New(can.Message)))
	}
	return j.next, nil
}

func (r *reconciler) recordReachability(o object, err error) {
	if err != nil {
		r.record.Event(o.Object, event.Warning(v1alpha1.EventReachability, err))
		return
	}
	r.record.Event(o.Object, event.Normal(v1alpha1.EventReachability, "The target cluster can be reached; its version is "+o.status.Version))
}

func (r *reconciler) hold(ctx context.Context, o object) error {
	if meta.FinalizerExists(o, v1alpha1.FinalizerInUse) {
		return nil
	}
	return r.patch(ctx, o, func() { meta.AddFinalizer(o, v1alpha1.FinalizerInUse) })
}

func (r *reconciler) release(ctx context.Context, o object) error {
	if !meta.FinalizerExists(o, v1alpha1.FinalizerInUse) {
		return nil
	}
	r.probe.Forget(o.ref)
	r.against.Delete(o.ref)
	return client.IgnoreNotFound(r.patch(ctx, o, func() { meta.RemoveFinalizer(o, v1alpha1.FinalizerInUse) }))
}

func (r *reconciler) patch(ctx context.Context, o object, change func()) error {
	was, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("unexpected type %T", o.Object)
	}
	change()
	return r.client.Patch(ctx, o.Object, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}
