package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpv2 "github.com/crossplane/crossplane-runtime/v2/apis/common/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
)

// Annotations of a VirtualMachine. They are written before its VM is cloned: a clone whose answer
// was lost is found by them.
const (
	// AnnotationVMID is the VMID that was chosen for the VM.
	AnnotationVMID = Group + "/vmid"
	// AnnotationNode is the node that was chosen for the VM.
	AnnotationNode = Group + "/node"
	// AnnotationCloneTask is the UPID of the task that clones the template.
	AnnotationCloneTask = Group + "/clone-task"
)

// A CloneMode is a way to clone the disks of a template.
// +kubebuilder:validation:Enum=Full;Linked
type CloneMode string

// Modes of cloning.
const (
	// CloneFull copies the disks.
	CloneFull CloneMode = "Full"
	// CloneLinked makes disks that hold only what differs from those of the template. It needs a
	// storage that can do so.
	CloneLinked CloneMode = "Linked"
)

// A Model of a network card.
// +kubebuilder:validation:Enum=virtio;e1000;e1000e;rtl8139;vmxnet3
type Model string

// A Network is one that a VM has a card in.
type Network struct {
	// Bridge on the node, or VNet of the software-defined network, such as vmbr0.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	Bridge string `json:"bridge"`
	// VLAN tag of the card's traffic. The default is none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	VLAN *int32 `json:"vlan,omitempty"`
	// Model of the card.
	// +kubebuilder:default=virtio
	Model Model `json:"model,omitempty"`
	// MTU of the card, with model virtio. 1 is that of the bridge.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65520
	MTU *int32 `json:"mtu,omitempty"`
	// Firewall means that the firewall of Proxmox VE filters the card's traffic. Default false.
	// +optional
	Firewall *bool `json:"firewall,omitempty"`
}

// A Disk is created with the VM, beside those of its template, and deleted with it.
type Disk struct {
	// Storage that the disk is created on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*$`
	Storage string `json:"storage"`
	// SizeGiB of the disk.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	SizeGiB int64 `json:"sizeGiB"`
}

// CloudInit describes the ISO image that the VM reads at its first boot. It has the label cidata, for the
// datasource NoCloud of cloud-init. The provider uploads it by the API, and deletes it after the VM.
type CloudInit struct {
	// Storage that the image is uploaded to. It must take content of the type iso, and be reachable
	// from the node of the VM.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*$`
	Storage string `json:"storage"`
	// Device that the image is attached as.
	// +kubebuilder:default=ide2
	// +kubebuilder:validation:Pattern=`^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30))$`
	Device string `json:"device,omitempty"`
	// MetaData as YAML or JSON, in place of instance-id and local-hostname.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	MetaData *string `json:"metaData,omitempty"`
	// NetworkConfig as YAML or JSON. The default is DHCP on all cards.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	NetworkConfig *string `json:"networkConfig,omitempty"`
}

// VirtualMachineParameters are those of a VM that is created. A VM is created once: a change of
// them does not change a VM that exists.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.storage) && self.cloneMode == 'Linked')",message="storage: a linked clone is on the storage of its template; use cloneMode Full"
type VirtualMachineParameters struct {
	// Name of the VM.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`
	Name *string `json:"name,omitempty"`

	// Node that the VM runs on. It is the failure domain of a Machine, and takes precedence over
	// nodes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`
	Node *string `json:"node,omitempty"`

	// Nodes of which the provider chooses one: a node that is online and has the smallest part of its
	// memory assigned to VMs. The default is all nodes of the cluster.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`
	Nodes []string `json:"nodes,omitempty"`

	// Template that is cloned, by name or VMID. Of several with the name, that on the VM's node is
	// cloned: templates on local storage exist once for each node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Template *string `json:"template,omitempty"`

	// CloneMode Full copies the template's disks, and Linked refers to them.
	// +kubebuilder:default=Full
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// Storage of the copied disks. The default is that of the template's disks.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*$`
	Storage *string `json:"storage,omitempty"`

	// Pool that the VM is a member of.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]+$`
	Pool *string `json:"pool,omitempty"`

	// Cores of the VM, in one socket. The default is the number of the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	Cores *int32 `json:"cores,omitempty"`

	// CPUType that the guest sees, such as host or x86-64-v2-AES. The default is that of the
	// template.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	CPUType *string `json:"cpuType,omitempty"`

	// MemoryMiB of the VM. The default is the size of the template.
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=4194304
	MemoryMiB *int64 `json:"memoryMiB,omitempty"`

	// DiskSizeGiB is the size of the disk that the VM boots from, not less than the template's,
	// which is the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	DiskSizeGiB *int64 `json:"diskSizeGiB,omitempty"`

	// Disks beside those of the template, as scsi devices.
	// +optional
	// +kubebuilder:validation:MaxItems=14
	Disks []Disk `json:"disks,omitempty"`

	// Networks that the VM has cards in, in this order, in place of the template's cards, which are
	// the default.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	Networks []Network `json:"networks,omitempty"`

	// Agent means that the QEMU guest agent runs in the VM: the addresses of the VM are read from it.
	// +kubebuilder:default=true
	Agent *bool `json:"agent,omitempty"`

	// StartOnBoot means that the node starts the VM when it boots itself.
	// +kubebuilder:default=true
	StartOnBoot *bool `json:"startOnBoot,omitempty"`

	// Tags of the VM, beside those by which the provider finds it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_][a-z0-9_.+-]*$`
	Tags []string `json:"tags,omitempty"`

	// Attributes of the VM, such as its installation and its Machine. They are written to the notes
	// of the VM, since tags allow few characters. A name has letters, digits and ._/-, a value is one
	// line of at most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Attributes map[string]string `json:"attributes,omitempty"`

	// CloudInit is required for user data.
	// +optional
	CloudInit *CloudInit `json:"cloudInit,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// VMID of the VM in its cluster.
	// +optional
	VMID int64 `json:"vmid,omitempty"`
	// Node that the VM is on.
	// +optional
	Node string `json:"node,omitempty"`
	// Task that changes the VM, by its UPID.
	// +optional
	Task string `json:"task,omitempty"`
	// LastTask is the last task that ended, by its UPID. Its log is in the web interface.
	// +optional
	LastTask string `json:"lastTask,omitempty"`
	// CloneTask is the task that cloned the template, by its UPID.
	// +optional
	CloneTask string `json:"cloneTask,omitempty"`
	// MACAddresses of the network cards.
	// +optional
	MACAddresses []string `json:"macAddresses,omitempty"`
	// Image is the volume with the user data.
	// +optional
	Image string `json:"image,omitempty"`
}

// A VirtualMachineSpec has the parameters of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.template)",message="spec.forProvider.template is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || !(has(self.forProvider.userData) || has(self.forProvider.userDataSecretRef)) || has(self.forProvider.cloudInit)",message="spec.forProvider.cloudInit is required for user data: it names the storage of the image"
type VirtualMachineSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider VirtualMachineParameters `json:"forProvider"`
}

// VirtualMachineStatus is the status of the VM.
type VirtualMachineStatus struct {
	xpv1.ResourceStatus `json:",inline"`

	// +optional
	AtProvider VirtualMachineObservation `json:"atProvider,omitempty"`
}

// A VirtualMachine is a VM of Proxmox VE, cloned from a template. Its external name is the UUID that
// its SMBIOS shows, which is the UID of this object unless it is set.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,proxmox}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.atProvider.node`
// +kubebuilder:printcolumn:name="VMID",type=integer,JSONPath=`.status.atProvider.vmid`
// +kubebuilder:printcolumn:name="External-Name",type=string,JSONPath=`.metadata.annotations.crossplane\.io/external-name`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

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

// Observation returns the part of the status that VMs of all clouds have, to be read and set.
func (vm *VirtualMachine) Observation() *nativev1alpha1.Observation {
	return &vm.Status.AtProvider.Observation
}

// UserDataSource returns where the user data is.
func (vm *VirtualMachine) UserDataSource() nativev1alpha1.UserData {
	return vm.Spec.ForProvider.UserData
}
