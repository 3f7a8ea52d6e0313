package v1alpha1

import (
	"cmp"

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

// An InstanceType is one of the instance types of a class: a VM that a Machine may get if the cloud has no room for
// those before it.
type InstanceType struct {
	// Name identifies the entry in the class, in the status of Machines and in the annotation
	// machine.drover.dev/instance-type of VMs. It is also the instance type, unless instanceType is set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// InstanceType as the cloud calls it, such as m7i.large. It is set in the VM's managed resource at the path that
	// the provider's Composition names. The default is the name. At clouds whose VMs have no such field, it must be
	// absent, and forProvider has the size.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	InstanceType string `json:"instanceType,omitempty"`

	// Price of an hour in any currency, such as 0.0104. The allocation strategy LowestPrice needs it.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	Price string `json:"price,omitempty"`

	// ForProvider is merged over spec.forProvider of the class for this entry: objects field by field, and anything
	// else, a list too, replaces what is there. By it an entry has another subnet, zone or size.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ForProvider *runtime.RawExtension `json:"forProvider,omitempty"`

	// NodeCapacity of the Nodes of this entry. Values that it lacks are derived from the instance type, if the
	// provider's Composition knows it. Those in spec.nodeCapacity of the class hold for all entries.
	// +optional
	NodeCapacity *NodeCapacity `json:"nodeCapacity,omitempty"`
}

// Type returns the instance type of the entry as the cloud calls it.
func (t InstanceType) Type() string { return cmp.Or(t.InstanceType, t.Name) }

// An AllocationStrategy is the order in which the instance types of a class are tried.
// +kubebuilder:validation:Enum=Prioritized;LowestPrice
type AllocationStrategy string

// Allocation strategies.
const (
	// AllocationPrioritized tries the instance types in the order of the list.
	AllocationPrioritized AllocationStrategy = "Prioritized"
	// AllocationLowestPrice tries the cheapest one first. Those of the same price are tried in the order of the list.
	AllocationLowestPrice AllocationStrategy = "LowestPrice"
)

// MachineClassSpec describes the VM that a Machine of this class gets.
//
// With userData, Drover writes nothing that could carry out other settings. CEL does not see
// kubelet.configuration: the planner refuses it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.allocationStrategy) || has(self.instanceTypes)",fieldPath=".allocationStrategy",message="has no effect without instanceTypes: remove it, or list the instance types"
// +kubebuilder:validation:XValidation:rule="!has(self.allocationStrategy) || self.allocationStrategy != 'LowestPrice' || !has(self.instanceTypes) || self.instanceTypes.all(t, has(t.price))",fieldPath=".instanceTypes",message="each must have a price with the allocationStrategy LowestPrice"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.profile)",fieldPath=".operatingSystem.profile",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.parameters)",fieldPath=".operatingSystem.parameters",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.kubeletDownloadURL) || self.operatingSystem.kubeletDownloadURL == 'https://dl.k8s.io/release'",fieldPath=".operatingSystem.kubeletDownloadURL",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.kubeletDigests)",fieldPath=".operatingSystem.kubeletDigests",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.containerdDownloadURL)",fieldPath=".operatingSystem.containerdDownloadURL",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.containerdDigests)",fieldPath=".operatingSystem.containerdDigests",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.registryMirrors)",fieldPath=".operatingSystem.registryMirrors",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.imageCredentialProviders)",fieldPath=".operatingSystem.imageCredentialProviders",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.sandboxImage)",fieldPath=".operatingSystem.sandboxImage",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.proxy)",fieldPath=".operatingSystem.proxy",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.caBundle)",fieldPath=".operatingSystem.caBundle",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.ssh)",fieldPath=".operatingSystem.ssh",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.ntpServers)",fieldPath=".operatingSystem.ntpServers",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.files)",fieldPath=".operatingSystem.files",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.units)",fieldPath=".operatingSystem.units",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.stepsBeforeJoin)",fieldPath=".operatingSystem.stepsBeforeJoin",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.operatingSystem.stepsAfterJoin)",fieldPath=".operatingSystem.stepsAfterJoin",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.kubelet.clusterDNS)",fieldPath=".kubelet.clusterDNS",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.kubelet.clusterDomain) || self.kubelet.clusterDomain == 'cluster.local'",fieldPath=".kubelet.clusterDomain",message="has no effect with userData: remove it, and put it into the user data"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.kubelet.maxPods)",fieldPath=".kubelet.maxPods",message="has no effect with userData: remove it, and put it into the user data"
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

	// InstanceTypes are tried in their order when the cloud has no capacity or no quota for a VM: the next one is
	// requested for the same Machine within a minute. forProvider then has what all have in common, without the
	// instance type. When the cloud has refused all of them, the Machine reports that, and the first one is tried again
	// after 1 minute, then 2, 4, 8 and each further 10 minutes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	InstanceTypes []InstanceType `json:"instanceTypes,omitempty"`

	// AllocationStrategy is the order in which the instance types are tried: Prioritized, the order of the list, or
	// LowestPrice, the cheapest one first. The default is Prioritized.
	// +optional
	AllocationStrategy AllocationStrategy `json:"allocationStrategy,omitempty"`

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

	// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.userData.secretRef) || !has(self.userData.secretRef.__namespace__)",fieldPath=".userData.secretRef",message="namespace must be absent: the Secret of a MachineClass is in the namespace of the class"
	// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.userData.bootstrapTemplateRef) || !has(self.userData.bootstrapTemplateRef.__namespace__)",fieldPath=".userData.bootstrapTemplateRef",message="namespace must be absent: the template of a MachineClass is in the namespace of the class"
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
