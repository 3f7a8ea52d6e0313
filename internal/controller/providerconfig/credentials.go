package providerconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/stored"
)

// Kinds of provider configs, as references name them.
const (
	NamespacedKind = "ProviderConfig"
	ClusterKind    = "ClusterProviderConfig"
)

// Get reads the provider config that mg references, and returns it as an object of its kind. A
// ProviderConfig is read from mg's namespace.
func (configs Configs) Get(ctx context.Context, c client.Reader, mg resource.ModernManaged) (client.Object, error) {
	ref := mg.GetProviderConfigReference()
	key := types.NamespacedName{Name: ref.Name}
	var pc client.Object
	switch ref.Kind {
	case NamespacedKind:
		if configs.Namespaced == nil {
			return nil, fmt.Errorf("spec.providerConfigRef.kind: invalid value %q: must be %s", ref.Kind, ClusterKind)
		}
		key.Namespace = mg.GetNamespace()
		pc = configs.Namespaced.DeepCopyObject().(client.Object)
	case ClusterKind:
		pc = configs.Cluster.DeepCopyObject().(client.Object)
	default:
		return nil, fmt.Errorf("spec.providerConfigRef.kind: invalid value %q: must be %s or %s", ref.Kind, NamespacedKind, ClusterKind)
	}
	if err := c.Get(ctx, key, pc); err != nil {
		return nil, fmt.Errorf("spec.providerConfigRef: cannot get %s %q: %w", ref.Kind, ref.Name, err)
	}
	if fields := stored.Faults(pc); fields != "" {
		return nil, fmt.Errorf("spec.providerConfigRef: cannot decode %s %q: %s", ref.Kind, ref.Name, fields)
	}
	return pc, nil
}

// A SecretKey is the location of credentials.
type SecretKey struct{ Namespace, Name, Key string }

// withCredentials is a configuration of a cloud.
type withCredentials interface {
	// CredentialsSecret returns the location of the credentials, nil if they are those of the provider's pod.
	CredentialsSecret() *xpv2.SecretKeySelector
}

// ReadCredentials decodes the JSON object in the Secret of a configuration into credentials. They stay empty if the configuration
// uses the identity of the provider's pod. No error contains values of the Secret; like is an example of the expected object.
func ReadCredentials(ctx context.Context, c client.Reader, pc client.Object, credentials any, like string) error {
	if config, ok := pc.(withCredentials); ok && config.CredentialsSecret() == nil {
		return nil
	}
	key, err := SecretOf(pc)
	if err != nil {
		return err
	}
	return key.Read(ctx, c, credentials, like)
}

// SecretOf returns the location of the credentials of a configuration. A ProviderConfig reads only its own namespace:
// otherwise a user with access to one namespace could use the Secrets of another.
func SecretOf(pc client.Object) (SecretKey, error) {
	config, ok := pc.(withCredentials)
	if !ok || config.CredentialsSecret() == nil {
		return SecretKey{}, errors.New("spec.credentials of the provider config: names no Secret")
	}
	ref := config.CredentialsSecret()
	k := SecretKey{Namespace: ref.Namespace, Name: ref.Name, Key: ref.Key}
	if ns := pc.GetNamespace(); ns != "" {
		k.Namespace = ns
	}
	return k, nil
}

func (k SecretKey) String() string {
	return fmt.Sprintf("Secret %s/%s, key %q", k.Namespace, k.Name, k.Key)
}

// Read decodes the JSON object at the key into credentials. No error contains values of the Secret;
// like is an example of the expected object.
func (k SecretKey) Read(ctx context.Context, c client.Reader, credentials any, like string) error {
	s := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: k.Namespace, Name: k.Name}, s); err != nil {
		return fmt.Errorf("spec.credentials.secretRef of the provider config: cannot get Secret %s/%s: %w", k.Namespace, k.Name, err)
	}
	b, ok := s.Data[k.Key]
	if !ok {
		return fmt.Errorf("%s: there is no such key", k)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(credentials); err != nil {
		return fmt.Errorf("%s: must be a JSON object like %s", k, like)
	}
	return nil
}
