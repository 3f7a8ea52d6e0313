package metalstack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// An account is a project of metal-stack that one user accesses.
type account struct {
	*caller
	project  string
	now      func() time.Time
	machines *native.Listing[machine]
	refs     *native.References
}

var _ native.Account[*v1alpha1.VirtualMachine] = &account{}

// open returns a function that opens an account. Its calls use the transport next, or the network if next is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, c credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
		spec := v1alpha1.SpecOf(pc)
		caller, err := newCaller(spec, c, next, now)
		if err != nil {
			return nil, err
		}
		return &account{caller: caller, project: spec.Project, now: now, machines: native.NewListing[machine](), refs: native.NewReferences(now)}, nil
	}
}

// Place is the ID of the project and the time of its creation. An installation of metal-stack has no ID of its own,
// and projects of two installations may have the same ID, such as that of the provider's own project.
func (a *account) Place(ctx context.Context) (string, error) {
	var out struct {
		Meta struct {
			ID      string `json:"id"`
			Created string `json:"created_time"`
		} `json:"meta"`
	}
	err := a.call(ctx, http.MethodGet, "/v1/project/"+url.PathEscape(a.project), nil, &out)
	if isNotFound(err) {
		return "", &native.Error{Class: fn.ErrorInvalidRequest, What: "spec.project", Err: fmt.Errorf("invalid value %q: metal-stack has no such project", a.project)}
	}
	if err != nil {
		return "", classify("cannot read project "+a.project, err)
	}
	return "project " + a.project + ", created " + out.Meta.Created, nil
}
