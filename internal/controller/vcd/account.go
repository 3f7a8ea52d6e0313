package vcd

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// An account is an organization that one user accesses.
type account struct {
	client *director
	now    func() time.Time
	vms    *native.Listing[record]
	refs   *native.References

	// views are the views of VMs by external name, from the observation for the step that follows it.
	views native.Views[view]
}

var _ native.Account[*v1alpha1.VirtualMachine] = &account{}

// open returns a function that opens an account. Its calls use the transport next, or the network if next is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, c credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
		d, err := newClient(v1alpha1.SpecOf(pc), c, next)
		if err != nil {
			return nil, err
		}
		return &account{client: d, now: now, vms: native.NewListing[record](), refs: native.NewReferences(now)}, nil
	}
}

// Place is the ID of the organization.
func (a *account) Place(ctx context.Context) (string, error) {
	s, err := a.client.login(ctx, "")
	if err != nil {
		return "", classify("cannot log in", err)
	}
	return "organization " + s.Organization, nil
}

// Close ends the session.
func (a *account) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return a.client.logout(ctx)
}
