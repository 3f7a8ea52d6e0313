package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// Annotations of a VirtualMachine. Only the provider writes them.
const (
	// AnnotationCreateTask of a VirtualMachine is the UUID of the task that creates the VM.
	AnnotationCreateTask = Group + "/create-task"
)

// An IPAllocationMode is how a network card gets its address.
// +kubebuilder:validation:Enum=DHCP;POOL
type IPAllocationMode string

// Modes of allocation.
const (
	// IPAllocationDHCP leaves the address to a DHCP server. VMware Tools report the address.
	IPAllocationDHCP IPAllocationMode = "DHCP"
	// IPAllocationPool takes the address from the static IP pool of the network.
	IPAllocationPool IPAllocationMode = "POOL"
)

// A NetworkAdapterType is the type of a network card.
// +kubebuilder:validation:Enum=VMXNET3;E1000E;E1000
type NetworkAdapterType string

// A Network is a network that a VM has a network card in.
type Network struct {
	// Name of a network that the virtual data center can use.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// IPAllocationMode is how the network card gets its address.
	// +kubebuilder:default=DHCP
	IPAllocationMode IPAllocationMode `json:"ipAllocationMode,omitempty"`
	// SecondaryIPAllocationMode is how the network card gets its IPv6 address, in a network with IPv4 and IPv6. Default:
	// it gets none.
	// +optional
	SecondaryIPAllocationMode *IPAllocationMode `json:"secondaryIPAllocationMode,omitempty"`
	// AdapterType of the network card.
	// +kubebuilder:default=VMXNET3
	AdapterType NetworkAdapterType `json:"adapterType,omitempty"`
}

// A Disk is a disk that a VM has in addition to the system disk. It is created with the VM and deleted with it.
type Disk struct {
	// SizeGiB is the size of the disk in GiB.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=63488
	SizeGiB int64 `json:"sizeGiB"`
	// StorageProfile of the disk. Default: that of the VM.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	StorageProfile *string `json:"storageProfile,omitempty"`
}

// A FailureDomain is a virtual data center with the networks and the storage of VMs in it.
type FailureDomain struct {
	// Name of the failure domain, as the failureDomain of a Machine has it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// VDC of the failure domain. Default: the name of the failure domain.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	VDC *string `json:"vdc,omitempty"`
	// Networks in place of forProvider.networks.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Networks []Network `json:"networks,omitempty"`
	// StorageProfile in place of forProvider.storageProfile.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	StorageProfile *string `json:"storageProfile,omitempty"`
}

// VirtualMachineParameters are the parameters of a VM. They are used when the VM is created: a later change of
// them has no effect on the VM. A reference is a name, which must be unique.
//
// +kubebuilder:validation:XValidation:rule="!has(self.coresPerSocket) || has(self.cpus) && self.cpus % self.coresPerSocket == 0",message="coresPerSocket requires cpus, and must divide cpus without a remainder"
type VirtualMachineParameters struct {
	// Name of the VM, and the host name of its guest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`
	Name *string `json:"name,omitempty"`

	// VDC is the virtual data center of the VM.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	VDC *string `json:"vdc,omitempty"`

	// FailureDomain of the VM: the name of one of failureDomains. If none of them has the name, it is a virtual data
	// center. It takes precedence over vdc. Drover sets it to the failure domain of the Machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	FailureDomain *string `json:"failureDomain,omitempty"`

	// FailureDomains that differ in more than the virtual data center.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`

	// Catalog with the template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Catalog *string `json:"catalog,omitempty"`

	// Template is a vApp template with one VM, of which the VM is a copy.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Template *string `json:"template,omitempty"`

	// SizingPolicy of the VM, which sets CPUs and memory. Default: that of the virtual data center.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	SizingPolicy *string `json:"sizingPolicy,omitempty"`

	// PlacementPolicy of the VM, which selects its hosts. Default: that of the virtual data center.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PlacementPolicy *string `json:"placementPolicy,omitempty"`

	// CPUs is the number of CPUs of the VM. Default: those of the sizing policy or the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=768
	CPUs *int32 `json:"cpus,omitempty"`

	// CoresPerSocket is the number of CPUs of each socket. It must divide cpus. Default: that of the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=768
	CoresPerSocket *int32 `json:"coresPerSocket,omitempty"`

	// MemoryMiB is the memory of the VM in MiB, a multiple of 4. Default: that of the sizing policy or the template.
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=25165824
	// +kubebuilder:validation:MultipleOf=4
	MemoryMiB *int64 `json:"memoryMiB,omitempty"`

	// SystemDiskSizeGiB is the size of the system disk in GiB. It must not be less than that of the template, which is
	// the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=63488
	SystemDiskSizeGiB *int64 `json:"systemDiskSizeGiB,omitempty"`

	// SystemDiskIOPS is the IOPS reservation of the system disk. The storage profile must allow it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	SystemDiskIOPS *int64 `json:"systemDiskIOPS,omitempty"`

	// StorageProfile of the VM. Default: that of the virtual data center.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	StorageProfile *string `json:"storageProfile,omitempty"`

	// DataDisks that the VM has in addition to the system disk. The template must have one disk.
	// +optional
	// +kubebuilder:validation:MaxItems=12
	DataDisks []Disk `json:"dataDisks,omitempty"`

	// Networks that the VM has network cards in, in this order. The first one is the primary network.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Networks []Network `json:"networks,omitempty"`

	// GuestCustomization lets Cloud Director configure the guest at its first boot, including addresses of the mode
	// POOL. Default: true if a network has the mode POOL.
	// +optional
	GuestCustomization *bool `json:"guestCustomization,omitempty"`

	// Metadata of the VM, such as its installation and its Machine. A name has letters, digits and ._/- only. A value
	// is one line of at most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Metadata map[string]string `json:"metadata,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// GuestAddresses are addresses that the guest reports through VMware Tools. The guest chooses them.
	// +optional
	GuestAddresses []nativev1alpha1.Address `json:"guestAddresses,omitempty"`
	// ID of the VM, such as urn:vcloud:vm:4a2b....
	// +optional
	ID string `json:"id,omitempty"`
	// VApp is the UUID of the vApp that Cloud Director created for the VM.
	// +optional
	VApp string `json:"vApp,omitempty"`
	// VDC is the UUID of the virtual data center of the VM.
	// +optional
	VDC string `json:"vdc,omitempty"`
	// User is the ID of the user who last observed the VM.
	// +optional
	User string `json:"user,omitempty"`
	// MACAddresses of the network cards.
	// +optional
	MACAddresses []string `json:"macAddresses,omitempty"`
	// Task is the UUID of the running task that changes the VM.
	// +optional
	Task string `json:"task,omitempty"`
	// Step is the step of the creation that the task carries out.
	// +optional
	Step string `json:"step,omitempty"`
	// CompletedSteps are the steps of the creation that are complete.
	// +optional
	CompletedSteps []string `json:"completedSteps,omitempty"`
	// LastTask is the UUID of the last task that ended.
	// +optional
	LastTask string `json:"lastTask,omitempty"`
	// CreateTask is the UUID of the task that created the VM.
	// +optional
	CreateTask string `json:"createTask,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.vdc) || has(self.forProvider.failureDomain)",message="spec.forProvider.vdc or spec.forProvider.failureDomain is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.catalog)",message="spec.forProvider.catalog is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.template)",message="spec.forProvider.template is required"
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

// A VirtualMachine is a standalone VM of VMware Cloud Director. Its external name is a UUID that the provider chooses
// and writes to the description of the VM, by default the UID of this object. The UUID of an existing VM, which is the
// end of its ID, is an external name too.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,vcd}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.status.atProvider.id`
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
