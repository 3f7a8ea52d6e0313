package target

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// Readers of the control cluster.
type Readers struct {
	// Configs reads ProviderConfigs and ClusterProviderConfigs, from a cache.
	Configs client.Reader
	// Metadata reads the metadata of Secrets, from a cache.
	Metadata client.Reader
	// Live reads Secrets from the API server, when their metadata changed.
	Live client.Reader
	// Self is the provider's own access to the control cluster, for configurations
	// with the source InjectedIdentity.
	Self *rest.Config
	// InjectedIdentityFor has the names of the ClusterProviderConfigs that may use it.
	InjectedIdentityFor []string
	// Networks that a ProviderConfig may connect to.
	Networks Networks
}

// spec returns the spec and UID of the configuration, and its allowances, nil if it has no limits.
func (r Readers) spec(ctx context.Context, ref Ref) (spec v1alpha1.ProviderConfigSpec, allows *allowances, uid types.UID, err error) {
	dropped := ""
	switch ref.Kind {
	case kindProviderConfig:
		pc := &v1alpha1.ProviderConfig{}
		err = r.Configs.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, pc)
		spec, uid, dropped = pc.Spec, pc.GetUID(), stored.Faults(pc)
	case kindClusterProviderConfig:
		pc := &v1alpha1.ClusterProviderConfig{}
		err = r.Configs.Get(ctx, types.NamespacedName{Name: ref.Name}, pc)
		spec, allows, uid = pc.Spec.ProviderConfigSpec, allowancesOf(pc.Spec), pc.GetUID()
		dropped = stored.Faults(pc)
	default:
		return spec, nil, uid, &Error{Kind: ConfigInvalid, Ref: ref, Detail: fmt.Sprintf("providerConfigRef.kind is %q, but must be %s or %s", ref.Kind, kindProviderConfig, kindClusterProviderConfig)}
	}
	if kerrors.IsNotFound(err) {
		return spec, nil, uid, &Error{Kind: ConfigNotFound, Ref: ref, Detail: "there is no such configuration"}
	}
	if dropped != "" {
		// Without its CA bundle, for example, a cluster would be trusted by other certificates.
		return spec, nil, uid, &Error{Kind: ConfigInvalid, Ref: ref, Detail: "cannot decode " + dropped}
	}
	return spec, allows, uid, err
}

// SecretOf returns where the kubeconfig of a configuration is, and false if it has none.
func SecretOf(ref Ref, spec v1alpha1.ProviderConfigSpec) (types.NamespacedName, bool) {
	s := spec.Credentials.SecretRef
	if spec.Credentials.Source != v1alpha1.CredentialsSecret || s == nil {
		return types.NamespacedName{}, false
	}
	if ref.Kind == kindProviderConfig {
		// A ProviderConfig must not be a way to read other namespaces.
		return types.NamespacedName{Namespace: ref.Namespace, Name: s.Name}, true
	}
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, true
}

// credentials of a target cluster.
type credentials struct {
	// spec and uid of the configuration.
	spec v1alpha1.ProviderConfigSpec
	uid  types.UID
	// allows is nil if the configuration limits nothing.
	allows *allowances
	// version shows without reading the Secret whether anything changed.
	version string
	// text names the Secret and its key, for messages.
	text string
}

// look reads the configuration, and not its Secret.
func (r Readers) look(ctx context.Context, ref Ref) (credentials, error) {
	spec, allows, uid, err := r.spec(ctx, ref)
	if err != nil {
		return credentials{}, err
	}
	out := credentials{
		spec: spec, allows: allows, uid: uid, text: "the provider's own identity",
		version: string(uid) + "/" + hash(spec) + "/" + hash(allows),
	}
	switch spec.Credentials.Source {
	case v1alpha1.CredentialsInjectedIdentity:
		return out, r.checkIdentity(ref)
	case v1alpha1.CredentialsSecret:
	default:
		return out, &Error{Kind: ConfigInvalid, Ref: ref, Detail: fmt.Sprintf("spec.credentials.source is %q, but must be %s or %s", spec.Credentials.Source, v1alpha1.CredentialsSecret, v1alpha1.CredentialsInjectedIdentity)}
	}
	key, ok := SecretOf(ref, spec)
	if !ok {
		return out, &Error{Kind: ConfigInvalid, Ref: ref, Detail: "spec.credentials.secretRef is missing, and the source is Secret"}
	}
	out.text = fmt.Sprintf("Secret %s, key %q", key, keyOf(spec))

	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.Metadata.Get(ctx, key, meta); err != nil {
		return out, secretError(ref, out.text, err)
	}
	out.version += "/" + string(meta.GetUID()) + "/" + meta.GetResourceVersion()
	return out, nil
}

// checkIdentity refuses the provider's own identity to a configuration that the platform operator did not name:
// with it, join tokens would create Nodes of the control cluster.
func (r Readers) checkIdentity(ref Ref) error {
	const field = "spec.credentials.source: invalid value %q: "
	switch {
	case ref.Kind != kindClusterProviderConfig:
		return &Error{Kind: ConfigInvalid, Ref: ref, Detail: fmt.Sprintf(field+"a %s must have %q",
			v1alpha1.CredentialsInjectedIdentity, ref.Kind, v1alpha1.CredentialsSecret)}
	case !slices.Contains(r.InjectedIdentityFor, ref.Name):
		return &Error{Kind: IdentityNotAllowed, Ref: ref, Detail: fmt.Sprintf(field+"it is allowed for the %ss that the flag --injected-identity-for of provider-drover names: %s",
			v1alpha1.CredentialsInjectedIdentity, ref.Kind, cmp.Or(strings.Join(r.InjectedIdentityFor, ", "), "none"))}
	}
	return nil
}

// load returns the configuration of a client for the cluster, and a hash that identifies the credentials.
func (r Readers) load(ctx context.Context, ref Ref, c credentials) (cfg *rest.Config, sum string, err error) {
	key, ok := SecretOf(ref, c.spec)
	if !ok {
		return rest.CopyConfig(r.Self), "self", nil
	}
	s := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, s); err != nil {
		return nil, "", secretError(ref, c.text, err)
	}
	data, ok := s.Data[keyOf(c.spec)]
	if !ok {
		return nil, "", &Error{Kind: KeyMissing, Ref: ref, Detail: c.text + ": the Secret has no such key"}
	}
	cfg, err = parseKubeconfig(data, ref.isOfTenant())
	if err != nil {
		return nil, "", &Error{Kind: KubeconfigInvalid, Ref: ref, Detail: c.text + ": " + err.Error()}
	}
	return cfg, hash(data), nil
}

// limits returns the limits of the connections of a configuration, nil if it has none.
func (r Readers) limits(ref Ref) *Networks {
	if ref.isOfTenant() {
		return &r.Networks
	}
	return nil
}

func secretError(ref Ref, text string, err error) error {
	if kerrors.IsNotFound(err) {
		return &Error{Kind: SecretNotFound, Ref: ref, Detail: text + ": there is no such Secret"}
	}
	return fmt.Errorf("%s: %s: cannot read it: %w", ref, text, err)
}

func keyOf(spec v1alpha1.ProviderConfigSpec) string {
	if k := spec.Credentials.SecretRef.Key; k != "" {
		return k
	}
	return "kubeconfig"
}

func hash(v any) string {
	h := sha256.New()
	// The types that come here always marshal.
	_ = json.NewEncoder(h).Encode(v)
	return fmt.Sprintf("%x", h.Sum(nil))
}
