package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationCloneTask of a VirtualMachine is the vCenter's task that clones its VM. It
// is written together with the annotation that the creation succeeded.
const AnnotationCloneTask = Group + "/clone-task"

// A CloneMode says how the disks of a template are cloned.
// +kubebuilder:validation:Enum=Full;Linked
type CloneMode string

// Modes of cloning.
const (
	// CloneFull copies the disks.
	CloneFull CloneMode = "Full"
	// CloneLinked makes disks that only hold what differs from a snapshot.
	CloneLinked CloneMode = "Linked"
)

// A PowerState of a VM.
// +kubebuilder:validation:Enum=On;Off
type PowerState string

// States of power that a VM can be wanted in.
const (
	PowerOn  PowerState = "On"
	PowerOff PowerState = "Off"
)

// An Adapter is a model of a virtual network card.
// +kubebuilder:validation:Enum=vmxnet3;e1000e;e1000;sriov
type Adapter string

// An AddressType is that of a Node's address.
// +kubebuilder:validation:Enum=InternalIP;ExternalIP
type AddressType string

// Types of addresses that a network can have.
const (
	AddressInternal AddressType = "InternalIP"
	AddressExternal AddressType = "ExternalIP"
)

// A Network is one that a VM has a card in.
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

// A UserDataFormat is what reads the user data.
// +kubebuilder:validation:Enum=CloudInit;Ignition
type UserDataFormat string

// Formats of user data.
const (
	// FormatCloudInit is read from guestinfo.userdata.
	FormatCloudInit UserDataFormat = "CloudInit"
	// FormatIgnition is read from guestinfo.ignition.config.data.
	FormatIgnition UserDataFormat = "Ignition"
)

// GuestInfo is what the VM is told at its first boot, by the guestinfo of its
// configuration.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.userData) && has(self.userDataSecretRef))",message="set userData or userDataSecretRef, not both"
type GuestInfo struct {
	// UserDataSecretRef names the user data, in a Secret of the VM's namespace.
	// +optional
	UserDataSecretRef *xpv2.LocalSecretKeySelector `json:"userDataSecretRef,omitempty"`
	// UserData as plain text.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Format of the user data.
	// +kubebuilder:default=CloudInit
	Format UserDataFormat `json:"format,omitempty"`
	// Metadata for cloud-init, as YAML or JSON, like its network configuration. The
	// default gives instance-id and local-hostname; what is set here takes the place
	// of both.
	// +optional
	Metadata *string `json:"metadata,omitempty"`
}

// A Tag that is there already.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) ? !has(self.category) && !has(self.name) : has(self.category) && has(self.name)",message="set id, or category and name"
type Tag struct {
	// ID of the tag, like urn:vmomi:InventoryServiceTag:...:GLOBAL.
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

// VirtualMachineParameters say what VM is made. A VM is made once: of a VM that is
// there, only powerState, tags and customAttributes follow what stands here.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.datastore) && has(self.datastoreCluster))",message="set datastore or datastoreCluster, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.diskSizeGiB) && self.cloneMode == 'Linked')",message="diskSizeGiB: the disk of a linked clone has the size of its template's; use cloneMode Full"
// +kubebuilder:validation:XValidation:rule="!has(self.snapshot) || self.cloneMode == 'Linked'",message="snapshot is only for cloneMode Linked"
// +kubebuilder:validation:XValidation:rule="!(has(self.coresPerSocket) && has(self.cpus)) || self.cpus % self.coresPerSocket == 0",message="cpus must be a multiple of coresPerSocket"
type VirtualMachineParameters struct {
	// Name of the VM. It must be the only one of this name in its folder.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^[^/\\%]+$`
	Name *string `json:"name,omitempty"`

	// Datacenter by name or inventory path. Needed only where the vCenter has several.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Datacenter *string `json:"datacenter,omitempty"`

	// Template that is cloned, by name or inventory path. A VM that is powered off can
	// be one too.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Template *string `json:"template,omitempty"`

	// CloneMode says whether the template's disks are copied, or linked to one of its
	// snapshots.
	// +kubebuilder:default=Full
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// Snapshot of the template that a linked clone is made of, by name. The default is
	// its current one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Snapshot *string `json:"snapshot,omitempty"`

	// Folder of the VM, by inventory path. The default is the datacenter's VM folder.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Folder *string `json:"folder,omitempty"`

	// Cluster or host that the VM runs in, by name or inventory path. It is the failure
	// domain of a Machine. With resourcePool, that is looked for in it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Cluster *string `json:"cluster,omitempty"`

	// ResourcePool by name or inventory path. The default is the cluster's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ResourcePool *string `json:"resourcePool,omitempty"`

	// Datastore by name or inventory path. The default is the template's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Datastore *string `json:"datastore,omitempty"`

	// DatastoreCluster by name or inventory path: Storage DRS chooses a datastore of it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	DatastoreCluster *string `json:"datastoreCluster,omitempty"`

	// Networks that the VM has cards in, in this order, in place of those of the
	// template. The default is what the template has.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Networks []Network `json:"networks,omitempty"`

	// CPUs of the VM. The default is what the template has.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=768
	CPUs *int32 `json:"cpus,omitempty"`

	// CoresPerSocket is how the CPUs are shown to the guest.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=768
	CoresPerSocket *int32 `json:"coresPerSocket,omitempty"`

	// MemoryMiB of the VM, a multiple of 4. The default is what the template has.
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:MultipleOf=4
	MemoryMiB *int64 `json:"memoryMiB,omitempty"`

	// DiskSizeGiB is the size of the first disk, not less than the template's, which is
	// the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=63488
	DiskSizeGiB *int64 `json:"diskSizeGiB,omitempty"`

	// GuestInfo is what the VM is told at its first boot.
	// +optional
	GuestInfo *GuestInfo `json:"guestInfo,omitempty"`

	// ExtraConfig are further keys of the VM's configuration. Keys that guestInfo
	// writes are not for it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['guestinfo.userdata', 'guestinfo.userdata.encoding', 'guestinfo.metadata', 'guestinfo.metadata.encoding', 'guestinfo.ignition.config.data', 'guestinfo.ignition.config.data.encoding']))",message="user data and metadata are set by guestInfo"
	// +kubebuilder:validation:MaxProperties=64
	ExtraConfig map[string]string `json:"extraConfig,omitempty"`

	// PowerState that the VM shall have.
	// +kubebuilder:default=On
	PowerState PowerState `json:"powerState,omitempty"`

	// Tags that are attached to the VM. They must be there already.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Tags []Tag `json:"tags,omitempty"`

	// CustomAttributes of the VM by name, with their values. An attribute that the
	// vCenter does not have is defined, for virtual machines.
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

// VirtualMachineObservation is what is known of the VM.
type VirtualMachineObservation struct {
	// VCenter is the instance UUID of the vCenter that the VM is in.
	// +optional
	VCenter string `json:"vCenter,omitempty"`
	// MoRef is the VM's managed object ID in that vCenter, like vm-42.
	// +optional
	MoRef string `json:"moRef,omitempty"`
	// BIOSUUID of the VM, as its guest sees it.
	// +optional
	BIOSUUID string `json:"biosUUID,omitempty"`
	// ProviderID of the VM's Node. It is there once the VM is as it shall be.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// State of the VM's power: poweredOn, poweredOff or suspended.
	// +optional
	State string `json:"state,omitempty"`
	// ConnectionState says how the vCenter sees the VM, when that is not connected.
	// +optional
	ConnectionState string `json:"connectionState,omitempty"`
	// Addresses that the guest's tools report. vSphere does not attest them.
	// +optional
	Addresses []Address `json:"addresses,omitempty"`
	// Disks are the UUIDs of the disks that the VM was made with, and that go with it.
	// Others are detached before it is deleted.
	// +optional
	Disks []string `json:"disks,omitempty"`
}

// VirtualMachineSpec is what a VirtualMachine shall be.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.forProvider.template)",message="spec.forProvider.template is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.forProvider.cluster) || has(self.forProvider.resourcePool)",message="spec.forProvider.cluster or spec.forProvider.resourcePool is required: a template is in none"
type VirtualMachineSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider VirtualMachineParameters `json:"forProvider"`
}

// VirtualMachineStatus is what is known of a VirtualMachine.
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
