package inventory

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/operator"
)

// A Kind is the kind of the inventories of one provider.
type Kind[T Inventory] struct {
	Kind    schema.GroupVersionKind
	Object  T
	List    resource.ManagedList
	Connect Connect[T]
	// Failed is called with the error of a Lister that failed. It may be nil.
	Failed func(T, error)
}

// Setup adds the controller of the kind as soon as its CRD exists. The provider must be allowed to
// list the kinds of VMs that its inventories name.
func (k Kind[T]) Setup(mgr ctrl.Manager, o controller.Options) {
	operator.Gated(mgr, o, func() error {
		return mr.Controller[T]{
			Kind:      k.Kind,
			Object:    k.Object,
			List:      k.List,
			Connector: &connector[T]{connect: k.Connect, failed: k.Failed, live: mgr.GetAPIReader(), now: time.Now},
			Again:     &mr.Again{},
			Recorder:  mr.RecorderFor(mgr, k.Kind),
			Options:   []managed.ReconcilerOption{managed.WithPollIntervalHook(poll[T](time.Now))},
		}.Setup(mgr, o)
	}, k.Kind)
}

func poll[T Inventory](now func() time.Time) managed.PollIntervalHook {
	return func(mg resource.Managed, interval time.Duration) time.Duration {
		i, ok := mg.(T)
		if !ok {
			return interval
		}
		return next(now(), *i.Seen(), i.Asked())
	}
}
