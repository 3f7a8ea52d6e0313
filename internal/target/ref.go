package target

import (
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// Kinds of configurations.
var (
	kindProviderConfig        = v1alpha1.ProviderConfigGroupVersionKind.Kind
	kindClusterProviderConfig = v1alpha1.ClusterProviderConfigGroupVersionKind.Kind
)

// A Ref names a configuration. Its Namespace is empty for a ClusterProviderConfig.
type Ref struct {
	Kind      string
	Namespace string
	Name      string
}

// RefOf returns the configuration that a managed resource uses.
func RefOf(mg resource.ModernManaged) Ref {
	ref := mg.GetProviderConfigReference()
	if ref == nil {
		return ClusterRef("default")
	}
	if ref.Kind == kindProviderConfig {
		return NamespacedRef(mg.GetNamespace(), ref.Name)
	}
	return Ref{Kind: ref.Kind, Name: ref.Name}
}

// ClusterRef names a ClusterProviderConfig.
func ClusterRef(name string) Ref { return Ref{Kind: kindClusterProviderConfig, Name: name} }

// NamespacedRef names a ProviderConfig.
func NamespacedRef(namespace, name string) Ref {
	return Ref{Kind: kindProviderConfig, Namespace: namespace, Name: name}
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return fmt.Sprintf("%s %s", r.Kind, r.Name)
	}
	return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)
}
