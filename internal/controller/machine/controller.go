package machine

import (
	"context"
	"errors"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/installations"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/stored"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// afterConflict the cache has the change that caused the conflict.
	afterConflict = 50 * time.Millisecond

	// afterError is the first retry of an error that only a user, or time, can fix.
	afterError = 15 * time.Second

	// afterBusy a call is retried that was cut short in favor of other clusters.
	afterBusy = 2 * time.Second

	// annotationPaused is Crossplane's own annotation, on every resource that it reconciles.
	annotationPaused = "crossplane.io/paused"
)

var machineKind = machinev1alpha1.MachineGroupVersionKind

// A Reconciler reconciles Machines.
type Reconciler struct {
	// client reads from the manager's cache, and writes.
	client client.Client
	// resources reads VMs, companions, revisions and required resources from a cache of
	// unstructured objects.
	resources client.Reader
	// live reads from the API server.
	live client.Reader

	steps   *pipeline.StepCache
	runner  *pipeline.Runner
	watches *watches
	// configs finds the kinds of providers' configurations.
	configs *configKinds
	// inventories report VMs for which the provider reports no state.
	inventories *inventories

	tokens *jointoken.Keeper
	nodes  *nodeTools

	// installations of Drover that are known, read from the API server.
	installations func(context.Context) (installations.Known, error)

	written *overlay
	// parameters of Nodes as decided last, by the UIDs of Machines.
	parameters *memory[nodeMemory]

	record event.Recorder
	log    logging.Logger
	now    func() time.Time
}

// Reconcile reconciles a Machine.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &machinev1alpha1.Machine{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		if kerrors.IsNotFound(err) {
			r.forget(req)
			_, err := r.letGoStrays(ctx, req.NamespacedName, nil)
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, err
	}
	problem, err := r.letGoStrays(ctx, req.NamespacedName, m)
	if err != nil {
		return reconcile.Result{}, err
	}
	if before, ok := r.written.uidOf(req.NamespacedName); ok && before != m.GetUID() {
		r.forget(req) // The Machine was deleted and created again between two reconciles.
	}
	m = r.freshest(m)
	r.written.knows(req.NamespacedName, m.GetUID())
	if problem != nil {
		return reconcile.Result{RequeueAfter: afterError}, r.refuse(ctx, m, problem)
	}
	result, err := r.reconcile(ctx, m)
	switch {
	case isStale(err):
		return reconcile.Result{RequeueAfter: afterConflict}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return result, nil
}

// isStale reports whether an error means that the cache lags behind the API server. Such an error is retried
// soon, without an event or a condition.
func isStale(err error) bool {
	return kerrors.IsConflict(err) || errors.Is(err, errMachineChanged)
}

func (r *Reconciler) reconcile(ctx context.Context, m *machinev1alpha1.Machine) (reconcile.Result, error) {
	switch {
	case m.GetAnnotations()[annotationPaused] == "true":
		return reconcile.Result{}, r.pause(ctx, m)
	case m.GetDeletionTimestamp() != nil:
		return r.terminate(ctx, m)
	}
	if next := finalizer.StateOf(m).Next(true); next != finalizer.Nothing {
		return reconcile.Result{}, finalizer.Take(ctx, r.client, machineKind, m, next)
	}
	if fields := stored.Faults(m); fields != "" {
		// The defaults of the fields would decide about the VM otherwise. A deletion uses them, so that it ends.
		return reconcile.Result{}, r.refuse(ctx, m, plan.NotDecodable(fields))
	}
	return r.advance(ctx, m)
}

// forget removes a deleted Machine from the memory of the process.
func (r *Reconciler) forget(req reconcile.Request) {
	uid, ok := r.written.uidOf(req.NamespacedName)
	if !ok {
		return
	}
	r.written.dropMachine(req.NamespacedName)
	r.parameters.drop(uid)
	r.tokens.Forget(uid)
	r.nodes.forget(uid)
	r.watches.forget(req.NamespacedName)
}

// freshest returns the newer one of the Machine in the cache and the Machine as this process wrote it last.
func (r *Reconciler) freshest(cached *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	if obj, ok := r.written.get(overlayKey{kind: machineKind.GroupKind(), name: client.ObjectKeyFromObject(cached)}, cached); ok {
		if m, ok := obj.(*machinev1alpha1.Machine); ok {
			return m.DeepCopy()
		}
	}
	m := cached.DeepCopy()
	m.SetGroupVersionKind(machineKind)
	m.SetManagedFields(nil)
	return m
}

func refOf(m *machinev1alpha1.Machine) target.Ref { return target.RefOf(m) }
