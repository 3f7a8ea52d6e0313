package lift

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespaced returns upjet's setup function for namespaced managed resources, which are the only ones that
// Drover has: their reference to a ProviderConfig has a kind beside the name.
func Namespaced(setup func(context.Context, client.Reader, resource.ModernManaged) (terraform.Setup, error)) terraform.SetupFn {
	return func(ctx context.Context, c client.Client, mg resource.Managed) (terraform.Setup, error) {
		m, ok := mg.(resource.ModernManaged)
		if !ok {
			return terraform.Setup{}, fmt.Errorf("%T is not a namespaced managed resource", mg)
		}
		return setup(ctx, c, m)
	}
}
