package machine

import (
	"context"
	"errors"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/installations"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// afterConflict the cache has the change that caused the conflict.
	afterConflict = 50 * time.Millisecond

	// afterError is the first retry of an error that only a user, or time, can fix.
	afterError = 15 * time.Second

	// afterBusy a call is retried that was cut short in favor of other clusters.
	afterBusy = 2 * time.Second
)

// errMachineChanged is for a Machine that the cache shows alive, and that does not exist, or is being deleted,
// in the API server.
var errMachineChanged = errors.New("the Machine changed: nothing is created for it")

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
	nodes  *nodekeeper.Tools

	// installations of Drover that are known, read from the API server.
	installations func(context.Context) (installations.Known, error)

	written *overlay
	// parameters of Nodes as decided last, by the UIDs of Machines.
	parameters *memory[nodekeeper.Memory]

	record event.Recorder
	log    logging.Logger
	now    func() time.Time
}

// isStale reports whether an error means that the cache lags behind the API server. Such an error is retried
// soon, without an event or a condition.
func isStale(err error) bool {
	return kerrors.IsConflict(err) || errors.Is(err, errMachineChanged)
}

func refOf(m *machinev1alpha1.Machine) target.Ref { return target.RefOf(m) }

func isTrue(m *machinev1alpha1.Machine, annotation string) bool {
	return m.GetAnnotations()[annotation] == "true"
}
