package machine

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/target"
)

// rounds bounds how often the pipeline runs in one reconcile: once, again after the join token gave it new
// facts, and again after the Node did.
const rounds = 3

// advance reconciles a Machine that is not being deleted.
func (r *Reconciler) advance(ctx context.Context, m *machinev1alpha1.Machine) (reconcile.Result, error) {
	chosen, err := r.choose(ctx, m)
	if err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	if chosen.problem != nil {
		return reconcile.Result{RequeueAfter: time.Minute}, r.refuse(ctx, m, chosen.problem)
	}
	if chosen.pin {
		// The reconcile continues, since its own write does not enqueue another one.
		if err := r.pin(ctx, m, chosen.revision.GetName()); err != nil {
			return reconcile.Result{}, err
		}
	}
	f := &facts{machine: m, revision: chosen.revision.GetName()}
	if f.steps, err = r.steps.StepsOf(chosen.revision); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	if f.observed, err = r.observe(ctx, m, f.steps); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	var problem *plan.Problem
	if f.observed, problem, err = r.takeOver(ctx, m, f.steps, f.observed); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	if problem != nil {
		return reconcile.Result{RequeueAfter: afterError}, r.refuse(ctx, m, problem)
	}
	var vm metav1.Object
	if there := f.observed[machinev1alpha1.ResourceVM]; there != nil {
		vm = there
	}
	f.report = r.inventories.report(inventoryKindOf(f.steps), client.ObjectKeyFromObject(m), f.observed[machinev1alpha1.ResourceVM])
	if err := r.identify(ctx, m, vm); err != nil {
		return reconcile.Result{}, err
	}
	if f.join, err = r.tokens.Observe(ctx, m); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	d, err := r.settle(ctx, f)
	if err != nil {
		return r.unsettled(ctx, f, d, err)
	}
	return r.conclude(ctx, f, d)
}

// settle runs the pipeline until it has decided by all facts that are available now.
func (r *Reconciler) settle(ctx context.Context, f *facts) (decision, error) {
	if err := r.recallNode(ctx, f); err != nil {
		return decision{}, err
	}
	for round := 1; ; round++ {
		d, err := r.run(ctx, f)
		if err != nil || round == rounds {
			return d, err
		}
		changed := false
		if f.knowsNode(d) {
			changed = r.bootstrap(ctx, f, d)
		}
		synced, err := r.syncNode(ctx, f, d)
		if err != nil {
			return d, err
		}
		if !changed && !synced {
			return d, nil
		}
	}
}

// conclude writes the decision: first to the Machine, then to its resources.
func (r *Reconciler) conclude(ctx context.Context, f *facts, d decision) (reconcile.Result, error) {
	if err := r.recordVM(ctx, f, d); err != nil {
		return reconcile.Result{}, err
	}
	written, err := r.report(ctx, f, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.launch(ctx, f, d, written); err != nil {
		return reconcile.Result{}, r.fail(ctx, f.machine, err)
	}
	return reconcile.Result{RequeueAfter: r.again(f, d)}, r.recovered(ctx, f.machine)
}

// again is when to reconcile again if no event arrives.
func (r *Reconciler) again(f *facts, d decision) time.Duration {
	after := d.TTL
	sooner := func(wish time.Duration) {
		if wish > 0 && (after == 0 || wish < after) {
			after = wish
		}
	}
	if f.node != nil {
		sooner(f.node.Again)
		if f.node.Observation.Error != "" {
			sooner(afterError)
		}
	}
	sooner(f.joinDue)
	if f.missingConfig != nil {
		sooner(afterError)
	}
	switch {
	case target.Is(f.joinError, target.Busy):
		sooner(afterBusy)
	case f.joinError != nil:
		sooner(afterError)
	}
	if !f.join.Renew.IsZero() {
		sooner(max(f.join.Renew.Sub(r.now()), time.Second))
	}
	return after
}

// unsettled reports that the pipeline gave no result. The resources are not changed.
func (r *Reconciler) unsettled(ctx context.Context, f *facts, d decision, err error) (reconcile.Result, error) {
	var fatal *pipeline.FatalError
	if errors.As(err, &fatal) {
		return reconcile.Result{RequeueAfter: time.Minute}, r.reportFatal(ctx, f.machine, d, fatal)
	}
	return reconcile.Result{}, r.fail(ctx, f.machine, err)
}
