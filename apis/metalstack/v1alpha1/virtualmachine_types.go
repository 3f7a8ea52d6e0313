package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// A FailureDomain is a partition with the networks of machines in it. A private network of metal-stack is in one
// partition.
type FailureDomain struct {
	// Name of the failure domain, as the failureDomain of a Machine has it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Partition of the failure domain, by ID. Default: the name of the failure domain.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[^/?#]+$`
	Partition *string `json:"partition,omitempty"`
	// Networks in place of forProvider.networks.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[^/?#]+$`
	Networks []string `json:"networks,omitempty"`
}

// VirtualMachineParameters are the parameters of the allocation of a machine. They are used when the machine is
// allocated: a later change of them has no effect. References are IDs of metal-stack.
type VirtualMachineParameters struct {
	// Name of the allocation, and the host name of the machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name *string `json:"name,omitempty"`

	// Description of the allocation.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Description *string `json:"description,omitempty"`

	// Partition that the machine is in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[^/?#]+$`
	Partition *string `json:"partition,omitempty"`

	// FailureDomain of the machine: the name of one of failureDomains. If none of them has the name, it is a
	// partition. It takes precedence over partition. Drover sets it to the failure domain of the Machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/?#]+$`
	FailureDomain *string `json:"failureDomain,omitempty"`

	// FailureDomains whose networks differ.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`

	// Size of the machine, such as c1-xlarge-x86.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[^/?#]+$`
	Size *string `json:"size,omitempty"`

	// Image that is installed on the machine, such as debian-12. Without the last part of the version, metal-stack
	// chooses the newest image of the version. The image must have the feature machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[^/?#]+$`
	Image *string `json:"image,omitempty"`

	// Networks of the machine, which gets an address in each of them. Exactly one of them is a private network, of
	// the project and in the partition of the machine.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[^/?#]+$`
	Networks []string `json:"networks,omitempty"`

	// FilesystemLayout of the machine. Default: metal-stack chooses one by the size and the image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[^/?#]+$`
	FilesystemLayout *string `json:"filesystemLayout,omitempty"`

	// SSHKeys are the public keys of the user metal.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:items:Pattern=`^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/]+=*( [^\n]*)?$`
	SSHKeys []string `json:"sshKeys,omitempty"`

	// PlacementTags spread the machines with the same tags over the racks of the partition. Default: metal-stack
	// spreads the machines of the project.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	PlacementTags []string `json:"placementTags,omitempty"`

	// DNSServers of the machine, by IP address. Default: those of the partition.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:Pattern=`^[0-9a-fA-F.:]+$`
	DNSServers []string `json:"dnsServers,omitempty"`

	// NTPServers of the machine, by IP address or DNS name. Default: those of the partition. metal-stack requires
	// 3 to 5.
	// +optional
	// +kubebuilder:validation:MinItems=3
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[0-9a-zA-Z.:-]+$`
	NTPServers []string `json:"ntpServers,omitempty"`

	// Tags of the machine, such as its installation and its Machine. A tag of metal-stack has the text key=value.
	// The provider adds the tag drover-vm. metal-stack sets the tags whose key begins with machine.metal-stack.io/.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'drover-vm' && !k.startsWith('machine.metal-stack.io/'))",message="the keys drover-vm and machine.metal-stack.io/... are reserved"
	Tags map[string]string `json:"tags,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the allocation of a machine.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// MachineID is the ID of the machine. The machine exists longer than the VM, and may have been allocated for
	// another purpose before and after it.
	// +optional
	MachineID string `json:"machineID,omitempty"`
	// AllocationUUID is the UUID of the allocation, which is the VM.
	// +optional
	AllocationUUID string `json:"allocationUUID,omitempty"`
	// RemovedAllocation is the external name of an allocation that ended before the machine ran.
	// +optional
	RemovedAllocation string `json:"removedAllocation,omitempty"`
	// Hostname of the machine.
	// +optional
	Hostname string `json:"hostname,omitempty"`
	// Partition of the machine.
	// +optional
	Partition string `json:"partition,omitempty"`
	// Rack of the machine.
	// +optional
	Rack string `json:"rack,omitempty"`
	// Image is the ID of the image that is installed on the machine.
	// +optional
	Image string `json:"image,omitempty"`
	// ImageExpiresAt is the time after which metal-stack deletes the image if no machine has it.
	// +optional
	ImageExpiresAt *metav1.Time `json:"imageExpiresAt,omitempty"`
	// MachineState is LOCKED or RESERVED if a user of metal-stack set this state. A locked machine cannot be freed.
	// +optional
	MachineState string `json:"machineState,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.partition) || has(self.forProvider.failureDomain)",message="spec.forProvider.partition or spec.forProvider.failureDomain is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.size)",message="spec.forProvider.size is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.image)",message="spec.forProvider.image is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || (has(self.forProvider.networks) && size(self.forProvider.networks) > 0) || (has(self.forProvider.failureDomains) && self.forProvider.failureDomains.exists(d, has(d.networks)))",message="spec.forProvider.networks is required: it has the private network of the machine"
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

// A VirtualMachine is the allocation of a machine of metal-stack. Its external name is the ID of the machine and the
// UUID of the allocation, separated by a slash. The ID of a machine alone names no VM: the machine may have been
// allocated again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,metalstack}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.stateText`
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.status.atProvider.machineID`
// +kubebuilder:printcolumn:name="Partition",type=string,JSONPath=`.status.atProvider.partition`,priority=1
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
