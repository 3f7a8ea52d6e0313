package lift

import (
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	tjcontroller "github.com/crossplane/upjet/v2/pkg/controller"
	"github.com/crossplane/upjet/v2/pkg/controller/handler"
	"github.com/crossplane/upjet/v2/pkg/metrics"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/creation"
	"github.com/drover-dev/drover/internal/operator"
	"github.com/drover-dev/drover/internal/reboot"
	"github.com/drover-dev/drover/internal/urgency"
)

// A conflict, which is usual right after a creation, does not deserve the second with which
// crossplane-runtime's rate limiter begins.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Minute
)

// reconcileTimeout bounds one observation with the actions that follow from it.
const reconcileTimeout = 3 * time.Minute

// Setup adds a controller for each resource of o.Provider, once its CRD exists.
func Setup(mgr ctrl.Manager, o tjcontroller.Options, behaviours map[string]Behaviour) error {
	for name, r := range o.Provider.Resources {
		b, ok := behaviours[name]
		if !ok {
			return fmt.Errorf("%s: no behaviour is configured", name)
		}
		group := o.Provider.RootGroup
		if r.ShortGroup != "" {
			group = r.ShortGroup + "." + group
		}
		kind := schema.GroupVersionKind{Group: group, Version: r.Version, Kind: r.Kind}
		operator.Gated(mgr, o.Options, func() error { return setup(mgr, o, name, kind, b) }, kind)
	}
	return nil
}

func setup(mgr ctrl.Manager, o tjcontroller.Options, resourceName string, kind schema.GroupVersionKind, b Behaviour) error {
	name := managed.ControllerName(kind.String())
	log := o.Logger.WithValues("controller", name)
	events := handler.NewEventHandler(handler.WithLogger(log))
	recorder := mr.NewRecorder(event.NewAPIRecorder(mgr.GetEventRecorderFor(name)))
	requeue := func(mg resource.Managed, after time.Duration) {
		time.AfterFunc(after, func() {
			events.RequestReconcile(handler.NoRateLimiter, client.ObjectKeyFromObject(mg), nil)
		})
	}
	if m := o.MetricOptions; m != nil {
		list, err := mgr.GetScheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return err
		}
		ml, ok := list.(resource.ManagedList)
		if !ok {
			return fmt.Errorf("%T is not a list of managed resources", list)
		}
		states := statemetrics.NewMRStateRecorder(mgr.GetClient(), log, m.MRStateMetrics, ml, m.PollStateMetricInterval)
		if err := mgr.Add(states); err != nil {
			return fmt.Errorf("cannot record state metrics: %w", err)
		}
	}

	obj, err := mgr.GetScheme().New(kind)
	if err != nil {
		return err
	}
	co := o.ForControllerRuntime()
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff)
	judge := urgency.OfManaged(mgr.GetCache(), obj.(client.Object))
	co.NewQueue = urgency.NewQueue(judge)
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(co).
		WithEventFilter(resource.DesiredStateChanged()).
		Watches(obj.(client.Object), events).
		Complete(urgency.Limit(name, awaitSecrets(mr.Guard(mgr.GetClient(), obj.(client.Object), Reconciler(mgr, o, resourceName, kind, b, recorder, requeue)), mgr.GetClient(), func() ujresource.Terraformed {
			return obj.DeepCopyObject().(ujresource.Terraformed)
		}, time.Now), judge, o.GlobalRateLimiter))
}

// Reconciler returns the reconciler of a lifted resource. The function requeue requests a reconcile after a
// delay.
func Reconciler(mgr ctrl.Manager, o tjcontroller.Options, resourceName string, kind schema.GroupVersionKind, b Behaviour,
	recorder event.Recorder, requeue func(mg resource.Managed, after time.Duration)) reconcile.Reconciler {
	log := o.Logger.WithValues("controller", managed.ControllerName(kind.String()))
	creations := creation.New(managed.NewRetryingCriticalAnnotationUpdater(mgr.GetClient()))
	creations.Findable = b.Find != nil
	recorded := metrics.NewMetricRecorder(kind, mgr, o.PollInterval)
	c := &connector{
		ExternalConnector: newConnector(mgr.GetClient(), o, resourceName, log, recorded),
		existing:          newConnector(briefly(mgr.GetClient(), clock.RealClock{}), o, resourceName, log, recorded),
		kube:              mgr.GetClient(),
		behaviour:         b,
		creations:         creations,
		forgetDeletion: func(tr ujresource.Terraformed) {
			o.OperationTrackerStore.Tracker(tr).SetDeleted(false)
		},
		created: func(tr ujresource.Terraformed) string { return o.OperationTrackerStore.Tracker(tr).GetTfID() },
		requeue: requeue,
		repeats: &repeats{at: map[types.UID]time.Time{}},
	}
	opts := []managed.ReconcilerOption{
		managed.WithExternalConnector(c),
		managed.WithLogger(log),
		managed.WithRecorder(recorder),
		managed.WithFinalizer(tjcontroller.NewOperationTrackerFinalizer(o.OperationTrackerStore, resource.NewAPIFinalizer(mr.Quiet(mgr).GetClient(), managed.FinalizerName))),
		managed.WithTimeout(reconcileTimeout),
		managed.WithInitializers(managed.InitializerFn(creations.Initialize)),
		managed.WithCriticalAnnotationUpdater(creations),
		managed.WithCreationGracePeriod(b.CreationGrace),
		managed.WithDeterministicExternalName(b.Find != nil),
		managed.WithPollInterval(o.PollInterval),
		managed.WithMinPollInterval(mr.MinPollInterval),
		managed.WithPollIntervalHook(func(mg resource.Managed, interval time.Duration) time.Duration {
			return pollInterval(time.Now(), mg, interval)
		}),
		managed.WithManagementPolicies(),
	}
	if o.MetricOptions != nil {
		opts = append(opts, managed.WithMetricRecorder(o.MetricOptions.MRMetrics))
	}
	return managed.NewReconciler(mr.Quiet(mgr), resource.ManagedKind(kind), opts...)
}

// newConnector returns upjet's connector for the library that the Terraform provider is written with.
func newConnector(c client.Client, o tjcontroller.Options, resourceName string, log logging.Logger, m *metrics.MetricRecorder) managed.ExternalConnector {
	r := o.Provider.Resources[resourceName]
	if r.ShouldUseTerraformPluginSDKClient() {
		return tjcontroller.NewTerraformPluginSDKConnector(c, o.SetupFn, r, o.OperationTrackerStore,
			tjcontroller.WithTerraformPluginSDKLogger(log),
			tjcontroller.WithTerraformPluginSDKMetricRecorder(m),
			tjcontroller.WithTerraformPluginSDKManagementPolicies(true))
	}
	return tjcontroller.NewTerraformPluginFrameworkConnector(c, o.SetupFn, r, o.OperationTrackerStore,
		tjcontroller.WithTerraformPluginFrameworkLogger(log),
		tjcontroller.WithTerraformPluginFrameworkMetricRecorder(m),
		tjcontroller.WithTerraformPluginFrameworkManagementPolicies(true))
}

// pollInterval is short for a resource that is becoming Ready, after its creation or a reboot, and interval for any other.
func pollInterval(now time.Time, mg resource.Managed, interval time.Duration) time.Duration {
	reason, rebooted := mg.GetCondition(xpv2.TypeReady).Reason, reboot.AcceptedAt(mg)
	switch {
	case reason == xpv2.ReasonCreating:
		since := meta.GetExternalCreateSucceeded(mg)
		if rebooted.After(since) {
			since = rebooted
		}
		return pollWhileChanging(now, since, interval)
	case reason == xpv2.ReasonUnavailable && !rebooted.IsZero():
		// Some clouds report a VM as stopped while it starts.
		interval = pollWhileChanging(now, rebooted, interval)
	}
	if wantsConsole(mg) {
		return min(interval, consolePoll)
	}
	return interval
}
