package mr

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/internal/urgency"
)

const (
	// Errors are retried after backoffMin, then after twice as long, up to backoffMax.
	backoffMin = 250 * time.Millisecond
	backoffMax = 30 * time.Second

	// reconcileTimeout is enough for a drain pass over a full Node.
	reconcileTimeout = time.Minute
)

// MinPollInterval is the shortest interval that the annotation crossplane.io/poll-interval of a
// resource may set: each poll of a VM is a request to its cloud, and all VMs of an account share
// the requests that it may send.
const MinPollInterval = 10 * time.Second

// A Controller of one kind of managed resource.
type Controller[T interface {
	resource.ModernManaged
	client.Object
}] struct {
	Kind      schema.GroupVersionKind
	Object    T
	List      resource.ManagedList
	Connector managed.TypedExternalConnector[T]
	// Again receives the requests of the Connector's clients for the next reconcile.
	Again *Again
	// Recorder is the event recorder of the Connector's clients.
	Recorder event.Recorder
	// Sources of reconciles in addition to the objects themselves. Optional.
	Sources []source.Source
	// Options that are applied after those of every Controller. Optional.
	Options []managed.ReconcilerOption
}

// RecorderFor returns the Recorder of the controller of a kind.
func RecorderFor(mgr ctrl.Manager, kind schema.GroupVersionKind) *Recorder {
	return NewRecorder(event.NewAPIRecorder(mgr.GetEventRecorderFor(managed.ControllerName(kind.GroupKind().String()))))
}

// Setup adds the controller to the manager.
func (c Controller[T]) Setup(mgr ctrl.Manager, o controller.Options) error {
	name := managed.ControllerName(c.Kind.GroupKind().String())
	opts := c.options(name, o)
	if m := o.MetricOptions; m != nil {
		opts = append(opts, managed.WithMetricRecorder(m.MRMetrics))
		if err := mgr.Add(statemetrics.NewMRStateRecorder(mgr.GetClient(), o.Logger, m.MRStateMetrics, c.List, m.PollStateMetricInterval)); err != nil {
			return err
		}
	}
	r := managed.NewReconciler(c.Again.manager(Quiet(mgr)), resource.ManagedKind(c.Kind), append(opts, c.Options...)...)

	co := o.ForControllerRuntime()
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	judge := urgency.OfManaged(mgr.GetCache(), c.Object)
	co.NewQueue = urgency.NewQueue(judge)
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(co).
		For(c.Object, builder.WithPredicates(predicate.Or(resource.DesiredStateChanged(), finalizerLeft)))
	for _, s := range c.Sources {
		b = b.WatchesRawSource(s)
	}
	return b.Complete(urgency.Limit(name, Guard(mgr.GetClient(), c.Object, c.Again.wrap(r)), judge, o.GlobalRateLimiter))
}

// options returns the options that every Controller has. The name is that of the controller.
func (c Controller[T]) options(name string, o controller.Options) []managed.ReconcilerOption {
	opts := []managed.ReconcilerOption{
		managed.WithTypedExternalConnector(c.Connector),
		managed.WithLogger(o.Logger.WithValues("controller", name)),
		managed.WithRecorder(c.Recorder),
		managed.WithPollInterval(o.PollInterval),
		managed.WithMinPollInterval(MinPollInterval),
		managed.WithTimeout(reconcileTimeout),
		// The default writes the object's name to its external-name annotation.
		managed.WithInitializers(),
	}
	if o.Features.Enabled(feature.EnableBetaManagementPolicies) {
		opts = append(opts, managed.WithManagementPolicies())
	}
	return opts
}

// finalizerLeft accepts the removal of a finalizer from an object that is being deleted: the managed
// reconciler waits until its own finalizer is the only one left.
var finalizerLeft = predicate.Funcs{
	CreateFunc:  func(ctrlevent.CreateEvent) bool { return false },
	DeleteFunc:  func(ctrlevent.DeleteEvent) bool { return false },
	GenericFunc: func(ctrlevent.GenericEvent) bool { return false },
	UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		return e.ObjectNew.GetDeletionTimestamp() != nil && len(e.ObjectNew.GetFinalizers()) < len(e.ObjectOld.GetFinalizers())
	},
}
