package azure

import (
	"context"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// An account is a subscription that one identity accesses.
type account struct {
	api *api
	now func() time.Time
	// The lists, which all VMs of the account share.
	vms        *native.Listing[machine]
	interfaces *native.Listing[*armnetwork.Interface]
	addresses  *native.Listing[*armnetwork.PublicIPAddress]
	disks      *native.Listing[*armcompute.Disk]
	// views are the observations of VMs, for the step that follows.
	views native.Views[view]
	// accepted are the external names of VMs, and the keys of resources beside them, whose creation was accepted a moment ago;
	// deleting are the unique IDs of VMs whose deletion was: the lists may show another state.
	accepted, deleting *native.Recent[string]
}

// A view is the part of an observation that the next step needs.
type view struct {
	// parts are the resources beside the VM that exist.
	parts []part
	// failed means that the creation of the VM failed, and stopped that it stopped before it ran.
	failed, stopped bool
}

const (
	// acceptedFor is how long a resource that is in no list counts as being created.
	acceptedFor = 30 * time.Second
	// deletingFor is how long a VM counts as being deleted after the deletion was accepted. The deletion is then requested
	// again: it may have failed.
	deletingFor = 2 * time.Minute
)

var (
	_ native.Account[*v1alpha1.VirtualMachine] = &account{}
	_ inventory.ResourceLister                 = &account{}
)

// open returns a function that opens an account. Its calls use the transport next, or the network if next is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, secret credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
		c, err := newAPI(v1alpha1.SpecOf(pc), secret, next, now)
		if err != nil {
			return nil, err
		}
		return &account{
			api: c, now: now,
			vms: native.NewListing[machine](), interfaces: native.NewListing[*armnetwork.Interface](),
			addresses: native.NewListing[*armnetwork.PublicIPAddress](), disks: native.NewListing[*armcompute.Disk](),
			accepted: native.NewRecent[string](now, acceptedFor), deleting: native.NewRecent[string](now, deletingFor),
		}, nil
	}
}

// Place is the subscription.
func (a *account) Place(context.Context) (string, error) {
	return "subscription " + a.api.subscription.ID, nil
}
