package nutanix

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// An account is a Prism Central that one user accesses.
type account struct {
	client *prism
	now    func() time.Time
	vms    *native.Listing[machine]
	refs   *native.References

	mu sync.Mutex
	// views are the views of VMs by external name, from the observation for the step that follows it.
	views native.Views[view]
	// unreadable are the times when VMs that were just created could first not be read, by the task of the creation.
	unreadable map[string]time.Time
}

var _ native.Account[*v1alpha1.VirtualMachine] = &account{}

// open returns a function that opens an account. Its calls use the transport next, or the network if next is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, c credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
		p, err := newClient(v1alpha1.SpecOf(pc), c, next)
		if err != nil {
			return nil, err
		}
		return &account{client: p, now: now, vms: native.NewListing[machine](), refs: native.NewReferences(now), unreadable: map[string]time.Time{}}, nil
	}
}

// A cluster is a cluster that is registered with Prism Central, or Prism Central itself.
type cluster struct {
	ExtID  string `json:"extId"`
	Name   string `json:"name"`
	Config struct {
		Function []string `json:"clusterFunction"`
	} `json:"config"`
}

func (c cluster) is(function string) bool { return slices.Contains(c.Config.Function, function) }

// Functions of clusters.
const (
	functionPrismCentral = "PRISM_CENTRAL"
	functionAOS          = "AOS"
)

// Place is the UUID of Prism Central, which is one of the clusters that it lists.
func (a *account) Place(ctx context.Context) (string, error) {
	clusters, err := a.listClusters(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(clusters, func(c cluster) bool { return c.is(functionPrismCentral) })
	if i < 0 {
		return "", errors.New("the list of clusters has no Prism Central: the user needs a role that allows to view all clusters")
	}
	return "Prism Central " + clusters[i].ExtID, nil
}

func (a *account) listClusters(ctx context.Context) ([]cluster, error) {
	out, _, err := list(ctx, a.client, pathClusters, nil, func(c cluster) string { return c.ExtID })
	return out, classify("cannot list the clusters of Prism Central", err)
}
