package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// Annotations of a VirtualMachine. The provider writes them.
const (
	// AnnotationRequestID of a VirtualMachine is the NTNX-Request-Id of the creation. It is written before the VM is
	// created. A creation whose response was lost is requested with it again.
	AnnotationRequestID = Group + "/request-id"
	// AnnotationCreateTask of a VirtualMachine is the ID of the task that creates the VM.
	AnnotationCreateTask = Group + "/create-task"
)

// A BootType is the firmware that boots a VM.
// +kubebuilder:validation:Enum=Legacy;UEFI;SecureBoot
type BootType string

// Types of firmware.
const (
	// BootLegacy is a BIOS.
	BootLegacy BootType = "Legacy"
	// BootUEFI is UEFI without Secure Boot.
	BootUEFI BootType = "UEFI"
	// BootSecure is UEFI with Secure Boot. The VM has the machine type Q35, which Secure Boot requires.
	BootSecure BootType = "SecureBoot"
)

// A BusType is the bus of a disk.
// +kubebuilder:validation:Enum=SCSI;PCI;SATA;IDE
type BusType string

// A GPUMode is how a VM uses a GPU.
// +kubebuilder:validation:Enum=PASSTHROUGH_GRAPHICS;PASSTHROUGH_COMPUTE;VIRTUAL
type GPUMode string

// A GPUVendor is the vendor of a GPU.
// +kubebuilder:validation:Enum=NVIDIA;AMD;INTEL
type GPUVendor string

// A Disk is a disk that a VM has in addition to the system disk. It is created with the VM and deleted with it.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.image) && has(self.storageContainer))",message="set image or storageContainer, not both: Nutanix creates a copy of an image in the storage container of the image"
type Disk struct {
	// SizeGiB is the size of the disk in GiB.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	SizeGiB int64 `json:"sizeGiB"`
	// StorageContainer of the disk, by name or UUID. Default: Nutanix chooses one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=75
	StorageContainer *string `json:"storageContainer,omitempty"`
	// Image that the disk is a copy of, by name or UUID. Default: the disk is empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Image *string `json:"image,omitempty"`
	// BusType of the disk.
	// +kubebuilder:default=SCSI
	BusType BusType `json:"busType,omitempty"`
}

// A Category is a category of Prism Central. It must exist.
type Category struct {
	// Key of the category.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Key string `json:"key"`
	// Value of the category.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Value string `json:"value"`
}

// A GPU is a GPU of a VM. The GPU profiles of the cluster have the values of the fields.
type GPU struct {
	// Mode in which the VM uses the GPU.
	Mode GPUMode `json:"mode"`
	// DeviceID is the PCI device ID of the GPU.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	DeviceID int32 `json:"deviceID"`
	// Vendor of the GPU.
	Vendor GPUVendor `json:"vendor"`
}

// A FailureDomain is a cluster with the networks of VMs on it.
type FailureDomain struct {
	// Name of the failure domain, as the failureDomain of a Machine has it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Cluster of the failure domain, by name or UUID. Default: the name of the failure domain.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Cluster *string `json:"cluster,omitempty"`
	// Subnets in place of forProvider.subnets.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=80
	Subnets []string `json:"subnets,omitempty"`
}

// VirtualMachineParameters are the parameters of a VM. They are used when the VM is created: a later change of
// them has no effect on the VM. A reference is a name or a UUID. A name must be unique.
type VirtualMachineParameters struct {
	// Name of the VM, and the host name of its guest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`
	Name *string `json:"name,omitempty"`

	// Cluster of the VM (Prism Element), by name or UUID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Cluster *string `json:"cluster,omitempty"`

	// FailureDomain of the VM: the name of one of failureDomains. If none of them has the name, it is a cluster, by
	// name or UUID. It takes precedence over cluster. Drover sets it to the failure domain of the Machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	FailureDomain *string `json:"failureDomain,omitempty"`

	// FailureDomains that differ in more than the cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`

	// Project of the VM, by name or UUID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Project *string `json:"project,omitempty"`

	// Image of the system disk, by name or UUID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Image *string `json:"image,omitempty"`

	// VCPUSockets is the number of vCPU sockets.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=240
	VCPUSockets int32 `json:"vcpuSockets,omitempty"`

	// VCPUsPerSocket is the number of vCPUs of each socket.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=240
	VCPUsPerSocket int32 `json:"vcpusPerSocket,omitempty"`

	// MemoryMiB is the memory of the VM in MiB.
	// +optional
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=12582912
	MemoryMiB *int64 `json:"memoryMiB,omitempty"`

	// SystemDiskSizeGiB is the size of the system disk in GiB. It must not be less than the size of the image,
	// which is the default. The disk is in the storage container of the image.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	SystemDiskSizeGiB *int64 `json:"systemDiskSizeGiB,omitempty"`

	// DataDisks that the VM has in addition to the system disk.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	DataDisks []Disk `json:"dataDisks,omitempty"`

	// Subnets that the VM has network cards in, in this order, by name or UUID. A name is that of a subnet of the
	// VM's cluster, or of an overlay subnet.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=80
	Subnets []string `json:"subnets,omitempty"`

	// Categories of the VM.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Categories []Category `json:"categories,omitempty"`

	// BootType is the firmware that boots the VM. The image must support it.
	// +kubebuilder:default=Legacy
	BootType BootType `json:"bootType,omitempty"`

	// GPUs of the VM.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	GPUs []GPU `json:"gpus,omitempty"`

	// Attributes of the VM, such as its installation and its Machine. They are written to the description of
	// the VM, because each value of a category is an object of Prism Central. A name has letters, digits and ._/-
	// only. A value is one line of at most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Attributes map[string]string `json:"attributes,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// LearnedAddresses are addresses that Nutanix learned from the traffic of the guest. The guest chooses them.
	// +optional
	LearnedAddresses []nativev1alpha1.Address `json:"learnedAddresses,omitempty"`
	// UUID of the VM.
	// +optional
	UUID string `json:"uuid,omitempty"`
	// Cluster is the UUID of the VM's cluster.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Host is the UUID of the host that the VM runs on.
	// +optional
	Host string `json:"host,omitempty"`
	// MACAddresses of the network cards.
	// +optional
	MACAddresses []string `json:"macAddresses,omitempty"`
	// Task is the ID of the running task that changes the VM.
	// +optional
	Task string `json:"task,omitempty"`
	// LastTask is the ID of the last task that ended.
	// +optional
	LastTask string `json:"lastTask,omitempty"`
	// CreateTask is the ID of the task that created the VM.
	// +optional
	CreateTask string `json:"createTask,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.cluster) || has(self.forProvider.failureDomain)",message="spec.forProvider.cluster or spec.forProvider.failureDomain is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.image)",message="spec.forProvider.image is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.memoryMiB)",message="spec.forProvider.memoryMiB is required"
// +kubebuilder:validation:XValidation:rule="!has(self.forProvider.bootType) || self.forProvider.bootType != 'SecureBoot' || !has(self.forProvider.dataDisks) || self.forProvider.dataDisks.all(d, !has(d.busType) || d.busType != 'IDE')",message="spec.forProvider.dataDisks: busType IDE is not possible with bootType SecureBoot, whose machine type is Q35; use SCSI, PCI or SATA"
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

// A VirtualMachine is a VM of Nutanix AHV, created through Prism Central. Its external name is a UUID that the
// provider chooses and writes to the description of the VM, by default the UID of this object. The UUID of an
// existing VM is an external name too.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,nutanix}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="UUID",type=string,JSONPath=`.status.atProvider.uuid`
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
