package target

import (
	"fmt"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
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

// RefOf returns the configuration of the cluster that a Machine joins.
func RefOf(m *machinev1alpha1.Machine) Ref {
	ref := m.Spec.ClusterRef
	switch {
	case ref.Name == "":
		return ClusterRef("default")
	case ref.Kind == kindProviderConfig:
		return NamespacedRef(m.GetNamespace(), ref.Name)
	}
	return ClusterRef(ref.Name)
}

// ClusterRef names a ClusterProviderConfig.
func ClusterRef(name string) Ref { return Ref{Kind: kindClusterProviderConfig, Name: name} }

// NamespacedRef names a ProviderConfig.
func NamespacedRef(namespace, name string) Ref {
	return Ref{Kind: kindProviderConfig, Namespace: namespace, Name: name}
}

// isOfTenant reports whether users of a namespace, rather than the platform operator, may have
// written the configuration.
func (r Ref) isOfTenant() bool { return r.Kind != kindClusterProviderConfig }

func (r Ref) String() string {
	if r.Namespace == "" {
		return fmt.Sprintf("%s %s", r.Kind, r.Name)
	}
	return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)
}
