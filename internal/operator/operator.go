package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/drover-dev/drover/internal/undecoded"
	"github.com/drover-dev/drover/internal/urgency"
)

const (
	// gracePeriod is how long reconciles may take to end after a stop signal. A running creation ends within it,
	// and is recorded.
	gracePeriod = 30 * time.Second

	leaseDuration = 60 * time.Second
	renewDeadline = 50 * time.Second

	stateMetricsInterval = 5 * time.Second
	readyTimeout         = time.Second

	disabled = "0" // the bind address by which controller-runtime serves nothing
)

// An Operator is one provider.
type Operator struct {
	// Name of the binary. The lease for leader election is called
	// crossplane-leader-election-<name>.
	Name string
	// Description for --help, one line.
	Description string
	// AddToScheme registers the types that the controllers use, beyond those
	// of Kubernetes.
	AddToScheme func(*runtime.Scheme) error
	// Flags are those that only this binary has, as a pointer to a struct for kong. It is
	// nil if there are none.
	Flags any
	// Poll is the default of --poll. Default 1m.
	Poll time.Duration
	// Concurrency is the default of --concurrency. Default 20.
	Concurrency int
	// Setup adds the controllers. Controllers of kinds whose CRD may not exist yet are added through Gated.
	Setup func(context.Context, ctrl.Manager, controller.Options) error
}

// Main parses the command line, and runs the operator until SIGTERM or SIGINT. On an error, it exits the
// process.
func Main(op Operator) {
	c, p, err := op.parser()
	if err != nil {
		panic(err) // Two structs have the same flag.
	}
	kctx, err := p.Parse(os.Args[1:])
	p.FatalIfErrorf(err)
	kctx.FatalIfErrorf(Run(ctrl.SetupSignalHandler(), op, c.Flags))
}

// Parse arguments as Main does, into the result and into the operator's own flags.
func Parse(op Operator, args []string) (Flags, error) {
	c, p, err := op.parser()
	if err != nil {
		return Flags{}, err
	}
	_, err = p.Parse(args)
	return c.Flags, err
}

func (op Operator) parser() (*commandLine, *kong.Kong, error) {
	c := &commandLine{}
	if op.Flags != nil {
		c.Plugins = kong.Plugins{op.Flags}
	}
	p, err := kong.New(c, kong.Name(op.Name), kong.Description(op.Description), kong.UsageOnError(), op.defaults())
	return c, p, err
}

// A commandLine is the Flags that every binary has, and those of one binary.
type commandLine struct {
	Flags
	kong.Plugins
}

// defaults of flags that differ between operators.
func (op Operator) defaults() kong.Vars {
	return kong.Vars{"poll": cmp.Or(op.Poll, time.Minute).String(), "concurrency": strconv.Itoa(cmp.Or(op.Concurrency, 20))}
}

// Run runs the operator until ctx is done.
func Run(ctx context.Context, op Operator, f Flags) error {
	zl := zap.New(zap.UseDevMode(f.Debug))
	ctrl.SetLogger(zl)
	log := logging.NewLogrLogger(zl.WithName(op.Name))

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find the API server: %w", err)
	}
	cfg.WarningHandlerWithContext = warnings{next: ctrllog.NewKubeAPIWarningLogger(ctrllog.KubeAPIWarningLoggerOptions{})}
	dropped := undecoded.NewTracker()
	mgr, err := newManager(ratelimiter.LimitRESTConfig(cfg, f.MaxReconcileRate), op, f, dropped)
	if err != nil {
		return err
	}
	if err := dropped.Report(mgr, op.Name); err != nil {
		return fmt.Errorf("cannot report objects that cannot be decoded: %w", err)
	}
	o, err := controllerOptions(log, f)
	if err != nil {
		return err
	}
	if o.Gate, err = newGate(ctx, mgr, o); err != nil {
		return fmt.Errorf("cannot set up the gate of the CRDs: %w", err)
	}
	if err := op.Setup(ctx, mgr, o); err != nil {
		return fmt.Errorf("cannot set up the controllers: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("cannot run the controllers: %w", err)
	}
	return nil
}

func newManager(cfg *rest.Config, op Operator, f Flags, dropped *undecoded.Tracker) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme, op.AddToScheme); err != nil {
		return nil, fmt.Errorf("cannot register the API types: %w", err)
	}
	lease, renew, grace := leaseDuration, renewDeadline, gracePeriod
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                f.LeaderElection,
		LeaderElectionID:              "crossplane-leader-election-" + op.Name,
		LeaderElectionNamespace:       f.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		GracefulShutdownTimeout:       &grace,
		Metrics:                       metricsserver.Options{BindAddress: cmp.Or(f.MetricsBindAddress, disabled)},
		HealthProbeBindAddress:        cmp.Or(f.HealthProbeBindAddress, disabled),
		PprofBindAddress:              f.PprofBindAddress,
		Cache:                         cacheOptions(f.Sync, dropped),
		// A cache of Secrets would hold those of the whole cluster.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the controller manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("cannot add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr.GetCache())); err != nil {
		return nil, fmt.Errorf("cannot add the readiness check: %w", err)
	}
	return mgr, nil
}

// cacheOptions leave out the schemas of CRDs, of which the gate reads only names and conditions.
// They would be most of what a provider keeps in memory.
func cacheOptions(sync time.Duration, dropped *undecoded.Tracker) cache.Options {
	return cache.Options{
		SyncPeriod:  &sync,
		NewInformer: dropped.NewInformer,
		ByObject: map[client.Object]cache.ByObject{
			&apiextensionsv1.CustomResourceDefinition{}: {Transform: customresourcesgate.TransformStripCRDSchema},
		},
	}
}

func cachesSynced(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), readyTimeout)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return fmt.Errorf("caches are not synced")
		}
		return nil
	}
}

func controllerOptions(log logging.Logger, f Flags) (controller.Options, error) {
	mrs, states := managed.NewMRMetricRecorder(), statemetrics.NewMRStateMetrics()
	o := controller.Options{
		Logger:                  log,
		GlobalRateLimiter:       urgency.NewLimiter(f.MaxReconcileRate),
		PollInterval:            f.Poll,
		MaxConcurrentReconciles: f.Concurrency,
		Features:                &feature.Flags{},
		MetricOptions: &controller.MetricOptions{
			PollStateMetricInterval: stateMetricsInterval,
			MRMetrics:               mrs,
			MRStateMetrics:          states,
		},
	}
	o.Features.Enable(feature.EnableBetaManagementPolicies)
	if err := metrics.Registry.Register(mrs); err != nil {
		return o, fmt.Errorf("cannot register the metrics of managed resources: %w", err)
	}
	if err := metrics.Registry.Register(states); err != nil {
		return o, fmt.Errorf("cannot register the state metrics of managed resources: %w", err)
	}
	return o, nil
}
