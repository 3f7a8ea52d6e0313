package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// A GroupKind is a kind of an infrastructure provider. The label of its CRD chooses the version.
type GroupKind struct {
	// APIGroup of the kind. Default: infrastructure.cluster.x-k8s.io.
	// +kubebuilder:default=infrastructure.cluster.x-k8s.io
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind itself, such as AWSMachine.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Kind string `json:"kind"`
}

// An ObjectReference names an object of an infrastructure provider.
type ObjectReference struct {
	GroupKind `json:",inline"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// An Endpoint is the address of an API server.
type Endpoint struct {
	// Host is a DNS name or an IP address.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// Port is the number of the TCP port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// ObjectMetadata are the labels and annotations of an InfraMachine beside those of Drover and Cluster API.
type ObjectMetadata struct {
	// Labels of the InfraMachine.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the InfraMachine.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// An InfraMachine is the template of the object that an infrastructure provider makes a VM from.
type InfraMachine struct {
	GroupKind `json:",inline"`
	// Metadata of the object.
	// +optional
	Metadata ObjectMetadata `json:"metadata,omitempty"`
	// Spec of the object, as spec.template.spec of the provider's template has it. The provider's own schema and
	// webhooks check it before anything is created.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *extv1.JSON `json:"spec"`
}

// VirtualMachineParameters are the parameters that a VM is created with. A later change of them has no effect.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tags) || self.tags.all(k, !k.contains('/'))",message="a key of tags must not contain a slash"
type VirtualMachineParameters struct {
	// Name of the InfraMachine and of the Machine of cluster.x-k8s.io. Most providers make it the host name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name *string `json:"name,omitempty"`

	// InfraMachine that the provider makes the VM from. Its kind must be in spec.infraMachineKinds of the
	// configuration.
	// +optional
	InfraMachine *InfraMachine `json:"infraMachine,omitempty"`

	// Version of Kubernetes on the VM, such as v1.35.4, for providers that choose an image by it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version *string `json:"version,omitempty"`

	// FailureDomain of the VM, in the words of the provider.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain *string `json:"failureDomain,omitempty"`

	// Tags that an inventory finds the VM by. They are annotations of the InfraMachine, and drover-installation is
	// also a label of it.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Tags map[string]string `json:"tags,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// A Condition is a condition of an InfraMachine.
type Condition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status of the condition: True, False or Unknown.
	Status string `json:"status"`
	// Reason of the status.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message of the provider, of at most 512 characters.
	// +optional
	Message string `json:"message,omitempty"`
}

// VirtualMachineObservation is the observed state of a VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// InfraMachine that the VM is made from.
	// +optional
	InfraMachine *InfraMachineObservation `json:"infraMachine,omitempty"`
	// FailureDomain that the provider reports.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
	// Interruptible means that the cloud may take the VM back, such as a spot VM.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
	// Error that the provider reports while the VM does not run. It begins with its class.
	// +optional
	Error string `json:"error,omitempty"`
}

// An InfraMachineObservation is the observed state of an InfraMachine.
type InfraMachineObservation struct {
	// APIVersion that the label of the CRD chose.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object, in the cluster with the provider.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// Contract of Cluster API that the version fulfils: v1beta2 or v1beta1.
	Contract string `json:"contract"`
	// Paused means that the provider does not touch the object.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Conditions of the object, at most 16.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	Conditions []Condition `json:"conditions,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.infraMachine)",message="spec.forProvider.infraMachine is required"
type VirtualMachineSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider VirtualMachineParameters `json:"forProvider"`
}

// A VirtualMachineStatus is the observed state of a VM.
type VirtualMachineStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider VirtualMachineObservation `json:"atProvider,omitempty"`
}

// A VirtualMachine is a VM that an infrastructure provider of Cluster API makes from an InfraMachine. Its external name
// is the UID of the VirtualMachine that it was created with, which is a label of the InfraMachine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,clusterapi}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.status.atProvider.infraMachine.kind`
// +kubebuilder:printcolumn:name="InfraMachine",type=string,JSONPath=`.status.atProvider.infraMachine.name`
// +kubebuilder:printcolumn:name="External-Name",type=string,JSONPath=`.metadata.annotations.crossplane\.io/external-name`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   VirtualMachineSpec   `json:"spec"`
	Status VirtualMachineStatus `json:"status,omitempty"`
}

// A VirtualMachineList is a list of VirtualMachines.
//
// +kubebuilder:object:root=true
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}

// Observation returns the part of the status that the VMs of all clouds have, to read and to change.
func (vm *VirtualMachine) Observation() *nativev1alpha1.Observation {
	return &vm.Status.AtProvider.Observation
}

// UserDataSource returns the source of the user data.
func (vm *VirtualMachine) UserDataSource() nativev1alpha1.UserData {
	return vm.Spec.ForProvider.UserData
}

// GroupKind returns the kind as the API machinery has it.
func (k GroupKind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.APIGroup, Kind: k.Kind}
}
