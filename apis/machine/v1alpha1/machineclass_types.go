package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/internal/stored"
)

// Kubelet settings of a class.
type Kubelet struct {
	// ClusterDNS addresses that pods use.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:Pattern=`^[0-9a-fA-F.:]+$`
	ClusterDNS []string `json:"clusterDNS,omitempty"`

	// ClusterDomain of the target cluster.
	// +kubebuilder:default="cluster.local"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClusterDomain string `json:"clusterDomain,omitempty"`

	// MaxPods is the largest number of pods on a Node. The kubelet decides when it is absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxPods *int32 `json:"maxPods,omitempty"`

	// Configuration is merged over the KubeletConfiguration that Drover writes:
	// fields of kubelet.config.k8s.io/v1beta1.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Configuration *runtime.RawExtension `json:"configuration,omitempty"`
}

// VMProviderConfigReference names the configuration of the provider that makes
// the VMs: its credentials.
type VMProviderConfigReference struct {
	// Kind of the configuration.
	// +kubebuilder:default=ClusterProviderConfig
	// +kubebuilder:validation:Enum=ProviderConfig;ClusterProviderConfig
	Kind string `json:"kind,omitempty"`

	// Name of the configuration.
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// NodeCapacity is the capacity that a Node of a class will have before it exists, so
// that an autoscaler can scale from zero.
type NodeCapacity struct {
	// Capacity of the Node: cpu, memory and what else it will report.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Architecture of the Node, like amd64.
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// OperatingSystem of the Node, like linux.
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty,omitzero"`
}

// A Companion is a resource that each VM of a class has beside it.
type Companion struct {
	// ForProvider is taken verbatim as spec.forProvider of the companion's managed
	// resource. What Drover itself sets there wins.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ForProvider *runtime.RawExtension `json:"forProvider,omitempty"`
}

// MachineClassSpec describes the VM that a Machine of this class gets.
//
// With userData, Drover writes nothing that could carry out other settings. CEL does not see
// kubelet.configuration: the planner refuses it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.profile)",fieldPath=".operatingSystem.profile",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.parameters)",fieldPath=".operatingSystem.parameters",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.kubeletDownloadURL) || self.operatingSystem.kubeletDownloadURL == 'https://dl.k8s.io/release'",fieldPath=".operatingSystem.kubeletDownloadURL",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.kubeletDigests)",fieldPath=".operatingSystem.kubeletDigests",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.containerdDownloadURL)",fieldPath=".operatingSystem.containerdDownloadURL",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.containerdDigests)",fieldPath=".operatingSystem.containerdDigests",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.registryMirrors)",fieldPath=".operatingSystem.registryMirrors",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.imageCredentialProviders)",fieldPath=".operatingSystem.imageCredentialProviders",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.sandboxImage)",fieldPath=".operatingSystem.sandboxImage",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.proxy)",fieldPath=".operatingSystem.proxy",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.caBundle)",fieldPath=".operatingSystem.caBundle",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.ssh)",fieldPath=".operatingSystem.ssh",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.ntpServers)",fieldPath=".operatingSystem.ntpServers",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.files)",fieldPath=".operatingSystem.files",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.units)",fieldPath=".operatingSystem.units",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.stepsBeforeJoin)",fieldPath=".operatingSystem.stepsBeforeJoin",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.stepsAfterJoin)",fieldPath=".operatingSystem.stepsAfterJoin",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.kubelet.clusterDNS)",fieldPath=".kubelet.clusterDNS",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.kubelet.clusterDomain) || self.kubelet.clusterDomain == 'cluster.local'",fieldPath=".kubelet.clusterDomain",message="has no effect with userData: remove it, and put it into the Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.kubelet.maxPods)",fieldPath=".kubelet.maxPods",message="has no effect with userData: remove it, and put it into the Secret"
type MachineClassSpec struct {
	// Provider of the VMs. Machines of this class use the Composition that is
	// labelled provider: <this>.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Provider string `json:"provider"`

	// ForProvider is taken verbatim as spec.forProvider of the VM's managed
	// resource. What Drover itself sets there (name, user data, tags, failure
	// domain) wins.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ForProvider *runtime.RawExtension `json:"forProvider,omitempty"`

	// Companions of each VM, such as a network interface of its own at clouds where
	// that is a resource beside the VM, by the names that the provider's Composition
	// gives them.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Companions map[string]Companion `json:"companions,omitempty"`

	// ProviderConfigRef names the credentials that the VM is made with.
	// +kubebuilder:default={}
	ProviderConfigRef VMProviderConfigReference `json:"providerConfigRef,omitempty,omitzero"`

	// OperatingSystem of the image.
	// +kubebuilder:default={}
	OperatingSystem OperatingSystem `json:"operatingSystem,omitempty,omitzero"`

	// Kubelet settings.
	// +kubebuilder:default={}
	Kubelet Kubelet `json:"kubelet,omitempty,omitzero"`

	// UserData replaces the user data that Drover writes. Drover then installs and configures
	// nothing else on the VM: of operatingSystem only provisioning may be set, and of kubelet
	// nothing.
	// +optional
	UserData *UserData `json:"userData,omitempty"`

	// NodeCapacity of the Nodes.
	// +optional
	NodeCapacity *NodeCapacity `json:"nodeCapacity,omitempty"`
}

// A MachineClass describes the VM that a Machine gets. It cannot change: create a new class
// and name it in the template, and the MachineDeployment rolls over to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mc,categories=drover
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MachineClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.userData.secretRef.__namespace__)",fieldPath=".userData.secretRef",message="namespace must be absent: the Secret of a MachineClass is in the namespace of the class"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a MachineClass is immutable: create a new one and change classRef to roll over to it"
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
