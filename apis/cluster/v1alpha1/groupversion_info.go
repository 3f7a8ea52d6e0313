package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// Group and version of the kinds in this package.
const (
	Group   = "cluster.drover.dev"
	Version = "v1alpha1"
)

var (
	// SchemeGroupVersion is the group and version of the kinds in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}

	// SchemeBuilder adds the kinds in this package to a scheme.
	SchemeBuilder = &scheme.Builder{GroupVersion: SchemeGroupVersion}

	// AddToScheme adds the kinds in this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds in this package.
var (
	ProviderConfigGroupVersionKind        = SchemeGroupVersion.WithKind("ProviderConfig")
	ClusterProviderConfigGroupVersionKind = SchemeGroupVersion.WithKind("ClusterProviderConfig")
)

func init() {
	SchemeBuilder.Register(
		&ProviderConfig{}, &ProviderConfigList{},
		&ClusterProviderConfig{}, &ClusterProviderConfigList{},
	)
}
