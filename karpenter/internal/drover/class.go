package drover

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NodeCapacity is the capacity of the Nodes of a class.
type NodeCapacity struct {
	Capacity        corev1.ResourceList `json:"capacity,omitempty"`
	Architecture    string              `json:"architecture,omitempty"`
	OperatingSystem string              `json:"operatingSystem,omitempty"`
}

// Kubelet settings of a class.
type Kubelet struct {
	MaxPods       *int32                `json:"maxPods,omitempty"`
	Configuration *runtime.RawExtension `json:"configuration,omitempty"`
}

// MachineClassSpec describes the VMs of a class.
type MachineClassSpec struct {
	Provider          string                `json:"provider"`
	ForProvider       *runtime.RawExtension `json:"forProvider,omitempty"`
	Kubelet           Kubelet               `json:"kubelet,omitzero"`
	NodeCapacity      *NodeCapacity         `json:"nodeCapacity,omitempty"`
	AllowedNamespaces []string              `json:"allowedNamespaces,omitempty"`
	InstanceTypes     []InstanceType        `json:"instanceTypes,omitempty"`
}

// An InstanceType is one of several of a class.
type InstanceType struct {
	Name string `json:"name"`
}

// A MachineClass is a class of a namespace. It has no allowedNamespaces.
//
// +kubebuilder:object:root=true
type MachineClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineClassSpec `json:"spec"`
}

// A MachineClassList is a list of MachineClasses.
//
// +kubebuilder:object:root=true
type MachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineClass `json:"items"`
}

// A ClusterMachineClass is a class for the namespaces that it allows.
//
// +kubebuilder:object:root=true
type ClusterMachineClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineClassSpec `json:"spec"`
}

// A ClusterMachineClassList is a list of ClusterMachineClasses.
//
// +kubebuilder:object:root=true
type ClusterMachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterMachineClass `json:"items"`
}

// A ProviderConfig is the configuration of a target cluster for the Machines of its namespace.
//
// +kubebuilder:object:root=true
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// A ProviderConfigList is a list of ProviderConfigs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}

// ClusterProviderConfigSpec has the namespaces whose Machines may join the target cluster.
type ClusterProviderConfigSpec struct {
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`
}

// A ClusterProviderConfig is the configuration of a target cluster for the Machines of the namespaces that it allows.
//
// +kubebuilder:object:root=true
type ClusterProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterProviderConfigSpec `json:"spec"`
}

// A ClusterProviderConfigList is a list of ClusterProviderConfigs.
//
// +kubebuilder:object:root=true
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProviderConfig `json:"items"`
}

// A PipelineStep of a Composition.
type PipelineStep struct {
	Step  string                `json:"step"`
	Input *runtime.RawExtension `json:"input,omitempty"`
}

// CompositionSpec has the pipeline of a Composition.
type CompositionSpec struct {
	CompositeTypeRef TypeReference  `json:"compositeTypeRef"`
	Pipeline         []PipelineStep `json:"pipeline,omitempty"`
}

// A TypeReference names a kind.
type TypeReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// A Composition of Crossplane.
//
// +kubebuilder:object:root=true
type Composition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CompositionSpec `json:"spec"`
}

// A CompositionList is a list of Compositions.
//
// +kubebuilder:object:root=true
type CompositionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Composition `json:"items"`
}
