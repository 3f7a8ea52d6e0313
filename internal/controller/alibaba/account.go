package alibaba

import (
	"context"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// stockFor is how long images and instance types are used without reading them again.
const stockFor = 5 * time.Minute

// An account is an account of Alibaba Cloud in one region.
type account struct {
	*caller
	region string
	batch  batch
	// deleting are the IDs of instances whose deletion ECS accepted: it has no state for them.
	deleting *native.Recent[string]

	mu sync.Mutex
	// images and types are known properties, by ID. A nil entry does not exist.
	images map[string]known[image]
	types  map[string]known[instanceType]
}

// A known is a property and the time when it was read.
type known[T any] struct {
	value *T
	at    time.Time
}

var (
	_ native.Account[*v1alpha1.VirtualMachine] = &account{}
	_ inventory.ResourceLister                 = &account{}
)

// open returns a function that opens an account. Its calls use the transport next, or the network if next
// is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, c credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
		spec := v1alpha1.SpecOf(pc)
		caller, err := newCaller(spec, c, next, now)
		if err != nil {
			return nil, err
		}
		a := &account{
			caller: caller, region: spec.Region, deleting: native.NewRecent[string](now, deletingFor),
			images: map[string]known[image]{}, types: map[string]known[instanceType]{},
		}
		a.batch.read = a.describe
		return a, nil
	}
}

// Place is the ID of the account and the region.
func (a *account) Place(ctx context.Context) (string, error) {
	id, err := a.account(ctx)
	if err != nil {
		return "", classify("cannot read the ID of the account", err)
	}
	return "account " + id + ", region " + a.region, nil
}

// callRegion calls ECS with the region.
func (a *account) callRegion(ctx context.Context, action string, params map[string]string, out any) error {
	params["RegionId"] = a.region
	return a.call(ctx, action, params, out)
}
