package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of the inventories of all clouds. Each is in the group of its provider.
const Kind = "VirtualMachineInventory"

// MaxUnclaimed is how many VMs an inventory names at most. Those that were seen first
// come first, and UnclaimedCount counts the others too.
const MaxUnclaimed = 100

// Bounds of the other lists of an inventory. MaxListed is how many missing VMs, how many states
// and how many resources it names at most. MaxRemembered is how many claimed VMs it remembers.
const (
	MaxListed     = 100
	MaxRemembered = 4096
)

// VirtualMachineKind is the kind of managed resources that claim VMs.
type VirtualMachineKind struct {
	// APIVersion of the kind.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// Kind itself.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// RegionPath is the path of the field that holds the region of a VM of the kind, such as
	// spec.forProvider.region. Only VMs of the inventory's region can be missing.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RegionPath string `json:"regionPath,omitempty"`

	// NamespacePath is the path of the field that holds the namespace of a VM of the kind, at
	// clouds where VMs have one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NamespacePath string `json:"namespacePath,omitempty"`
}

// InventoryParameters say which VMs are looked for.
type InventoryParameters struct {
	// Installations whose VMs are looked for: the values of the tag
	// drover-installation. VMs without it are never looked at.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`
	Installations []string `json:"installations"`

	// VirtualMachine is the kind of managed resource by which VMs are claimed: a VM is
	// when a resource of this kind, in any namespace, has it as its external name.
	VirtualMachine VirtualMachineKind `json:"virtualMachine"`

	// Region whose VMs are listed, at clouds whose API has an endpoint per region.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Region string `json:"region,omitempty"`

	// Namespace whose VMs are listed, at clouds where VMs have one. It is not the namespace of
	// Machines.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// Ignore VMs with these external names: whoever asks deals with them already. Nothing
	// is remembered of them, so that one that is not ignored any more is seen for the
	// first time.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Ignore []string `json:"ignore,omitempty"`

	// Interval between two looks at the cloud. One that fails is repeated sooner, and
	// one that is due to confirm something comes sooner.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +kubebuilder:default="5m"
	Interval metav1.Duration `json:"interval,omitempty,omitzero"`

	// ConfirmAfter is how long a VM must be unclaimed until that is confirmed: by a
	// second look, at least so long after the first that saw it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:default="15m"
	ConfirmAfter metav1.Duration `json:"confirmAfter,omitempty,omitzero"`
}

// An UnclaimedVirtualMachine is a VM that no managed resource has as its external
// name. That of a Machine which is being created is one for a moment.
type UnclaimedVirtualMachine struct {
	// ExternalName by which a managed resource claims the VM.
	ExternalName string `json:"externalName"`

	// ProviderID of the VM, as its Node has it, if the cloud tells.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Name that the VM was given, which is that of its Machine's VM resource, if the cloud
	// tells. It identifies the Machine where the tags do not.
	// +optional
	Name string `json:"name,omitempty"`

	// Installation that made the VM, by its tag.
	// +optional
	Installation string `json:"installation,omitempty"`

	// Cluster is the name of the configuration of the target cluster that the VM was made
	// for, by its tag.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Namespace of the Machine that the VM was made for, by its tag.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Machine that the VM was made for, by its tag.
	// +optional
	Machine string `json:"machine,omitempty"`

	// MachineUID is the UID of that Machine, by its tag.
	// +optional
	MachineUID string `json:"machineUID,omitempty"`

	// CreatedAt is when the VM was created, if the cloud tells.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// FirstSeen is when a look at the cloud first saw the VM unclaimed. All looks
	// since then did too.
	FirstSeen metav1.Time `json:"firstSeen"`

	// ConfirmedAt is when the first look saw so that came confirmAfter or later.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}

// InventoryObservation is what the last complete look at the cloud saw. A look that
// fails, or tells only a part, changes nothing of it: the resource is then not Synced.
type InventoryObservation struct {
	// Unclaimed VMs, those seen first at the front, 100 at most.
	// +optional
	// +listType=atomic
	Unclaimed []UnclaimedVirtualMachine `json:"unclaimed,omitempty"`

	// UnclaimedCount is how many there are in all.
	// +optional
	UnclaimedCount int32 `json:"unclaimedCount,omitempty"`

	// ClaimedCount is how many VMs of the installations are claimed, without those to
	// ignore.
	// +optional
	ClaimedCount int32 `json:"claimedCount,omitempty"`

	// Missing VMs are claimed, were listed by a look before, and are not any more. Those missed
	// first are at the front, 100 at most.
	// +optional
	// +listType=atomic
	Missing []MissingVirtualMachine `json:"missing,omitempty"`

	// MissingDoubt is why VMs that the last look did not list are not missing, "" if there is no
	// doubt: the list lacks more than it has, so that it may be that of another account.
	// +optional
	MissingDoubt string `json:"missingDoubt,omitempty"`

	// States of claimed VMs that are Stopped or Failed. Those seen first are at the front, 100
	// at most.
	// +optional
	// +listType=atomic
	States []VirtualMachineState `json:"states,omitempty"`

	// Remembered are hashes of the external names of claimed VMs that a look listed, 4096 at
	// most. Only such a VM can be missing: it was in this account, at this place.
	// +optional
	Remembered string `json:"remembered,omitempty"`

	// Resources beside the VMs that are not in use, those seen first at the front, 100 at most.
	// +optional
	// +listType=atomic
	Resources []UnusedResource `json:"resources,omitempty"`

	// ResourceCount is how many there are in all.
	// +optional
	ResourceCount int32 `json:"resourceCount,omitempty"`

	// ResourcesProblem is why the resources beside the VMs could not be listed. Resources is
	// then what the last list had.
	// +optional
	ResourcesProblem string `json:"resourcesProblem,omitempty"`
}

// A Claim is a managed resource that has a VM as its external name.
type Claim struct {
	// ExternalName of the VM.
	ExternalName string `json:"externalName"`

	// Namespace of the managed resource.
	Namespace string `json:"namespace"`

	// Name of the managed resource.
	Name string `json:"name"`

	// Machine that controls the managed resource, if a Machine does.
	// +optional
	Machine string `json:"machine,omitempty"`
}

// A MissingVirtualMachine is a VM that is claimed, and that the cloud has no more.
type MissingVirtualMachine struct {
	Claim `json:",inline"`

	// FirstMissed is when a look first did not list the VM. No look since then did.
	FirstMissed metav1.Time `json:"firstMissed"`

	// ConfirmedAt is when a look confirmed it that came interval or later after the first. The
	// VM is lost from then on.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}

// A VirtualMachineState is that of a VM which is claimed and does not run.
type VirtualMachineState struct {
	Claim `json:",inline"`

	// State of the VM. A Stopped VM exists and is powered off. A Failed VM is an entry of the
	// cloud that never runs, such as after a failed allocation.
	// +kubebuilder:validation:Enum=Stopped;Failed
	State string `json:"state"`

	// Text is the state in the cloud's words.
	// +optional
	Text string `json:"text,omitempty"`

	// FirstSeen is when a look first saw the state. All looks since then did.
	FirstSeen metav1.Time `json:"firstSeen"`

	// ConfirmedAt is when a look confirmed it that came interval or later after the first.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}

// An UnusedResource is something beside VMs that costs money and that nothing uses: a network
// interface, an address, a disk. It is reported, and never deleted.
type UnusedResource struct {
	// Type in the cloud's words, such as NetworkInterface.
	Type string `json:"type"`

	// ID by which a user finds the resource at the cloud.
	ID string `json:"id"`

	// Installation that made the resource, by its tag.
	// +optional
	Installation string `json:"installation,omitempty"`

	// Namespace of the Machine that the resource was made for, by its tag.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Machine that the resource was made for, by its tag.
	// +optional
	Machine string `json:"machine,omitempty"`

	// CreatedAt is when the resource was created, if the cloud tells.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// FirstSeen is when a look first saw that nothing uses the resource.
	FirstSeen metav1.Time `json:"firstSeen"`

	// ConfirmedAt is when the first look saw so that came confirmAfter or later.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}
