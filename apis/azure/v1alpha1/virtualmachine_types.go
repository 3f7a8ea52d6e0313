package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// An Image is what the OS disk of a VM is created of.
//
// +kubebuilder:validation:XValidation:rule="[has(self.id), has(self.communityGalleryImageID), has(self.sharedGalleryImageID), has(self.publisher)].filter(x, x).size() == 1",message="set publisher, id, communityGalleryImageID or sharedGalleryImageID, and only one of them"
// +kubebuilder:validation:XValidation:rule="has(self.publisher) ? has(self.offer) && has(self.sku) : !has(self.offer) && !has(self.sku) && !has(self.version)",message="offer and sku are required with publisher, and must not be set without it, as version"
type Image struct {
	// Publisher of an image of the platform or the marketplace, such as Canonical.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Publisher *string `json:"publisher,omitempty"`
	// Offer of the publisher, such as ubuntu-24_04-lts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Offer *string `json:"offer,omitempty"`
	// SKU of the offer, such as server.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	SKU *string `json:"sku,omitempty"`
	// Version of the SKU. Default: latest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version *string `json:"version,omitempty"`
	// ID of an image, of an image of a gallery, or of one version of it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	ID *string `json:"id,omitempty"`
	// CommunityGalleryImageID of an image of a community gallery, such as
	// /CommunityGalleries/GALLERY/Images/IMAGE/Versions/VERSION.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/[Cc]ommunityGalleries/[^/]+/[Ii]mages/[^/]+(/[Vv]ersions/[^/]+)?$`
	CommunityGalleryImageID *string `json:"communityGalleryImageID,omitempty"`
	// SharedGalleryImageID of an image of a gallery that is shared directly, such as
	// /SharedGalleries/GALLERY/Images/IMAGE/Versions/VERSION.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/[Ss]haredGalleries/[^/]+/[Ii]mages/[^/]+(/[Vv]ersions/[^/]+)?$`
	SharedGalleryImageID *string `json:"sharedGalleryImageID,omitempty"`
	// Plan of an image of the marketplace that has one. Its terms must be accepted once per subscription.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
}

// A Plan is the purchase plan of an image of the marketplace.
type Plan struct {
	// Name of the plan, which is usually the SKU of the image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// Product of the plan, which is usually the offer of the image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Product string `json:"product"`
	// Publisher of the plan.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Publisher string `json:"publisher"`
}

// DiskParameters are the parameters of a new managed disk.
type DiskParameters struct {
	// Type of the disk. Default: one that Azure chooses for the size of the VM.
	// +optional
	// +kubebuilder:validation:Enum=Standard_LRS;StandardSSD_LRS;StandardSSD_ZRS;Premium_LRS;Premium_ZRS;PremiumV2_LRS;UltraSSD_LRS
	Type *string `json:"type,omitempty"`
	// SizeGiB is the size of the disk in GiB. Default: that of its image or snapshot.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	SizeGiB *int32 `json:"sizeGiB,omitempty"`
	// Caching of the host. Default: one that Azure chooses for the type.
	// +optional
	// +kubebuilder:validation:Enum=None;ReadOnly;ReadWrite
	Caching *string `json:"caching,omitempty"`
	// DiskEncryptionSetID of the set with the key that encrypts the disk. Default: a key of Azure.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	DiskEncryptionSetID *string `json:"diskEncryptionSetID,omitempty"`
	// WriteAccelerator of a disk of a VM of the series M. Default false.
	// +optional
	WriteAccelerator *bool `json:"writeAccelerator,omitempty"`
	// Keep means that the disk remains when the VM is deleted. Default false.
	// +optional
	Keep *bool `json:"keep,omitempty"`
}

// An OSDisk is the disk that a VM boots from.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || !(self.type in ['PremiumV2_LRS', 'UltraSSD_LRS'])",message="an OS disk cannot have the type PremiumV2_LRS or UltraSSD_LRS"
// +kubebuilder:validation:XValidation:rule="!has(self.ephemeralPlacement) || !has(self.keep) || !self.keep",message="an ephemeral OS disk cannot be kept"
// +kubebuilder:validation:XValidation:rule="!has(self.ephemeralPlacement) || !has(self.caching) || self.caching == 'ReadOnly'",message="an ephemeral OS disk has caching ReadOnly"
type OSDisk struct {
	DiskParameters `json:",inline"`

	// EphemeralPlacement makes the disk an ephemeral one, on the host of the VM: on its cache, its temporary disk or its
	// NVMe disk. Default: a disk in the storage of Azure.
	// +optional
	// +kubebuilder:validation:Enum=CacheDisk;ResourceDisk;NvmeDisk
	EphemeralPlacement *string `json:"ephemeralPlacement,omitempty"`
	// SecurityEncryptionType of the disk of a confidential VM. It requires securityType ConfidentialVM.
	// +optional
	// +kubebuilder:validation:Enum=VMGuestStateOnly;DiskWithVMGuestState;NonPersistedTPM
	SecurityEncryptionType *string `json:"securityEncryptionType,omitempty"`
}

// A DataDisk is created with a VM, beside its OS disk.
//
// +kubebuilder:validation:XValidation:rule="has(self.sizeGiB) || has(self.sourceID)",message="sizeGiB is required without sourceID"
// +kubebuilder:validation:XValidation:rule="!(has(self.iops) || has(self.throughputMBps)) || (has(self.type) && self.type in ['PremiumV2_LRS', 'UltraSSD_LRS'])",message="iops and throughputMBps require the type PremiumV2_LRS or UltraSSD_LRS"
// +kubebuilder:validation:XValidation:rule="!has(self.caching) || self.caching == 'None' || !has(self.type) || !(self.type in ['PremiumV2_LRS', 'UltraSSD_LRS'])",message="a disk of the type PremiumV2_LRS or UltraSSD_LRS has caching None"
type DataDisk struct {
	DiskParameters `json:",inline"`

	// LUN is the logical unit number of the disk: /dev/disk/azure/scsi1/lunN in the guest. Default: the index of the disk in the list.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	LUN *int32 `json:"lun,omitempty"`
	// SourceID of the snapshot, disk or restore point that the disk is a copy of. Default: an empty disk.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	SourceID *string `json:"sourceID,omitempty"`
	// IOPS that are provisioned. Default: those of the size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=400000
	IOPS *int64 `json:"iops,omitempty"`
	// ThroughputMBps is the number of megabytes (10^6 bytes) per second that are provisioned. Default: that of the size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	ThroughputMBps *int64 `json:"throughputMBps,omitempty"`
}

// A PublicIP is an address of the Internet, of the SKU Standard. It is created before the VM, and deleted with it.
type PublicIP struct {
	// Zones of the address. Default: the zone of the VM, or all zones of the location for a VM without a zone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=1
	// +kubebuilder:validation:items:Pattern=`^[1-9]$`
	Zones []string `json:"zones,omitempty"`
	// PrefixID of the prefix that the address is of. Default: any address of Azure.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	PrefixID *string `json:"prefixID,omitempty"`
	// IdleTimeoutMinutes is the time in minutes after which an idle connection is closed. Default 4.
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=30
	IdleTimeoutMinutes *int32 `json:"idleTimeoutMinutes,omitempty"`
	// Tags of the address that Azure routes by, such as RoutingPreference with the value Internet.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	IPTags map[string]string `json:"ipTags,omitempty"`
}

// A NetworkInterface of a VM. It is created before the VM, and deleted with it.
type NetworkInterface struct {
	// SubnetID of the subnet.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	SubnetID string `json:"subnetID"`
	// SecurityGroupID of the network security group. Default: that of the subnet alone.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	SecurityGroupID *string `json:"securityGroupID,omitempty"`
	// AcceleratedNetworking means SR-IOV, which the size must have. Default false.
	// +optional
	AcceleratedNetworking *bool `json:"acceleratedNetworking,omitempty"`
	// IPForwarding means that the interface sends and receives packets of other addresses than its own. Default false.
	// +optional
	IPForwarding *bool `json:"ipForwarding,omitempty"`
	// PrivateAddresses is the number of private IPv4 addresses, for pods for example. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	PrivateAddresses *int32 `json:"privateAddresses,omitempty"`
	// IPv6 means that the interface also has a private IPv6 address. The subnet must have it. Default false.
	// +optional
	IPv6 *bool `json:"ipv6,omitempty"`
	// PublicIP of the interface. Default: none, so that the subnet needs a NAT gateway.
	// +optional
	PublicIP *PublicIP `json:"publicIP,omitempty"`
	// ApplicationSecurityGroupIDs of the application security groups.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	ApplicationSecurityGroupIDs []string `json:"applicationSecurityGroupIDs,omitempty"`
	// LoadBalancerBackendPoolIDs of the backend pools of load balancers.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	LoadBalancerBackendPoolIDs []string `json:"loadBalancerBackendPoolIDs,omitempty"`
	// ApplicationGatewayBackendPoolIDs of the backend pools of application gateways.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	ApplicationGatewayBackendPoolIDs []string `json:"applicationGatewayBackendPoolIDs,omitempty"`
	// DNSServers of the interface. Default: those of its network.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:Pattern=`^[0-9a-fA-F.:]+$`
	DNSServers []string `json:"dnsServers,omitempty"`
}

// Identities of programs on a VM.
type Identities struct {
	// SystemAssigned means that the VM has an identity of its own, which ends with the VM. Default false.
	// +optional
	SystemAssigned *bool `json:"systemAssigned,omitempty"`
	// UserAssignedIDs of user-assigned managed identities.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	UserAssignedIDs []string `json:"userAssignedIDs,omitempty"`
}

// Spot makes a VM a spot VM.
type Spot struct {
	// MaxPrice is the maximum price in US dollars per hour, in quotes, such as "0.035". If the price rises above it, Azure
	// takes the VM back. Default: the price of a VM on demand.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]{1,6})?$`
	MaxPrice *string `json:"maxPrice,omitempty"`
	// EvictionPolicy is what Azure does with the VM when it takes it back. A deallocated VM still has its disks, which cost.
	// Default: Delete.
	// +optional
	// +kubebuilder:validation:Enum=Delete;Deallocate
	EvictionPolicy *string `json:"evictionPolicy,omitempty"`
}

// Security of a VM.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.secureBoot) || has(self.vtpm)) || has(self.type)",message="secureBoot and vtpm require a type"
type Security struct {
	// Type of the security. Default: one that Azure chooses for the image, which is TrustedLaunch for most images of
	// generation 2.
	// +optional
	// +kubebuilder:validation:Enum=Standard;TrustedLaunch;ConfidentialVM
	Type *string `json:"type,omitempty"`
	// SecureBoot means that only signed boot components run. Default: one that Azure chooses for the type.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`
	// VTPM means that the VM has a virtual TPM. Default: one that Azure chooses for the type.
	// +optional
	VTPM *bool `json:"vtpm,omitempty"`
	// EncryptionAtHost encrypts the temporary disk and the caches of the disks as well. Default false.
	// +optional
	EncryptionAtHost *bool `json:"encryptionAtHost,omitempty"`
}

// BootDiagnostics keep the console of a VM.
type BootDiagnostics struct {
	// StorageAccountURI of the storage account that keeps the console, such as https://account.blob.core.windows.net/.
	// Default: one of Azure, which costs nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^https://`
	StorageAccountURI *string `json:"storageAccountURI,omitempty"`
}

// VirtualMachineParameters are the parameters of a VM. They are used when the VM is created: a later
// change of them has no effect on the VM.
//
// +kubebuilder:validation:XValidation:rule="!has(self.availabilitySetID) || !(has(self.zone) || has(self.scaleSetID))",message="a VM of an availability set has neither a zone nor a scaleSetID"
// +kubebuilder:validation:XValidation:rule="!(has(self.hostID) && has(self.hostGroupID))",message="set hostID or hostGroupID, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.capacityReservationGroupID) || !(has(self.spot) || has(self.hostID) || has(self.hostGroupID) || has(self.availabilitySetID) || has(self.proximityPlacementGroupID))",message="a VM of a capacity reservation has no spot, dedicated host, availability set or proximity placement group"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || !(has(self.hostID) || has(self.hostGroupID) || has(self.availabilitySetID))",message="a spot VM has no dedicated host and no availability set"
// +kubebuilder:validation:XValidation:rule="!has(self.osDisk) || !has(self.osDisk.securityEncryptionType) || (has(self.security) && has(self.security.type) && self.security.type == 'ConfidentialVM')",message="osDisk.securityEncryptionType requires security.type ConfidentialVM"
type VirtualMachineParameters struct {
	// Name of the VM, which is the name of its Node. It must be unique in the resource group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name *string `json:"name,omitempty"`

	// ResourceGroup of the VM and of the resources beside it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=90
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_().-]*[A-Za-z0-9_()-]$`
	ResourceGroup *string `json:"resourceGroup,omitempty"`

	// Location of the VM, such as westeurope.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	Location *string `json:"location,omitempty"`

	// Zone of the VM in its location, such as "1". Drover sets it to the failure domain of the Machine, if it has one.
	// Default: none, so that Azure chooses.
	// +optional
	// +kubebuilder:validation:MaxLength=1
	// +kubebuilder:validation:Pattern=`^[1-9]$`
	Zone *string `json:"zone,omitempty"`

	// Size, such as Standard_D4s_v5.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Size *string `json:"size,omitempty"`

	// Image of the OS disk.
	// +optional
	Image *Image `json:"image,omitempty"`

	// OSDisk that the VM boots from.
	// +optional
	OSDisk *OSDisk `json:"osDisk,omitempty"`

	// DataDisks that are created with the VM.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	DataDisks []DataDisk `json:"dataDisks,omitempty"`

	// DiskController of the VM. Default: one that Azure chooses for the size and the image.
	// +optional
	// +kubebuilder:validation:Enum=SCSI;NVMe
	DiskController *string `json:"diskController,omitempty"`

	// UltraSSD means that disks of the type UltraSSD_LRS can be attached. A data disk of this type implies it. Default false.
	// +optional
	UltraSSD *bool `json:"ultraSSD,omitempty"`

	// NetworkInterfaces of the VM. The first is that of the Node.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`

	// AdminUsername of the user with the SSH keys, which Azure requires of each VM.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]{0,31}$`
	AdminUsername *string `json:"adminUsername,omitempty"`

	// SSHPublicKeys of the user, of the types RSA or Ed25519. Azure requires one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^ssh-(rsa|ed25519) [A-Za-z0-9+/]+=*( [^\n]*)?$`
	SSHPublicKeys []string `json:"sshPublicKeys,omitempty"`

	// Identities of programs on the VM. Default: none.
	// +optional
	Identities *Identities `json:"identities,omitempty"`

	// Spot makes the VM a spot VM, which Azure may take back at any time. Default: a VM on demand.
	// +optional
	Spot *Spot `json:"spot,omitempty"`

	// ProximityPlacementGroupID of the group. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	ProximityPlacementGroupID *string `json:"proximityPlacementGroupID,omitempty"`

	// AvailabilitySetID of the availability set, in the resource group of the VM. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	AvailabilitySetID *string `json:"availabilitySetID,omitempty"`

	// ScaleSetID of the scale set with flexible orchestration. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	ScaleSetID *string `json:"scaleSetID,omitempty"`

	// CapacityReservationGroupID of the group whose reserved capacity the VM uses. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	CapacityReservationGroupID *string `json:"capacityReservationGroupID,omitempty"`

	// HostID of the dedicated host. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	HostID *string `json:"hostID,omitempty"`

	// HostGroupID of the group of dedicated hosts, of which Azure chooses one. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/subscriptions/[^/]+/[rR]esource[gG]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$`
	HostGroupID *string `json:"hostGroupID,omitempty"`

	// Security has the options of Trusted Launch and confidential VMs. Default: those of Azure.
	// +optional
	Security *Security `json:"security,omitempty"`

	// BootDiagnostics keep the console of the VM, so that a Machine that is late can show its end. Default: none.
	// +optional
	BootDiagnostics *BootDiagnostics `json:"bootDiagnostics,omitempty"`

	// LicenseType of an operating system that was licensed elsewhere. Default: none.
	// +optional
	// +kubebuilder:validation:Enum=RHEL_BYOS;SLES_BYOS;RHEL_EUS;RHEL_BASE;SLES_STANDARD;UBUNTU_PRO
	LicenseType *string `json:"licenseType,omitempty"`

	// ExtensionOperations means that extensions can be installed on the VM. Default true.
	// +optional
	ExtensionOperations *bool `json:"extensionOperations,omitempty"`

	// Tags of the VM, its network interfaces, public IP addresses and disks, in addition to the tag drover-vm by which the
	// provider finds them. A key has at most 512 characters, and none of <>%&\?/. A value has at most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxProperties=49
	Tags map[string]string `json:"tags,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// ID of the VM in Azure Resource Manager.
	// +optional
	ID string `json:"id,omitempty"`
	// VMID is the unique ID that Azure gave the VM: another VM of the same name has another one.
	// +optional
	VMID string `json:"vmID,omitempty"`
	// VMName is the name of the VM.
	// +optional
	VMName string `json:"vmName,omitempty"`
	// Zone of the VM in its location.
	// +optional
	Zone string `json:"zone,omitempty"`
	// Size of the VM.
	// +optional
	Size string `json:"size,omitempty"`
	// Spot means that the VM is a spot VM.
	// +optional
	Spot bool `json:"spot,omitempty"`
	// FailedVMID is the unique ID of the VM whose failed creation was reported.
	// +optional
	FailedVMID string `json:"failedVMID,omitempty"`
	// Console is the end of the output of the serial port, at most 4 KiB, while the annotation
	// machine.drover.dev/read-console is "true". Values that look like secrets are masked.
	// +optional
	Console string `json:"console,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.resourceGroup)",message="spec.forProvider.resourceGroup is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.location)",message="spec.forProvider.location is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.size)",message="spec.forProvider.size is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.image)",message="spec.forProvider.image is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || (has(self.forProvider.networkInterfaces) && self.forProvider.networkInterfaces.size() > 0)",message="spec.forProvider.networkInterfaces is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.adminUsername)",message="spec.forProvider.adminUsername is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || (has(self.forProvider.sshPublicKeys) && self.forProvider.sshPublicKeys.size() > 0)",message="spec.forProvider.sshPublicKeys is required"
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

// A VirtualMachine is a VM of Azure. Its external name is the value of the tag drover-vm of the VM: the UID of the
// VirtualMachine that created it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,azure}
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
