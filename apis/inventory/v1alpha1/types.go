package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is the kind of the inventories of all clouds. Each is in the group of its provider.
const Kind = "VirtualMachineInventory"

// MaxUnclaimed is the maximum number of unclaimed VMs that an inventory lists. VMs that were seen
// first are listed first. UnclaimedCount counts all of them.
const MaxUnclaimed = 100

// Bounds of the other lists of an inventory. MaxListed is the maximum length of the lists of
// missing VMs, of states and of resources. MaxRemembered is the maximum number of remembered
// claimed VMs.
const (
	MaxListed     = 100
	MaxRemembered = 4096
)

// VirtualMachineKind is a kind of managed resources that claim VMs.
type VirtualMachineKind struct {
	// APIVersion of the kind.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// Kind of the managed resources.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// RegionPath is the path of the field that holds the region of a VM of the kind, such as
	// spec.forProvider.region. Only VMs in the inventory's region can be missing.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RegionPath string `json:"regionPath,omitempty"`

	// NamespacePath is the path of the field that holds the namespace of a VM of the kind, at
	// clouds whose VMs have one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NamespacePath string `json:"namespacePath,omitempty"`
}

// InventoryParameters select the VMs to look for.
type InventoryParameters struct {
	// Installations whose VMs are looked for: the values of the tag drover-installation. VMs
	// without this tag are ignored.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`
	Installations []string `json:"installations"`

	// VirtualMachine is the kind of managed resources that claim VMs. A VM is claimed if a resource
	// of this kind, in any namespace, has it as its external name.
	VirtualMachine VirtualMachineKind `json:"virtualMachine"`

	// Region whose VMs are listed, at clouds whose API has an endpoint per region.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Region string `json:"region,omitempty"`

	// Namespace whose VMs are listed, at clouds whose VMs have one. It is not the namespace of
	// Machines.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// Ignore lists the external names of VMs to ignore, because the author of the inventory handles
	// them already. The inventory remembers nothing about an ignored VM: if it is not ignored any
	// more, it counts as seen for the first time.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Ignore []string `json:"ignore,omitempty"`

	// Interval between two looks at the cloud. A failed look is repeated sooner. If a VM or a state
	// is due to be confirmed, the next look comes sooner too.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +kubebuilder:default="5m"
	Interval metav1.Duration `json:"interval,omitempty,omitzero"`

	// ConfirmAfter is how long a VM must be unclaimed to be confirmed as such: by a look that comes
	// at least this long after the first look that saw it unclaimed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="15m"
	ConfirmAfter metav1.Duration `json:"confirmAfter,omitempty,omitzero"`
}

// An UnclaimedVirtualMachine is a VM that no managed resource has as its external name. The VM of a
// Machine that is being created can be unclaimed for a moment.
type UnclaimedVirtualMachine struct {
	// ExternalName by which a managed resource claims the VM.
	ExternalName string `json:"externalName"`

	// ProviderID of the VM, as its Node has it, if the cloud reports it.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Name of the VM, which is the name of its Machine's VM resource, if the cloud reports it. It
	// identifies the Machine if the tags do not.
	// +optional
	Name string `json:"name,omitempty"`

	// Installation that created the VM, by its tag.
	// +optional
	Installation string `json:"installation,omitempty"`

	// Cluster is the name of the configuration of the target cluster that the VM was created for,
	// by its tag.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Namespace of the Machine that the VM was created for, by its tag.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Machine that the VM was created for, by its tag.
	// +optional
	Machine string `json:"machine,omitempty"`

	// MachineUID is the UID of that Machine, by its tag.
	// +optional
	MachineUID string `json:"machineUID,omitempty"`

	// CreatedAt is when the VM was created, if the cloud reports it.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// FirstSeen is when a look first saw the VM unclaimed. All looks since then saw it unclaimed.
	FirstSeen metav1.Time `json:"firstSeen"`

	// ConfirmedAt is the time of the first look that saw the VM unclaimed confirmAfter or more
	// after firstSeen.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}

// InventoryObservation is the result of the last complete look at the cloud. If a look fails or is
// incomplete, the observation stays, and the condition Synced of the resource is False.
type InventoryObservation struct {
	// Unclaimed VMs, at most 100, those seen first at the front.
	// +optional
	// +listType=atomic
	Unclaimed []UnclaimedVirtualMachine `json:"unclaimed,omitempty"`

	// UnclaimedCount is the number of all unclaimed VMs.
	// +optional
	UnclaimedCount int32 `json:"unclaimedCount,omitempty"`

	// ClaimedCount is the number of claimed VMs of the installations, without ignored ones.
	// +optional
	ClaimedCount int32 `json:"claimedCount,omitempty"`

	// Missing VMs are claimed, and were listed by an earlier look but not by the last one. The list
	// has at most 100 VMs, those missed first at the front.
	// +optional
	// +listType=atomic
	Missing []MissingVirtualMachine `json:"missing,omitempty"`

	// MissingDoubt is why VMs that the last look did not list do not count as missing: the list
	// lacks more VMs than it has, so that it may be the list of another account. It is "" if there
	// is no doubt.
	// +optional
	MissingDoubt string `json:"missingDoubt,omitempty"`

	// States of claimed VMs that are Stopped or Failed, at most 100, those seen first at the front.
	// +optional
	// +listType=atomic
	States []VirtualMachineState `json:"states,omitempty"`

	// Remembered has hashes of the external names of claimed VMs that a look listed, at most 4096.
	// Only such a VM can be missing, because it was in this account and place.
	// +optional
	Remembered string `json:"remembered,omitempty"`

	// Resources beside the VMs that nothing uses, at most 100, those seen first at the front.
	// +optional
	// +listType=atomic
	Resources []UnusedResource `json:"resources,omitempty"`

	// ResourceCount is the number of all unused resources.
	// +optional
	ResourceCount int32 `json:"resourceCount,omitempty"`

	// ResourcesProblem is why the resources beside the VMs could not be listed. In this case
	// resources and resourceCount keep the result of the last successful list.
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

// A MissingVirtualMachine is a VM that is claimed, and that the cloud does not list any more.
type MissingVirtualMachine struct {
	Claim `json:",inline"`

	// FirstMissed is when a look first did not list the VM. No look since then listed it.
	FirstMissed metav1.Time `json:"firstMissed"`

	// ConfirmedAt is the time of the first look that missed the VM interval or more after
	// firstMissed. From then on the VM is lost.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}

// A VirtualMachineState is the state of a VM that is claimed and does not run.
type VirtualMachineState struct {
	Claim `json:",inline"`

	// State of the VM. A Stopped VM exists and is powered off. A Failed VM is an entry of the
	// cloud that never runs, such as after a failed allocation.
	// +kubebuilder:validation:Enum=Stopped;Failed
	State string `json:"state"`

	// Text is the state in the terms of the cloud.
	// +optional
	Text string `json:"text,omitempty"`

	// FirstSeen is when a look first saw the state. All looks since then saw it.
	FirstSeen metav1.Time `json:"firstSeen"`

	// ConfirmedAt is the time of the first look that saw the state interval or more after
	// firstSeen.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}

// An UnusedResource is a resource beside VMs that costs money and that nothing uses: a network
// interface, an address, a disk. It is reported, and never deleted.
type UnusedResource struct {
	// Type in the terms of the cloud, such as NetworkInterface.
	Type string `json:"type"`

	// ID by which a user finds the resource at the cloud.
	ID string `json:"id"`

	// Installation that created the resource, by its tag.
	// +optional
	Installation string `json:"installation,omitempty"`

	// Namespace of the Machine that the resource was created for, by its tag.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Machine that the resource was created for, by its tag.
	// +optional
	Machine string `json:"machine,omitempty"`

	// CreatedAt is when the resource was created, if the cloud reports it.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// FirstSeen is when a look first saw that nothing uses the resource.
	FirstSeen metav1.Time `json:"firstSeen"`

	// ConfirmedAt is the time of the first look that saw the resource unused confirmAfter or more
	// after firstSeen.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
}
