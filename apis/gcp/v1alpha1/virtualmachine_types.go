package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// Annotations of a VirtualMachine.
const (
	// AnnotationRequestID is the request ID that the provider chose for the creation of the instance. It is written
	// before Compute Engine is called: Compute Engine carries out one creation per request ID.
	AnnotationRequestID = Group + "/request-id"
	// AnnotationOperation is the zone and the name of the operation that creates the instance, such as
	// europe-west4-a/operation-1. A creation without capacity fails in its operation.
	AnnotationOperation = Group + "/operation"
)

// DiskParameters are the parameters of a new disk.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.iops) && has(self.type) && self.type in ['pd-standard', 'pd-balanced', 'pd-ssd', 'local-ssd'])",message="iops requires a type with provisioned IOPS, such as pd-extreme or hyperdisk-balanced"
// +kubebuilder:validation:XValidation:rule="!(has(self.throughputMiB) && has(self.type) && !self.type.startsWith('hyperdisk-'))",message="throughputMiB requires a type of Hyperdisk"
type DiskParameters struct {
	// Type of the disk, such as pd-balanced, pd-ssd or hyperdisk-balanced. Default: pd-standard, or hyperdisk-balanced
	// if the machine type has no other.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Type *string `json:"type,omitempty"`
	// SizeGB is the size of the disk in GiB, which Google calls GB. Default: the size of its image or snapshot.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	SizeGB *int32 `json:"sizeGB,omitempty"`
	// IOPS that are provisioned. Default: those of the type and the size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	IOPS *int32 `json:"iops,omitempty"`
	// ThroughputMiB is the provisioned throughput in MiB per second. Default: that of the type and the size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	ThroughputMiB *int32 `json:"throughputMiB,omitempty"`
	// KMSKeyName is the Cloud KMS key that encrypts the disk, such as
	// projects/my-project/locations/europe-west4/keyRings/drover/cryptoKeys/disks. Default: a key of Google.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+(/cryptoKeyVersions/[0-9]+)?$`
	KMSKeyName *string `json:"kmsKeyName,omitempty"`
	// ResourcePolicies of the disk, such as a schedule of snapshots. Each is the name of one in the region of the instance,
	// or a path like projects/my-project/regions/europe-west4/resourcePolicies/daily.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ResourcePolicies []string `json:"resourcePolicies,omitempty"`
	// StoragePool of a Hyperdisk, such as projects/my-project/zones/europe-west4-a/storagePools/pool. Default: none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	StoragePool *string `json:"storagePool,omitempty"`
	// Confidential means that the disk is encrypted in the mode of Confidential Hyperdisk. Default false.
	// +optional
	Confidential *bool `json:"confidential,omitempty"`
}

// A BootDisk is the disk that an instance boots from. It is deleted with the instance.
type BootDisk struct {
	DiskParameters `json:",inline"`

	// Image of the disk: projects/PROJECT/global/images/NAME, or projects/PROJECT/global/images/family/NAME for the newest
	// image of a family, such as projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64. Without
	// projects/PROJECT/, it is one of the project of the configuration.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(projects/[a-z0-9:.-]+/)?global/images/(family/)?[a-z0-9-]+$`
	Image string `json:"image"`
	// GuestOSFeatures of the disk, in addition to those of the image, such as GVNIC.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Z0-9_]+$`
	GuestOSFeatures []string `json:"guestOSFeatures,omitempty"`
}

// A Disk is created with an instance, beside its boot disk.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.image) && has(self.snapshot))",message="set image or snapshot, not both"
// +kubebuilder:validation:XValidation:rule="has(self.sizeGB) || has(self.image) || has(self.snapshot) || (has(self.type) && self.type == 'local-ssd')",message="sizeGB is required without image and snapshot"
// +kubebuilder:validation:XValidation:rule="!(has(self.type) && self.type == 'local-ssd') || !(has(self.image) || has(self.snapshot) || has(self.kmsKeyName) || has(self.resourcePolicies) || has(self.storagePool) || has(self.keep) || has(self.deviceName))",message="a disk of the type local-ssd has only sizeGB and interface"
type Disk struct {
	DiskParameters `json:",inline"`

	// DeviceName of the disk in the guest: /dev/disk/by-id/google-NAME. Default: one that Compute Engine chooses.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	DeviceName *string `json:"deviceName,omitempty"`
	// Image of the disk, as that of a boot disk. Default: an empty disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(projects/[a-z0-9:.-]+/)?global/images/(family/)?[a-z0-9-]+$`
	Image *string `json:"image,omitempty"`
	// Snapshot of the disk: projects/PROJECT/global/snapshots/NAME, without projects/PROJECT/ for one of the project of the
	// configuration. Default: an empty disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(projects/[a-z0-9:.-]+/)?global/snapshots/[a-z0-9-]+$`
	Snapshot *string `json:"snapshot,omitempty"`
	// Interface of a disk of the type local-ssd. Default: SCSI.
	// +optional
	// +kubebuilder:validation:Enum=SCSI;NVME
	Interface *string `json:"interface,omitempty"`
	// Keep means that the disk remains when the instance is deleted. Default false.
	// +optional
	Keep *bool `json:"keep,omitempty"`
}

// An ExternalAddress is an address of the Internet. Compute Engine takes it back when the instance is deleted.
type ExternalAddress struct {
	// NetworkTier of the address. Default: that of the project.
	// +optional
	// +kubebuilder:validation:Enum=PREMIUM;STANDARD
	NetworkTier *string `json:"networkTier,omitempty"`
}

// An AliasRange is a range of addresses for pods or containers of an instance.
type AliasRange struct {
	// CIDR is a range of addresses, an address, or a length such as /24, for which Compute Engine chooses the range.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F.:]*(/[0-9]{1,3})?$`
	CIDR string `json:"cidr"`
	// SubnetworkRange is the name of the secondary range of the subnetwork. Default: its primary range.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	SubnetworkRange *string `json:"subnetworkRange,omitempty"`
}

// A NetworkInterface of an instance.
//
// +kubebuilder:validation:XValidation:rule="has(self.network) || has(self.subnetwork)",message="set network or subnetwork"
// +kubebuilder:validation:XValidation:rule="!has(self.externalIPv6) || (has(self.stackType) && self.stackType != 'IPV4_ONLY')",message="externalIPv6 requires stackType IPV4_IPV6 or IPV6_ONLY"
// +kubebuilder:validation:XValidation:rule="!has(self.externalAddress) || !has(self.stackType) || self.stackType != 'IPV6_ONLY'",message="externalAddress requires a stackType with IPv4"
type NetworkInterface struct {
	// Network of the interface: projects/PROJECT/global/networks/NAME, or NAME for one of the project of the configuration.
	// Default: that of the subnetwork.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(projects/[a-z0-9:.-]+/global/networks/)?[a-z0-9-]+$`
	Network *string `json:"network,omitempty"`
	// Subnetwork of the interface: projects/PROJECT/regions/REGION/subnetworks/NAME, or NAME for one of the project of the
	// configuration in the region of the instance. It is required for networks without automatic subnetworks.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(projects/[a-z0-9:.-]+/regions/[a-z0-9-]+/subnetworks/)?[a-z0-9-]+$`
	Subnetwork *string `json:"subnetwork,omitempty"`
	// Address is the internal IPv4 address. Default: one that Compute Engine chooses.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,3}){3}$`
	Address *string `json:"address,omitempty"`
	// ExternalAddress of IPv4. Default: none, so that the subnetwork needs Cloud NAT.
	// +optional
	ExternalAddress *ExternalAddress `json:"externalAddress,omitempty"`
	// StackType of the interface. The subnetwork must have it. Default: IPV4_ONLY.
	// +optional
	// +kubebuilder:validation:Enum=IPV4_ONLY;IPV4_IPV6;IPV6_ONLY
	StackType *string `json:"stackType,omitempty"`
	// ExternalIPv6 means that the IPv6 addresses are those of the Internet, of a subnetwork with external IPv6. Default
	// false.
	// +optional
	ExternalIPv6 *bool `json:"externalIPv6,omitempty"`
	// AliasRanges of the interface.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	AliasRanges []AliasRange `json:"aliasRanges,omitempty"`
	// NICType of the interface. Default: one that Compute Engine chooses for the machine type.
	// +optional
	// +kubebuilder:validation:Enum=GVNIC;VIRTIO_NET;IDPF;MRDMA;IRDMA
	NICType *string `json:"nicType,omitempty"`
	// QueueCount is the number of queues. Default: one that Compute Engine chooses for the machine type.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	QueueCount *int32 `json:"queueCount,omitempty"`
}

// A ServiceAccount is the identity of programs on an instance.
type ServiceAccount struct {
	// Email of the service account, or default for that of Compute Engine.
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:Pattern=`^(default|[a-z0-9-]+@[a-z0-9.-]+)$`
	Email string `json:"email"`
	// Scopes of its tokens. Default: https://www.googleapis.com/auth/cloud-platform, with which the roles of the service
	// account decide.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^https://`
	Scopes []string `json:"scopes,omitempty"`
}

// Spot makes an instance a spot VM.
type Spot struct {
	// TerminationAction is what Compute Engine does with the instance when it takes it back. Default: STOP.
	// +optional
	// +kubebuilder:validation:Enum=STOP;DELETE
	TerminationAction *string `json:"terminationAction,omitempty"`
}

// A NodeAffinity selects sole-tenant nodes by a label.
type NodeAffinity struct {
	// Key of the label, such as compute.googleapis.com/node-group-name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]+$`
	Key string `json:"key"`
	// Operator of the values.
	// +kubebuilder:validation:Enum=IN;NOT_IN
	Operator string `json:"operator"`
	// Values of the label.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Values []string `json:"values"`
}

// Scheduling of an instance.
type Scheduling struct {
	// AutomaticRestart means that Compute Engine restarts the instance after it ended it. Default: true, and false for a
	// spot VM.
	// +optional
	AutomaticRestart *bool `json:"automaticRestart,omitempty"`
	// OnHostMaintenance is what happens to the instance during maintenance of its host. An instance with GPUs needs
	// TERMINATE. Default: MIGRATE, and TERMINATE for a spot VM.
	// +optional
	// +kubebuilder:validation:Enum=MIGRATE;TERMINATE
	OnHostMaintenance *string `json:"onHostMaintenance,omitempty"`
	// NodeAffinities select sole-tenant nodes.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	NodeAffinities []NodeAffinity `json:"nodeAffinities,omitempty"`
	// MinNodeCPUs is the minimum number of vCPUs that the instance consumes on a sole-tenant node that is overcommitted.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	MinNodeCPUs *int32 `json:"minNodeCPUs,omitempty"`
}

// A Reservation is the use of reservations.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'SPECIFIC_RESERVATION' ? has(self.name) : !has(self.name)",message="name is required with type SPECIFIC_RESERVATION, and must not be set with another type"
type Reservation struct {
	// Type of the use.
	// +kubebuilder:validation:Enum=ANY_RESERVATION;SPECIFIC_RESERVATION;NO_RESERVATION
	Type string `json:"type"`
	// Name of the reservation, or projects/PROJECT/reservations/NAME for one that another project shares.
	// +optional
	// +kubebuilder:validation:MaxLength=192
	// +kubebuilder:validation:Pattern=`^(projects/[a-z0-9:.-]+/reservations/)?[a-z0-9-]+$`
	Name *string `json:"name,omitempty"`
}

// An Accelerator is GPUs of one type.
type Accelerator struct {
	// Type of the GPUs, such as nvidia-tesla-t4.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Type string `json:"type"`
	// Count is the number of GPUs.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Count int32 `json:"count"`
}

// A Shielded VM verifies its boot.
type Shielded struct {
	// SecureBoot means that only signed boot components run. Default false.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`
	// VTPM means that the instance has a virtual TPM. Default true.
	// +optional
	VTPM *bool `json:"vtpm,omitempty"`
	// IntegrityMonitoring compares each boot with the first one. Default true.
	// +optional
	IntegrityMonitoring *bool `json:"integrityMonitoring,omitempty"`
}

// VirtualMachineParameters are the parameters of a VM. They are used when the VM is created: a later
// change of them has no effect on the VM.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.scheduling) || !has(self.scheduling.automaticRestart) || !self.scheduling.automaticRestart",message="a spot VM has scheduling.automaticRestart false"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !has(self.scheduling) || !has(self.scheduling.onHostMaintenance) || self.scheduling.onHostMaintenance == 'TERMINATE'",message="a spot VM has scheduling.onHostMaintenance TERMINATE"
// +kubebuilder:validation:XValidation:rule="!has(self.accelerators) || self.accelerators.size() == 0 || has(self.spot) || (has(self.scheduling) && has(self.scheduling.onHostMaintenance) && self.scheduling.onHostMaintenance == 'TERMINATE')",message="accelerators require scheduling.onHostMaintenance TERMINATE: an instance with GPUs does not migrate"
type VirtualMachineParameters struct {
	// Name of the instance, which is the name of its Node. It must be unique in the zone.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Name *string `json:"name,omitempty"`

	// Zone of the instance, such as europe-west4-a. Drover sets it to the failure domain of the Machine, if it has one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Zone *string `json:"zone,omitempty"`

	// MachineType, such as n2-standard-4, or n2-custom-4-8192 with 4 vCPUs and 8192 MiB.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	MachineType *string `json:"machineType,omitempty"`

	// MinCPUPlatform is the oldest CPU platform, such as "Intel Ice Lake". Default: any of the machine type.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	MinCPUPlatform *string `json:"minCPUPlatform,omitempty"`

	// BootDisk of the instance.
	// +optional
	BootDisk *BootDisk `json:"bootDisk,omitempty"`

	// Disks beside the boot disk, that are created with the instance.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Disks []Disk `json:"disks,omitempty"`

	// NetworkInterfaces of the instance. The first is that of the Node.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`

	// NetworkTags, by which firewall rules and routes select instances.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	NetworkTags []string `json:"networkTags,omitempty"`

	// CanIPForward means that the instance sends and receives packets of other addresses than its own. A network of pods
	// that uses routes of Google Cloud needs it. Default false.
	// +optional
	CanIPForward *bool `json:"canIPForward,omitempty"`

	// ServiceAccount of the instance. Default: none.
	// +optional
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitempty"`

	// Spot makes the instance a spot VM, which Compute Engine may take back at any time. Default: a VM on demand.
	// +optional
	Spot *Spot `json:"spot,omitempty"`

	// Scheduling of the instance.
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`

	// Reservation that the instance uses. Default: any that matches.
	// +optional
	Reservation *Reservation `json:"reservation,omitempty"`

	// Accelerators are GPUs that are attached to the instance. Machine types such as a2-highgpu-1g have theirs already.
	// +optional
	// +kubebuilder:validation:MaxItems=4
	Accelerators []Accelerator `json:"accelerators,omitempty"`

	// Shielded has the options of Shielded VM. Default: those of the image.
	// +optional
	Shielded *Shielded `json:"shielded,omitempty"`

	// ConfidentialType makes the instance a Confidential VM, whose memory is encrypted. Default: none.
	// +optional
	// +kubebuilder:validation:Enum=SEV;SEV_SNP;TDX
	ConfidentialType *string `json:"confidentialType,omitempty"`

	// ThreadsPerCore is the number of threads of a core. 1 disables simultaneous multithreading. Default 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	ThreadsPerCore *int32 `json:"threadsPerCore,omitempty"`

	// NestedVirtualization means that the instance can run VMs. Default false.
	// +optional
	NestedVirtualization *bool `json:"nestedVirtualization,omitempty"`

	// ResourcePolicies of the instance, such as a placement policy. Each is the name of one in the region of the instance,
	// or a path like projects/my-project/regions/europe-west4/resourcePolicies/spread.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ResourcePolicies []string `json:"resourcePolicies,omitempty"`

	// Description of the instance. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Description *string `json:"description,omitempty"`

	// ResourceManagerTags of the instance, by which firewall policies and IAM conditions select it: tagKeys/NUMBER with the
	// value tagValues/NUMBER. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	ResourceManagerTags map[string]string `json:"resourceManagerTags,omitempty"`

	// Labels of the instance and its disks, in addition to the label drover-vm by which the provider finds the instance.
	// A key begins with a lower-case letter. Keys and values have at most 63 lower-case letters, digits, - and _.
	// +optional
	// +kubebuilder:validation:MaxProperties=63
	Labels map[string]string `json:"labels,omitempty"`

	// Metadata of the instance, such as ssh-keys or startup-script, in addition to the key user-data.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Metadata map[string]string `json:"metadata,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// InstanceID is the number that Compute Engine gave the instance.
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// InstanceName is the name of the instance.
	// +optional
	InstanceName string `json:"instanceName,omitempty"`
	// Zone of the instance.
	// +optional
	Zone string `json:"zone,omitempty"`
	// MachineType of the instance.
	// +optional
	MachineType string `json:"machineType,omitempty"`
	// HostName of the instance, if it has one of its own.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// Spot means that the instance is a spot VM.
	// +optional
	Spot bool `json:"spot,omitempty"`
	// EndedOperation is the operation of a creation whose failure was reported.
	// +optional
	EndedOperation string `json:"endedOperation,omitempty"`
	// Console is the end of the output of the first serial port, at most 4 KiB, while the annotation
	// machine.drover.dev/read-console is "true". Values that look like secrets are masked.
	// +optional
	Console string `json:"console,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.zone)",message="spec.forProvider.zone is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.machineType)",message="spec.forProvider.machineType is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.bootDisk)",message="spec.forProvider.bootDisk is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || (has(self.forProvider.networkInterfaces) && self.forProvider.networkInterfaces.size() > 0)",message="spec.forProvider.networkInterfaces is required"
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

// A VirtualMachine is an instance of Compute Engine. Its external name is the value of the label drover-vm of the
// instance: the UID of the VirtualMachine that created it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,gcp}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.atProvider.zone`
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

// Observation returns the part of the status that the VMs of all clouds have, to read and to change.
func (vm *VirtualMachine) Observation() *nativev1alpha1.Observation {
	return &vm.Status.AtProvider.Observation
}

// UserDataSource returns the source of the user data.
func (vm *VirtualMachine) UserDataSource() nativev1alpha1.UserData {
	return vm.Spec.ForProvider.UserData
}
