package hcloud

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
)

// configs are the provider's kinds of configurations.
var configs = providerconfig.Configs{
	GroupVersion: v1alpha1.CRDGroupVersion,
	Namespaced:   &v1alpha1.ProviderConfig{},
	Cluster:      &v1alpha1.ClusterProviderConfig{},
}

// credentials are the contents of a provider config's Secret.
type credentials struct {
	Token string `json:"token"`
}

// findProject returns the project that mg's provider config names. It is read each time, so that a
// change takes effect at once.
func findProject(ctx context.Context, c client.Reader, mg resource.ModernManaged) (projectKey, error) {
	pc, err := configs.Get(ctx, c, mg)
	if err != nil {
		return projectKey{}, err
	}
	spec := v1alpha1.SpecOf(pc)
	key, err := providerconfig.SecretOf(pc)
	if err != nil {
		return projectKey{}, err
	}
	cr := credentials{}
	if err := key.Read(ctx, c, &cr, `{"token": "..."}`); err != nil {
		return projectKey{}, err
	}
	// Secrets often end with a line break, which is never part of the token.
	token := strings.TrimSpace(cr.Token)
	if token == "" {
		return projectKey{}, fmt.Errorf("%s: token: must not be empty", key)
	}
	return projectKey{endpoint: strings.TrimRight(cmp.Or(spec.Endpoint, hcloud.Endpoint), "/"), token: token}, nil
}
