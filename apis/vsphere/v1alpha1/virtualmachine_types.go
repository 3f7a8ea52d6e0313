package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// AnnotationCloneTask of a VirtualMachine is the ID of the vCenter's task that clones its VM. It is
// written in the same update as the annotation that the creation succeeded.
const AnnotationCloneTask = Group + "/clone-task"

// A CloneMode is how the disks of a template are cloned.
// +kubebuilder:validation:Enum=Full;Linked
type CloneMode string

// Modes of cloning.
const (
	// CloneFull copies the disks.
	CloneFull CloneMode = "Full"
	// CloneLinked creates disks that hold only the differences to a snapshot.
	CloneLinked CloneMode = "Linked"
)

// A PowerState is the desired state of a VM's power.
// +kubebuilder:validation:Enum=On;Off
type PowerState string

// Desired states of a VM's power.
const (
	PowerOn  PowerState = "On"
	PowerOff PowerState = "Off"
)

// An Adapter is a model of a virtual network card.
// +kubebuilder:validation:Enum=vmxnet3;e1000e;e1000;sriov
type Adapter string

// An AddressType is the type of an address of a Node.
// +kubebuilder:validation:Enum=InternalIP;ExternalIP
type AddressType string

// Types of addresses that a network can have.
const (
	AddressInternal AddressType = "InternalIP"
	AddressExternal AddressType = "ExternalIP"
)

// A Network is a network that a VM has a network card in.
type Network struct {
	// Name or inventory path of the network: a standard or distributed port group, or
	// an NSX segment.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Adapter is the model of the card.
	// +kubebuilder:default=vmxnet3
	Adapter Adapter `json:"adapter,omitempty"`
	// AddressType of the addresses that the VM has in this network.
	// +kubebuilder:default=InternalIP
	AddressType AddressType `json:"addressType,omitempty"`
}

// A UserDataFormat selects the program in the guest that reads the user data.
// +kubebuilder:validation:Enum=CloudInit;Ignition
type UserDataFormat string

// Formats of user data.
const (
	// FormatCloudInit is for cloud-init, which reads guestinfo.userdata.
	FormatCloudInit UserDataFormat = "CloudInit"
	// FormatIgnition is for Ignition, which reads guestinfo.ignition.config.data.
	FormatIgnition UserDataFormat = "Ignition"
)

// GuestInfo is the data that the VM reads at its first boot, from the guestinfo of its
// configuration.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.userData) && has(self.userDataSecretRef))",message="set userData or userDataSecretRef, not both"
type GuestInfo struct {
	// UserDataSecretRef names the Secret in the VM's namespace, and its key, with the user data.
	// +optional
	UserDataSecretRef *xpv2.LocalSecretKeySelector `json:"userDataSecretRef,omitempty"`
	// UserData as plain text.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Format of the user data.
	// +kubebuilder:default=CloudInit
	Format UserDataFormat `json:"format,omitempty"`
	// Metadata for cloud-init, as YAML or JSON, such as its network configuration. The default has
	// instance-id and local-hostname. A value replaces the whole default.
	// +optional
	Metadata *string `json:"metadata,omitempty"`
}

// A Tag is a tag that exists in the vCenter: its id, or its category and name.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) ? !has(self.category) && !has(self.name) : has(self.category) && has(self.name)",message="set id, or category and name"
type Tag struct {
	// ID of the tag, such as urn:vmomi:InventoryServiceTag:...:GLOBAL.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ID *string `json:"id,omitempty"`
	// Category of the tag, by name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Category *string `json:"category,omitempty"`
	// Name of the tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Name *string `json:"name,omitempty"`
}

// A ProvisioningMode is how the space of a disk is allocated.
// +kubebuilder:validation:Enum=Thin;Thick;EagerlyZeroed
type ProvisioningMode string

// Modes of provisioning.
const (
	// ProvisionThin allocates space when the guest writes.
	ProvisionThin ProvisioningMode = "Thin"
	// ProvisionThick allocates all space when the disk is created, and zeroes it when the guest
	// first writes.
	ProvisionThick ProvisioningMode = "Thick"
	// ProvisionEagerlyZeroed allocates and zeroes all space when the disk is created.
	ProvisionEagerlyZeroed ProvisioningMode = "EagerlyZeroed"
)

// A DataDisk is an empty disk that is created with the VM, and deleted with it.
type DataDisk struct {
	// SizeGiB is the size of the disk in GiB.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=63488
	SizeGiB int64 `json:"sizeGiB"`
	// ProvisioningMode is Thin, Thick or EagerlyZeroed. The default is that of the datastore.
	// +optional
	ProvisioningMode *ProvisioningMode `json:"provisioningMode,omitempty"`
	// Datastore of the disk, by name or inventory path. The default is the VM's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Datastore *string `json:"datastore,omitempty"`
}

// VirtualMachineParameters are the parameters that a VM is created with. After the creation, only
// changes of powerState, tags and customAttributes are applied to the VM.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.datastore) && has(self.datastoreCluster))",message="set datastore or datastoreCluster, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.diskSizeGiB) && self.cloneMode == 'Linked')",message="diskSizeGiB: the disk of a linked clone has the size of its template's; use cloneMode Full"
// +kubebuilder:validation:XValidation:rule="!has(self.snapshot) || self.cloneMode == 'Linked'",message="snapshot is only for cloneMode Linked"
// +kubebuilder:validation:XValidation:rule="!(has(self.coresPerSocket) && has(self.cpus)) || self.cpus % self.coresPerSocket == 0",message="cpus must be a multiple of coresPerSocket"
type VirtualMachineParameters struct {
	// Name of the VM. It must be unique in its folder.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^[^/\\%]+$`
	Name *string `json:"name,omitempty"`

	// Datacenter by name or inventory path. It is required if the vCenter has several.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Datacenter *string `json:"datacenter,omitempty"`

	// Template that is cloned, by name or inventory path. It may also be a VM that is powered off.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Template *string `json:"template,omitempty"`

	// CloneMode is Full to copy the template's disks, or Linked to create disks that depend on one
	// of its snapshots. The default is Full.
	// +kubebuilder:default=Full
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// Snapshot of the template that a linked clone is created from, by name. The default is the
	// template's current snapshot.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Snapshot *string `json:"snapshot,omitempty"`

	// Folder of the VM, by inventory path. The default is the datacenter's VM folder.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Folder *string `json:"folder,omitempty"`

	// Cluster or host that the VM runs in, by name or inventory path. It is the failure domain of a
	// Machine. If resourcePool is set too, the pool is looked up in this cluster or host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Cluster *string `json:"cluster,omitempty"`

	// ResourcePool by name or inventory path. The default is the root pool of the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ResourcePool *string `json:"resourcePool,omitempty"`

	// Datastore by name or inventory path. The default is the template's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Datastore *string `json:"datastore,omitempty"`

	// DatastoreCluster by name or inventory path. Storage DRS chooses one of its datastores.
	// +optional
	// +kubebuilder:validation:MinLength=1
	DatastoreCluster *string `json:"datastoreCluster,omitempty"`

	// Networks of the VM's network cards, in this order. They replace the cards of the template. By
	// default the VM has the cards of the template.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Networks []Network `json:"networks,omitempty"`

	// CPUs is the number of CPUs of the VM. The default is that of the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=768
	CPUs *int32 `json:"cpus,omitempty"`

	// CoresPerSocket is the number of cores per socket that the guest sees. It must divide cpus.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=768
	CoresPerSocket *int32 `json:"coresPerSocket,omitempty"`

	// MemoryMiB is the memory of the VM in MiB, a multiple of 4. The default is that of the
	// template.
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:MultipleOf=4
	MemoryMiB *int64 `json:"memoryMiB,omitempty"`

	// DiskSizeGiB is the size of the first disk in GiB. It must not be less than the size in the
	// template, which is the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=63488
	DiskSizeGiB *int64 `json:"diskSizeGiB,omitempty"`

	// DataDisks are created empty with the VM, in this order, after the disks of the template. They
	// are attached to the first SCSI controllers with a free unit, and are deleted with the VM.
	// +optional
	// +kubebuilder:validation:MaxItems=29
	DataDisks []DataDisk `json:"dataDisks,omitempty"`

	// AntiAffinityGroup is the name of a group of VMs that DRS runs on different hosts, if it can.
	// The group has the VMs of the same namespace, vSphere cluster and name. DRS must be enabled in
	// the cluster. The group becomes the rule drover.NAMESPACE.GROUP of the cluster, which is not
	// mandatory.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	AntiAffinityGroup *string `json:"antiAffinityGroup,omitempty"`

	// GuestInfo is the data that the VM reads at its first boot.
	// +optional
	GuestInfo *GuestInfo `json:"guestInfo,omitempty"`

	// ExtraConfig are additional keys of the VM's configuration. It must not have keys that
	// guestInfo sets.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['guestinfo.userdata', 'guestinfo.userdata.encoding', 'guestinfo.metadata', 'guestinfo.metadata.encoding', 'guestinfo.ignition.config.data', 'guestinfo.ignition.config.data.encoding']))",message="user data and metadata are set by guestInfo"
	// +kubebuilder:validation:MaxProperties=64
	ExtraConfig map[string]string `json:"extraConfig,omitempty"`

	// PowerState is the desired state of the VM's power.
	// +kubebuilder:default=On
	PowerState PowerState `json:"powerState,omitempty"`

	// Tags that are attached to the VM. They must exist in the vCenter.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Tags []Tag `json:"tags,omitempty"`

	// CustomAttributes of the VM by name, with their values. If the vCenter does not have an
	// attribute, it is created there, for virtual machines.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	CustomAttributes map[string]string `json:"customAttributes,omitempty"`
}

// An Address of a VM.
type Address struct {
	// Type of the address: InternalIP or ExternalIP.
	Type string `json:"type"`
	// Address itself.
	Address string `json:"address"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	// VCenter is the instance UUID of the vCenter that the VM is in.
	// +optional
	VCenter string `json:"vCenter,omitempty"`
	// MoRef is the VM's managed object ID in that vCenter, such as vm-42.
	// +optional
	MoRef string `json:"moRef,omitempty"`
	// BIOSUUID of the VM, as its guest sees it.
	// +optional
	BIOSUUID string `json:"biosUUID,omitempty"`
	// ProviderID of the VM's Node. It is empty until the VM is completely configured.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// State of the VM's power: poweredOn, poweredOff or suspended.
	// +optional
	State string `json:"state,omitempty"`
	// ConnectionState of the VM in the vCenter, if it is not connected.
	// +optional
	ConnectionState string `json:"connectionState,omitempty"`
	// Addresses that the guest's tools report. vSphere does not attest them.
	// +optional
	Addresses []Address `json:"addresses,omitempty"`
	// Disks are the UUIDs of the disks that the VM was created with, and that are deleted with it.
	// All other disks are detached before the VM is deleted.
	// +optional
	Disks []string `json:"disks,omitempty"`
}

// VirtualMachineSpec is the desired state of a VirtualMachine.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.forProvider.template)",message="spec.forProvider.template is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.forProvider.cluster) || has(self.forProvider.resourcePool)",message="spec.forProvider.cluster or spec.forProvider.resourcePool is required: a template is in none"
type VirtualMachineSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider VirtualMachineParameters `json:"forProvider"`
}

// VirtualMachineStatus is the observed state of a VirtualMachine.
type VirtualMachineStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider VirtualMachineObservation `json:"atProvider,omitempty"`
}

// A VirtualMachine is a VM of a vCenter, cloned from a template. Its external name is
// the VM's instance UUID, which is the UID of this object unless it is set.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,vsphere}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="MoRef",type=string,JSONPath=`.status.atProvider.moRef`,priority=1
// +kubebuilder:printcolumn:name="External-Name",type=string,JSONPath=`.metadata.annotations.crossplane\.io/external-name`
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
