package native

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/attempt"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/creation"
	"github.com/drover-dev/drover/internal/idle"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/operator"
)

// Setup adds all controllers of a provider: of its VMs, its configurations and its inventories.
func Setup[T Resource, C any, I inventory.Inventory](mgr ctrl.Manager, o controller.Options, p Provider[T, C], inventories InventoryKind[I]) error {
	if err := providerconfig.Setup(mgr, o, p.Configs, append([]providerconfig.UserList{p.List}, p.Users...)...); err != nil {
		return fmt.Errorf("cannot set up the controllers of provider configs: %w", err)
	}
	again, recorder := &mr.Again{}, mr.RecorderFor(mgr, p.Kind)
	process := NewProcess(p, mgr.GetClient(), recorder, again)
	if err := mgr.Add(process.pool); err != nil {
		return err
	}
	inventories.setup(mgr, o, connectInventory[I](process.shared))
	operator.Gated(mgr, o, func() error {
		return mr.Controller[T]{
			Kind: p.Kind, Object: p.Object, List: p.List,
			Connector: process.shared, Again: again, Recorder: recorder,
			Options: process.options(),
		}.Setup(mgr, o)
	}, append(p.Configs.Kinds(), p.Kind)...)
	return nil
}

// A Requeuer requests a reconcile of an object after a delay. [mr.Again] is one.
type Requeuer interface {
	After(obj client.Object, d time.Duration)
}

// A Process is the state of one process of a provider.
type Process[T Resource, C any] struct{ *shared[T, C] }

// NewProcess returns the state of a process that has just started.
func NewProcess[T Resource, C any](p Provider[T, C], c client.Client, record event.Recorder, again Requeuer) Process[T, C] {
	records := creation.New(managed.NewRetryingCriticalAnnotationUpdater(c))
	records.Findable = true
	return Process[T, C]{&shared[T, C]{
		provider: p, kube: c, pool: newPool[T](time.Now), memory: &attempt.Memory[note]{},
		records: records, record: record, again: again, now: time.Now,
	}}
}

// Reconciler returns the reconciler of VMs, without the watches and the poll of a controller.
func (p Process[T, C]) Reconciler(mgr ctrl.Manager) *managed.Reconciler {
	return managed.NewReconciler(mr.Quiet(mgr), resource.ManagedKind(p.provider.Kind), append([]managed.ReconcilerOption{
		managed.WithTypedExternalConnector[T](p.shared),
		managed.WithManagementPolicies(),
		managed.WithRecorder(p.record),
	}, p.options()...)...)
}

// Lister returns the Lister of the account of mg's configuration.
func (p Process[T, C]) Lister(ctx context.Context, mg resource.ModernManaged) (inventory.Lister, error) {
	return p.lister(ctx, mg)
}

// Idle closes the accounts that were unused for some minutes.
func (p Process[T, C]) Idle() { p.pool.Sweep(context.Background(), idle.After) }

// options of the managed reconciler.
func (s *shared[T, C]) options() []managed.ReconcilerOption {
	initializers := []managed.Initializer{managed.InitializerFn(s.records.Initialize)}
	if !s.provider.NamedByCloud {
		initializers = append(initializers, managed.InitializerFn(mr.NameByUID))
	}
	return []managed.ReconcilerOption{
		managed.WithInitializers(initializers...),
		managed.WithCriticalAnnotationUpdater(s.records),
		// If the result of a creation is unknown, its VM is found by the external name or by FindLost.
		managed.WithDeterministicExternalName(true),
		managed.WithCreationGracePeriod(0),
	}
}
