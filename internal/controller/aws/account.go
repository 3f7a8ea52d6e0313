package aws

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	cloudaws "github.com/drover-dev/drover/internal/cloud/aws"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// An account is an account at AWS in one region.
type account struct {
	cloudaws.Clients
	region string
	now    func() time.Time
	paces  paces

	lister     *cloudaws.Lister
	instances  *native.Listing[types.Instance]
	spots      *native.Listing[types.SpotInstanceRequest]
	references *native.References
	// deleting are the IDs of instances whose termination EC2 accepted: a list may show them as running for a moment.
	deleting *native.Recent[string]
}

var (
	_ native.Account[*v1alpha1.VirtualMachine] = &account{}
	_ inventory.ResourceLister                 = &account{}
)

// open returns a function that opens an account. Its calls use the transport next, or the network if next
// is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, keys) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, k keys) (native.Account[*v1alpha1.VirtualMachine], error) {
		spec := v1alpha1.SpecOf(pc)
		clients, err := connect(spec, pc.GetNamespace() != "", k, next, now)
		if err != nil {
			return nil, err
		}
		return &account{
			Clients: clients, region: spec.Region, now: now, paces: newPaces(), lister: &cloudaws.Lister{Client: clients.EC2},
			instances: native.NewListing[types.Instance](), spots: native.NewListing[types.SpotInstanceRequest](),
			references: native.NewReferences(now), deleting: native.NewRecent[string](now, deletingFor),
		}, nil
	}
}

// Place is the ID of the account and the region.
func (a *account) Place(ctx context.Context) (string, error) {
	out, err := a.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", classify("cannot read the ID of the account", err)
	}
	if aws.ToString(out.Account) == "" {
		return "", classify("cannot read the ID of the account", errNoAccount)
	}
	return "account " + *out.Account + ", region " + a.region, nil
}

// errNoAccount is returned if the Security Token Service returns no ID of the account.
var errNoAccount = errors.New("the Security Token Service returned no ID of the account")
