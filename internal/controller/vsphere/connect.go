package vsphere

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
)

// configs are the provider's kinds of configurations.
var configs = providerconfig.Configs{
	GroupVersion: v1alpha1.SchemeGroupVersion,
	Namespaced:   &v1alpha1.ProviderConfig{},
	Cluster:      &v1alpha1.ClusterProviderConfig{},
}

// credentials are the contents of a provider config's Secret.
type credentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

type connector struct {
	kube client.Reader
	pool *pool
	*shared
}

// Connect reads the configuration and the credentials each time, so that a change takes effect at
// once. The pool logs unused accounts out later.
func (c *connector) Connect(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.TypedExternalClient[*v1alpha1.VirtualMachine], error) {
	v, config, err := sessionOf(ctx, c.kube, c.pool, vm)
	if err != nil {
		return nil, err
	}
	return &external{shared: c.shared, config: config, vcenter: v}, nil
}

// sessionOf returns the session of the account that mg's provider config names, and the name of that
// config for errors.
func sessionOf(ctx context.Context, c client.Reader, sessions *pool, mg resource.ModernManaged) (*vcenter, string, error) {
	ref := mg.GetProviderConfigReference()
	config := fmt.Sprintf("%s %q", ref.Kind, ref.Name)
	e, err := endpointOf(ctx, c, mg)
	if err != nil {
		return nil, config, fmt.Errorf("%s: %w", config, err)
	}
	v, err := sessions.get(e)
	return v, config, err
}

func endpointOf(ctx context.Context, c client.Reader, mg resource.ModernManaged) (endpoint, error) {
	pc, err := configs.Get(ctx, c, mg)
	if err != nil {
		return endpoint{}, err
	}
	spec := v1alpha1.SpecOf(pc)
	key, err := providerconfig.SecretOf(pc)
	if err != nil {
		return endpoint{}, err
	}
	var cr credentials
	if err := key.Read(ctx, c, &cr, `{"username": "drover@vsphere.local", "password": "..."}`); err != nil {
		return endpoint{}, err
	}
	for field, v := range map[string]string{"username": cr.Username, "password": cr.Password} {
		if v == "" {
			return endpoint{}, fmt.Errorf("%s: %s: must not be empty", key, field)
		}
	}
	return endpoint{
		Server: spec.Server, Insecure: ptr.Deref(spec.InsecureSkipVerify, false), CA: spec.CABundle,
		User: cr.Username, Password: cr.Password,
	}, nil
}

func (x *external) tagsMissing(ctx context.Context, c *vim25.Client, want []v1alpha1.Tag) ([]string, error) {
	var out []string
	err := x.vcenter.tags(ctx, c, func(rc *rest.Client) error {
		var err error
		out, err = tagsMissing(ctx, rc, want, *x.vm)
		return err
	})
	return out, classify("cannot read the tags of forProvider.tags", err)
}

func (x *external) attachTags(ctx context.Context, c *vim25.Client, ids []string) error {
	err := x.vcenter.tags(ctx, c, func(rc *rest.Client) error { return attachTags(ctx, rc, ids, *x.vm) })
	return classify("cannot attach the tags of forProvider.tags", err)
}
