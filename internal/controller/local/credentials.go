package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	"github.com/drover-dev/drover/internal/terraform/localcloud"
)

// credentials are what the Secret of a provider config holds.
type credentials struct {
	Endpoint string `json:"endpoint"`
	Token    string `json:"token"`
}

// terraformSetup configures the Terraform provider for mg.
func terraformSetup(ctx context.Context, c client.Client, mg resource.Managed) (terraform.Setup, error) {
	m, ok := mg.(resource.ModernManaged)
	if !ok {
		return terraform.Setup{}, fmt.Errorf("%T is not a namespaced managed resource", mg)
	}
	cr, err := findCredentials(ctx, c, m)
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
	ref := mg.GetProviderConfigReference()
	var spec v1alpha1.ProviderConfigSpec
	switch ref.Kind {
	case v1alpha1.ProviderConfigKind:
		pc := &v1alpha1.ProviderConfig{}
		if err := c.Get(ctx, types.NamespacedName{Namespace: mg.GetNamespace(), Name: ref.Name}, pc); err != nil {
			return credentials{}, fmt.Errorf("spec.providerConfigRef: cannot get ProviderConfig %q: %w", ref.Name, err)
		}
		spec = pc.Spec
		// Else who may write in one namespace could use the Secrets of another.
		spec.Credentials.SecretRef.Namespace = mg.GetNamespace()
	case v1alpha1.ClusterProviderConfigKind:
		pc := &v1alpha1.ClusterProviderConfig{}
		if err := c.Get(ctx, types.NamespacedName{Name: ref.Name}, pc); err != nil {
			return credentials{}, fmt.Errorf("spec.providerConfigRef: cannot get ClusterProviderConfig %q: %w", ref.Name, err)
		}
		spec = pc.Spec
	default:
		return credentials{}, fmt.Errorf("spec.providerConfigRef.kind: invalid value %q: must be %s or %s",
			ref.Kind, v1alpha1.ProviderConfigKind, v1alpha1.ClusterProviderConfigKind)
	}
	return readCredentials(ctx, c, spec.Credentials.SecretRef)
}

// readCredentials never says what is in the Secret.
func readCredentials(ctx context.Context, c client.Reader, ref v1alpha1.SecretKeySelector) (credentials, error) {
	s := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, s); err != nil {
		return credentials{}, fmt.Errorf("spec.credentials.secretRef of the provider config: cannot get Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	where := fmt.Sprintf("Secret %s/%s, key %q", ref.Namespace, ref.Name, ref.Key)
	b, ok := s.Data[ref.Key]
	if !ok {
		return credentials{}, fmt.Errorf("%s: there is no such key", where)
	}
	var cr credentials
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&cr); err != nil {
		return credentials{}, fmt.Errorf(`%s: must be a JSON object like {"endpoint": "http://127.0.0.1:8088", "token": "..."}`, where)
	}
	for field, v := range map[string]string{"endpoint": cr.Endpoint, "token": cr.Token} {
		if v == "" {
			return credentials{}, fmt.Errorf("%s: %s: must not be empty", where, field)
		}
	}
	return cr, nil
}
