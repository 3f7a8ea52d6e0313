package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// Annotations of a VirtualMachine. The provider writes them.
const (
	// AnnotationVMID of a VirtualMachine is the VMID that the provider chose for the VM. It is written before the
	// template is cloned: a clone whose response was lost is found by it.
	AnnotationVMID = Group + "/vmid"
	// AnnotationNode of a VirtualMachine is the node that the provider chose for the VM. It is written together
	// with the VMID.
	AnnotationNode = Group + "/node"
	// AnnotationCloneTask of a VirtualMachine is the UPID of the task that clones the template.
	AnnotationCloneTask = Group + "/clone-task"
)

// A CloneMode is how the disks of a template are cloned.
// +kubebuilder:validation:Enum=Full;Linked
type CloneMode string

// Modes of cloning.
const (
	// CloneFull copies the disks.
	CloneFull CloneMode = "Full"
	// CloneLinked creates disks that hold only the differences from the disks of the template. The
	// storage must support it.
	CloneLinked CloneMode = "Linked"
)

// A Model of a network card.
// +kubebuilder:validation:Enum=virtio;e1000;e1000e;rtl8139;vmxnet3
type Model string

// A Network is a network that a VM has a card in.
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
	// MTU of the card, with model virtio only. 1 means the MTU of the bridge.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65520
	MTU *int32 `json:"mtu,omitempty"`
	// Firewall means that the firewall of Proxmox VE filters the card's traffic. Default false.
	// +optional
	Firewall *bool `json:"firewall,omitempty"`
}

// A Disk is a disk that the template does not have. It is created with the VM and deleted with it.
type Disk struct {
	// Storage that the disk is created on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*$`
	Storage string `json:"storage"`
	// SizeGiB is the size of the disk in GiB.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	SizeGiB int64 `json:"sizeGiB"`
}

// CloudInit describes the ISO image with the user data, which the VM reads at its first boot. The image
// has the label cidata, for the datasource NoCloud of cloud-init. The provider uploads it by the API, and
// deletes it after the VM.
type CloudInit struct {
	// Storage that the image is uploaded to. It must allow content of the type iso, and be available on
	// the node of the VM.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*$`
	Storage string `json:"storage"`
	// Device of the VM that the image is attached to.
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

// VirtualMachineParameters are the parameters of a VM. They are used when the VM is created: a later
// change of them has no effect on the VM.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.storage) && self.cloneMode == 'Linked')",message="storage: a linked clone is on the storage of its template; use cloneMode Full"
type VirtualMachineParameters struct {
	// Name of the VM.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`
	Name *string `json:"name,omitempty"`

	// Node that the VM is created on. It takes precedence over nodes. Drover sets it to the failure
	// domain of the Machine.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`
	Node *string `json:"node,omitempty"`

	// Nodes from which the provider chooses one for the VM: the online node with the smallest share of
	// its memory assigned to VMs. Default: all nodes of the cluster.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`
	Nodes []string `json:"nodes,omitempty"`

	// Template to clone, by name or VMID. If several templates have the name, the one on the VM's node
	// is cloned: a template on local storage exists once per node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Template *string `json:"template,omitempty"`

	// CloneMode of the template's disks: Full copies them, Linked refers to them.
	// +kubebuilder:default=Full
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// Storage of the copied disks. Default: the storage of the template's disks.
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

	// Cores of the VM, in one socket. Default: the cores and sockets of the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	Cores *int32 `json:"cores,omitempty"`

	// CPUType that the guest sees, such as host or x86-64-v2-AES. Default: the type of the template.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	CPUType *string `json:"cpuType,omitempty"`

	// MemoryMiB is the memory of the VM in MiB. Default: the memory of the template.
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=4194304
	MemoryMiB *int64 `json:"memoryMiB,omitempty"`

	// DiskSizeGiB is the size of the boot disk in GiB. It must not be less than the size in the
	// template, which is the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	DiskSizeGiB *int64 `json:"diskSizeGiB,omitempty"`

	// Disks that the VM has in addition to those of the template, as scsi devices.
	// +optional
	// +kubebuilder:validation:MaxItems=14
	Disks []Disk `json:"disks,omitempty"`

	// Networks that the VM has cards in, in this order. They replace the cards of the template, which
	// are the default.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	Networks []Network `json:"networks,omitempty"`

	// Agent means that the QEMU guest agent runs in the VM. The addresses of the VM are read from it.
	// +kubebuilder:default=true
	Agent *bool `json:"agent,omitempty"`

	// StartOnBoot means that the node starts the VM when the node boots.
	// +kubebuilder:default=true
	StartOnBoot *bool `json:"startOnBoot,omitempty"`

	// Tags of the VM, in addition to those by which the provider finds it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_][a-z0-9_.+-]*$`
	Tags []string `json:"tags,omitempty"`

	// Attributes of the VM, such as its installation and its Machine. They are written to the notes of
	// the VM, because tags allow few characters. A name has letters, digits and ._/- only. A value is
	// one line of at most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Attributes map[string]string `json:"attributes,omitempty"`

	// CloudInit configures the image with the user data. It is required for user data.
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
	// Node of the VM.
	// +optional
	Node string `json:"node,omitempty"`
	// Task is the UPID of the running task that changes the VM.
	// +optional
	Task string `json:"task,omitempty"`
	// LastTask is the UPID of the last task that ended. The web interface shows its log.
	// +optional
	LastTask string `json:"lastTask,omitempty"`
	// CloneTask is the UPID of the task that cloned the template.
	// +optional
	CloneTask string `json:"cloneTask,omitempty"`
	// MACAddresses of the network cards.
	// +optional
	MACAddresses []string `json:"macAddresses,omitempty"`
	// Image is the volume ID of the image with the user data.
	// +optional
	Image string `json:"image,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.template)",message="spec.forProvider.template is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || !(has(self.forProvider.userData) || has(self.forProvider.userDataSecretRef)) || has(self.forProvider.cloudInit)",message="spec.forProvider.cloudInit is required for user data: it names the storage of the image"
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

// A VirtualMachine is a VM of Proxmox VE, cloned from a template. Its external name is the UUID in its
// SMBIOS. Default: the UID of this object.
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
