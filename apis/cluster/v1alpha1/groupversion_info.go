package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and version of the kinds in this package.
const (
	Group   = "cluster.drover.dev"
	Version = "v1alpha1"
)

// SchemeGroupVersion is the group and version of the kinds in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// Kinds in this package.
var (
	ProviderConfigGroupVersionKind        = SchemeGroupVersion.WithKind("ProviderConfig")
	ClusterProviderConfigGroupVersionKind = SchemeGroupVersion.WithKind("ClusterProviderConfig")
	NodeInventoryGroupVersionKind         = SchemeGroupVersion.WithKind("NodeInventory")
)

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion,
		&ProviderConfig{}, &ProviderConfigList{},
		&ClusterProviderConfig{}, &ClusterProviderConfigList{},
		&NodeInventory{}, &NodeInventoryList{},
	)
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
