package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// AnnotationClientToken of a VirtualMachine is the ClientToken that the provider chose for the creation of the
// instance. It is written before ECS is called: ECS creates one instance per token.
const AnnotationClientToken = Group + "/client-token"

// A DiskCategory is the category of a cloud disk.
// +kubebuilder:validation:Enum=cloud_auto;cloud_essd;cloud_essd_entry;cloud_ssd;cloud_efficiency;cloud
type DiskCategory string

// A PerformanceLevel of an ESSD.
// +kubebuilder:validation:Enum=PL0;PL1;PL2;PL3
type PerformanceLevel string

// A SystemDisk is the disk that an instance boots from.
//
// +kubebuilder:validation:XValidation:rule="!has(self.performanceLevel) || (has(self.category) && self.category == 'cloud_essd')",message="performanceLevel requires category cloud_essd"
// +kubebuilder:validation:XValidation:rule="!has(self.kmsKeyID) || (has(self.encrypted) && self.encrypted)",message="kmsKeyID requires encrypted"
type SystemDisk struct {
	// Category of the disk. Default: the category that ECS chooses for the instance type.
	// +optional
	Category DiskCategory `json:"category,omitempty"`
	// SizeGiB is the size of the disk in GiB. It must not be less than the size of the image. The default is 40 or the size
	// of the image, the larger of both.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2048
	SizeGiB *int32 `json:"sizeGiB,omitempty"`
	// PerformanceLevel of a disk of the category cloud_essd. The default is PL1.
	// +optional
	PerformanceLevel PerformanceLevel `json:"performanceLevel,omitempty"`
	// Encrypted means that the disk is encrypted. Default false.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// KMSKeyID is the ID of the KMS key of an encrypted disk. The default is the service key of ECS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
}

// A DataDisk is a disk that is created with an instance.
//
// +kubebuilder:validation:XValidation:rule="has(self.sizeGiB) || has(self.snapshotID)",message="set sizeGiB or snapshotID"
// +kubebuilder:validation:XValidation:rule="!has(self.performanceLevel) || (has(self.category) && self.category == 'cloud_essd')",message="performanceLevel requires category cloud_essd"
// +kubebuilder:validation:XValidation:rule="!has(self.kmsKeyID) || (has(self.encrypted) && self.encrypted)",message="kmsKeyID requires encrypted"
type DataDisk struct {
	// Name of the disk.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=128
	Name *string `json:"name,omitempty"`
	// Description of the disk.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=256
	Description *string `json:"description,omitempty"`
	// Category of the disk. Default: the category that ECS chooses for the instance type.
	// +optional
	Category DiskCategory `json:"category,omitempty"`
	// SizeGiB is the size of the disk in GiB. The default is the size of the snapshot.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	SizeGiB *int32 `json:"sizeGiB,omitempty"`
	// PerformanceLevel of a disk of the category cloud_essd. The default is PL1.
	// +optional
	PerformanceLevel PerformanceLevel `json:"performanceLevel,omitempty"`
	// SnapshotID is the snapshot that the disk is created from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SnapshotID *string `json:"snapshotID,omitempty"`
	// Encrypted means that the disk is encrypted. Default false.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// KMSKeyID is the ID of the KMS key of an encrypted disk. The default is the service key of ECS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// DeleteWithInstance means that ECS deletes the disk together with the instance. A disk that is not
	// deleted continues to cost money, and no other Machine uses it.
	// +kubebuilder:default=true
	DeleteWithInstance *bool `json:"deleteWithInstance,omitempty"`
}

// A ZoneVSwitch is the vSwitch of a zone.
type ZoneVSwitch struct {
	// ZoneID of the vSwitch, such as cn-hangzhou-h.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ZoneID string `json:"zoneID"`
	// VSwitchID is the ID of the vSwitch.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	VSwitchID string `json:"vSwitchID"`
}

// A SpotStrategy is the bidding policy of an instance.
// +kubebuilder:validation:Enum=NoSpot;SpotWithPriceLimit;SpotAsPriceGo
type SpotStrategy string

// Bidding policies.
const (
	// SpotNone creates a pay-as-you-go instance.
	SpotNone SpotStrategy = "NoSpot"
	// SpotWithPriceLimit creates a spot instance with a maximum price.
	SpotWithPriceLimit SpotStrategy = "SpotWithPriceLimit"
	// SpotAsPriceGo creates a spot instance at the market price.
	SpotAsPriceGo SpotStrategy = "SpotAsPriceGo"
)

// VirtualMachineParameters are the parameters of a VM. They are used when the VM is created: a later
// change of them has no effect on the VM.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.imageID) && has(self.imageFamily))",message="set imageID or imageFamily, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.spotPriceLimit) || (has(self.spotStrategy) && self.spotStrategy == 'SpotWithPriceLimit')",message="spotPriceLimit requires spotStrategy SpotWithPriceLimit"
// +kubebuilder:validation:XValidation:rule="!has(self.spotDurationHours) || (has(self.spotStrategy) && self.spotStrategy != 'NoSpot')",message="spotDurationHours requires a spotStrategy other than NoSpot"
// +kubebuilder:validation:XValidation:rule="!has(self.internetMaxBandwidthIn) || (has(self.internetMaxBandwidthOut) && self.internetMaxBandwidthOut > 0)",message="internetMaxBandwidthIn requires internetMaxBandwidthOut above 0: without it the VM has no public address"
type VirtualMachineParameters struct {
	// Name of the instance, which is also its host name.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`
	Name *string `json:"name,omitempty"`

	// ZoneID of the instance, such as cn-hangzhou-h. Drover sets it to the failure domain of the Machine.
	// If vSwitches is set, it selects the vSwitch. The default is the zone of vSwitchID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	ZoneID *string `json:"zoneID,omitempty"`

	// InstanceType, such as ecs.g7.xlarge.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^ecs\.[a-z0-9.-]+$`
	InstanceType *string `json:"instanceType,omitempty"`

	// ImageID is the ID of the image, such as ubuntu_24_04_x64_20G_alibase_20250722.vhd.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ImageID *string `json:"imageID,omitempty"`

	// ImageFamily from which the instance gets the latest available image, such as acs:ubuntu_24_04_x64.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=128
	ImageFamily *string `json:"imageFamily,omitempty"`

	// VSwitchID is the ID of the vSwitch. The instance is in its VPC and zone. If vSwitches has an entry
	// for the zone of the instance, that entry takes precedence.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	VSwitchID *string `json:"vSwitchID,omitempty"`

	// VSwitches by zone, for a class whose Machines have failure domains.
	// +optional
	// +listType=map
	// +listMapKey=zoneID
	// +kubebuilder:validation:MaxItems=16
	VSwitches []ZoneVSwitch `json:"vSwitches,omitempty"`

	// SecurityGroupIDs are the security groups of the instance. All of them are of the same type.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// PrivateIPAddress of the instance in its vSwitch. The default is an address that ECS chooses.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,3}){3}$`
	PrivateIPAddress *string `json:"privateIPAddress,omitempty"`

	// IPv6AddressCount is the number of IPv6 addresses of the instance. The vSwitch must have an IPv6 CIDR
	// block. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	IPv6AddressCount *int32 `json:"ipv6AddressCount,omitempty"`

	// InternetMaxBandwidthOut is the maximum outbound bandwidth to the Internet in Mbit/s. With 0, which is
	// the default, the instance has no public address.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	InternetMaxBandwidthOut *int32 `json:"internetMaxBandwidthOut,omitempty"`

	// InternetMaxBandwidthIn is the maximum inbound bandwidth from the Internet in Mbit/s.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	InternetMaxBandwidthIn *int32 `json:"internetMaxBandwidthIn,omitempty"`

	// InternetChargeType of the bandwidth to the Internet. The default is PayByTraffic.
	// +optional
	// +kubebuilder:validation:Enum=PayByTraffic;PayByBandwidth
	InternetChargeType *string `json:"internetChargeType,omitempty"`

	// SystemDisk of the instance.
	// +optional
	SystemDisk *SystemDisk `json:"systemDisk,omitempty"`

	// DataDisks that are created with the instance.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	DataDisks []DataDisk `json:"dataDisks,omitempty"`

	// SpotStrategy is the bidding policy. The default is NoSpot.
	// +optional
	SpotStrategy SpotStrategy `json:"spotStrategy,omitempty"`

	// SpotPriceLimit is the maximum price of a spot instance per hour, such as "0.97".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]{1,3})?$`
	SpotPriceLimit *string `json:"spotPriceLimit,omitempty"`

	// SpotDurationHours is the time in hours during which ECS does not take a spot instance back. The default is 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	SpotDurationHours *int32 `json:"spotDurationHours,omitempty"`

	// CreditSpecification of a burstable instance.
	// +optional
	// +kubebuilder:validation:Enum=Standard;Unlimited
	CreditSpecification *string `json:"creditSpecification,omitempty"`

	// IOOptimized is whether the instance is I/O optimized. The default is the value that the instance
	// type supports; current instance types support only optimized.
	// +optional
	// +kubebuilder:validation:Enum=none;optimized
	IOOptimized *string `json:"ioOptimized,omitempty"`

	// KeyPairName is the name of the SSH key pair.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=128
	KeyPairName *string `json:"keyPairName,omitempty"`

	// RAMRoleName is the name of the RAM role that programs on the instance may use.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	RAMRoleName *string `json:"ramRoleName,omitempty"`

	// HTTPTokens is whether the metadata service requires a session token. The default is the setting of the
	// account.
	// +optional
	// +kubebuilder:validation:Enum=optional;required
	HTTPTokens *string `json:"httpTokens,omitempty"`

	// SecurityEnhancementStrategy is whether ECS installs the agent of Security Center. The default is
	// Deactive.
	// +optional
	// +kubebuilder:validation:Enum=Active;Deactive
	SecurityEnhancementStrategy *string `json:"securityEnhancementStrategy,omitempty"`

	// DeploymentSetID is the ID of the deployment set, which spreads instances across physical servers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	DeploymentSetID *string `json:"deploymentSetID,omitempty"`

	// DedicatedHostID is the ID of the dedicated host of the instance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	DedicatedHostID *string `json:"dedicatedHostID,omitempty"`

	// ResourceGroupID is the ID of the resource group of the instance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ResourceGroupID *string `json:"resourceGroupID,omitempty"`

	// Tags of the instance and its disks, in addition to the tag by which the provider finds the instance.
	// A name must not begin with "aliyun" or "acs:". Neither a name nor a value contains "http://" or
	// "https://".
	// +optional
	// +kubebuilder:validation:MaxProperties=19
	Tags map[string]string `json:"tags,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// InstanceID of the last instance that ECS listed for this VM.
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// RemovedInstanceID is the ID of an instance that ECS removed before it ran.
	// +optional
	RemovedInstanceID string `json:"removedInstanceID,omitempty"`
	// RegionID of the instance.
	// +optional
	RegionID string `json:"regionID,omitempty"`
	// ZoneID of the instance.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
	// HostName of the instance.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// ImageID of the instance.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// LockReasons of the instance. Recycling means that ECS takes back the spot instance.
	// +optional
	LockReasons []string `json:"lockReasons,omitempty"`
	// Console is the end of the console of the instance, at most 4 KiB, while the annotation
	// machine.drover.dev/read-console is "true". Values that look like secrets are masked.
	// +optional
	Console string `json:"console,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.name)",message="spec.forProvider.name is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.instanceType)",message="spec.forProvider.instanceType is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.imageID) || has(self.forProvider.imageFamily)",message="spec.forProvider.imageID or spec.forProvider.imageFamily is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.vSwitchID) || has(self.forProvider.vSwitches)",message="spec.forProvider.vSwitchID or spec.forProvider.vSwitches is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || (has(self.forProvider.securityGroupIDs) && size(self.forProvider.securityGroupIDs) > 0)",message="spec.forProvider.securityGroupIDs is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.vSwitchID) || has(self.forProvider.zoneID)",message="spec.forProvider.zoneID is required without vSwitchID: it selects one of vSwitches"
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

// A VirtualMachine is an instance of Alibaba Cloud ECS. Its external name is the ID of the instance.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,alibaba}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.atProvider.zoneID`
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
