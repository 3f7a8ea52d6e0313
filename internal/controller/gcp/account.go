package gcp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/api/compute/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	cloudgcp "github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// An account is a project that one identity accesses.
type account struct {
	api  *api
	id   string
	now  func() time.Time
	vms  *native.Listing[*compute.Instance]
	refs *native.References
	// views are the instances of VMs, from the observation for the step that follows it.
	views native.Views[view]
	// deleting are the numbers of instances whose deletion was accepted.
	deleting *native.Recent[uint64]
}

// A view names an instance.
type view struct {
	zone string
	id   uint64
}

var (
	_ native.Account[*v1alpha1.VirtualMachine] = &account{}
	_ inventory.ResourceLister                 = &account{}
)

// open returns a function that opens an account. Its calls use the transport next, or the network if next is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, secret credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
		spec := v1alpha1.SpecOf(pc)
		c, err := newAPI(spec, secret, next, now)
		if err != nil {
			return nil, err
		}
		return &account{
			api: c, id: spec.ProjectID, now: now, vms: native.NewListing[*compute.Instance](), refs: native.NewReferences(now),
			deleting: native.NewRecent[uint64](now, deletingFor),
		}, nil
	}
}

// Place is the project.
func (a *account) Place(context.Context) (string, error) { return "project " + a.id, nil }

// project returns the project with the connection to it.
func (a *account) project(ctx context.Context) (*cloudgcp.Project, error) {
	p, err := a.api.connect(ctx)
	return p, classify("", err)
}

// errIncomplete is returned if a zone did not answer.
var errIncomplete = errors.New("the list of instances is incomplete, because a zone did not answer: nothing is concluded from it")
