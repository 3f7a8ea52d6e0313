package local

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/terraform/localcloud"
)

// configs are the provider's kinds of configurations.
var configs = providerconfig.Configs{
	GroupVersion: v1alpha1.CRDGroupVersion,
	Namespaced:   &v1alpha1.ProviderConfig{},
	Cluster:      &v1alpha1.ClusterProviderConfig{},
}

// credentials are the contents of a provider config's Secret.
type credentials struct {
	Endpoint string `json:"endpoint"`
	Token    string `json:"token"`
}

// terraformSetup configures the Terraform provider for mg.
func terraformSetup(ctx context.Context, c client.Reader, mg resource.ModernManaged) (terraform.Setup, error) {
	cr, err := findCredentials(ctx, c, mg)
	if err != nil {
		return terraform.Setup{}, err
	}
	return terraform.Setup{
		FrameworkProvider: localcloud.New(""),
		Configuration: map[string]any{
			"endpoint": cr.Endpoint,
			"token":    cr.Token,
			// A reconcile must not wait for a VM.
			"wait": false,
		},
	}, nil
}

func findCredentials(ctx context.Context, c client.Reader, mg resource.ModernManaged) (credentials, error) {
	pc, err := configs.Get(ctx, c, mg)
	if err != nil {
		return credentials{}, err
	}
	key, err := providerconfig.SecretOf(pc)
	if err != nil {
		return credentials{}, err
	}
	cr := credentials{}
	if err := key.Read(ctx, c, &cr, `{"endpoint": "http://127.0.0.1:8088", "token": "..."}`); err != nil {
		return credentials{}, err
	}
	for field, v := range map[string]string{"endpoint": cr.Endpoint, "token": cr.Token} {
		if v == "" {
			return credentials{}, fmt.Errorf("%s: %s: must not be empty", key, field)
		}
	}
	return cr, nil
}
