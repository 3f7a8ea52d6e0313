package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// Annotations of a VirtualMachine.
const (
	// AnnotationClientToken is the ClientToken of the creation: the UID of the VirtualMachine and the number of the
	// attempt. It is written before EC2 is called: EC2 creates one instance per token.
	AnnotationClientToken = Group + "/client-token"
	// AnnotationClientTokenSince is the time at which the ClientToken was chosen. EC2 forgets a token after a day.
	AnnotationClientTokenSince = Group + "/client-token-since"
)

// A VolumeType is the type of an EBS volume.
// +kubebuilder:validation:Enum=gp3;gp2;io2;io1;st1;sc1;standard
type VolumeType string

// VolumeParameters are the parameters of an EBS volume.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kmsKeyID) || (has(self.encrypted) && self.encrypted)",message="kmsKeyID requires encrypted"
// +kubebuilder:validation:XValidation:rule="!has(self.throughput) || (has(self.type) && self.type == 'gp3')",message="throughput requires type gp3"
// +kubebuilder:validation:XValidation:rule="!has(self.iops) || (has(self.type) && self.type in ['gp3', 'io1', 'io2'])",message="iops requires type gp3, io1 or io2"
type VolumeParameters struct {
	// SizeGiB is the size of the volume in GiB. It must not be less than the size of the snapshot, which is the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	SizeGiB *int32 `json:"sizeGiB,omitempty"`
	// Type of the volume. The default is that of the image, or gp2 of EC2 for a volume that the image does not have.
	// +optional
	Type VolumeType `json:"type,omitempty"`
	// IOPS of a volume of type gp3, io1 or io2. The default of gp3 is 3000.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=256000
	IOPS *int32 `json:"iops,omitempty"`
	// Throughput of a volume of type gp3 in MiB/s. The default is 125.
	// +optional
	// +kubebuilder:validation:Minimum=125
	// +kubebuilder:validation:Maximum=2000
	Throughput *int32 `json:"throughput,omitempty"`
	// Encrypted means that the volume is encrypted. The default is the setting of the account and the region. A
	// volume of an encrypted snapshot is always encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// KMSKeyID is the ID, the alias or the ARN of the KMS key of an encrypted volume. The default is the key of the
	// account for EBS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// DeleteOnTermination means that EC2 deletes the volume together with the instance. A volume that is not
	// deleted continues to cost money, and no other Machine uses it. Default true.
	// +kubebuilder:default=true
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
}

// A Volume is an EBS volume that is created with an instance.
//
// +kubebuilder:validation:XValidation:rule="has(self.sizeGiB) || has(self.snapshotID)",message="set sizeGiB or snapshotID"
type Volume struct {
	// DeviceName by which the instance shows the volume, such as /dev/sdf.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(/dev/)?[a-z0-9]+$`
	DeviceName string `json:"deviceName"`
	// SnapshotID is the snapshot that the volume is created from.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^snap-[0-9a-zA-Z-]+$`
	SnapshotID *string `json:"snapshotID,omitempty"`

	VolumeParameters `json:",inline"`
}

// A ZoneSubnet is the subnet of an availability zone.
type ZoneSubnet struct {
	// AvailabilityZone of the subnet, such as eu-west-1a.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	AvailabilityZone string `json:"availabilityZone"`
	// SubnetID is the ID of the subnet.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-zA-Z-]+$`
	SubnetID string `json:"subnetID"`
}

// A NetworkInterface is a further network interface of an instance. EC2 creates it with the instance, and deletes it
// with the instance.
type NetworkInterface struct {
	// SubnetID is the ID of the subnet, in the zone of the instance. The default is the subnet of the instance.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-zA-Z-]+$`
	SubnetID *string `json:"subnetID,omitempty"`
	// SecurityGroupIDs of the interface. The default is those of the instance.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`
	// NetworkCardIndex is the number of the network card, for an instance type with several ones. The first one has 0, which is
	// the default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31
	NetworkCardIndex *int32 `json:"networkCardIndex,omitempty"`
	// Type of the interface. Default: interface.
	// +optional
	// +kubebuilder:validation:Enum=interface;efa;efa-only
	Type *string `json:"type,omitempty"`
	// SecondaryPrivateIPAddressCount is the number of private IPv4 addresses beside the first. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	SecondaryPrivateIPAddressCount *int32 `json:"secondaryPrivateIPAddressCount,omitempty"`
	// IPv6AddressCount is the number of IPv6 addresses. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	IPv6AddressCount *int32 `json:"ipv6AddressCount,omitempty"`
}

// Spot are the options of a spot instance. EC2 may take it back at any time.
type Spot struct {
	// MaxPrice per hour in US dollars, such as "0.035". The default, which AWS recommends, is the price of an
	// instance on demand.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]{1,6})?$`
	MaxPrice *string `json:"maxPrice,omitempty"`
}

// Placement is where an instance runs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.partitionNumber) || has(self.groupName) || has(self.groupID)",message="partitionNumber requires groupName or groupID"
// +kubebuilder:validation:XValidation:rule="!(has(self.groupName) && has(self.groupID))",message="set groupName or groupID, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.hostID) && has(self.hostResourceGroupARN))",message="set hostID or hostResourceGroupARN, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.hostID) || has(self.affinity)) || (has(self.tenancy) && self.tenancy == 'host')",message="hostID and affinity require tenancy host"
type Placement struct {
	// GroupName is the name of the placement group.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	GroupName *string `json:"groupName,omitempty"`
	// GroupID is the ID of the placement group, such as of one that another account shares.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^pg-[0-9a-zA-Z]+$`
	GroupID *string `json:"groupID,omitempty"`
	// PartitionNumber is the number of the partition, in a placement group with the strategy partition. The default is one
	// that EC2 chooses.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	PartitionNumber *int32 `json:"partitionNumber,omitempty"`
	// Tenancy of the instance. The default is that of the VPC.
	// +optional
	// +kubebuilder:validation:Enum=default;dedicated;host
	Tenancy *string `json:"tenancy,omitempty"`
	// HostID is the ID of the dedicated host.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^h-[0-9a-zA-Z]+$`
	HostID *string `json:"hostID,omitempty"`
	// HostResourceGroupARN is the ARN of the resource group of dedicated hosts.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:`
	HostResourceGroupARN *string `json:"hostResourceGroupARN,omitempty"`
	// Affinity of the instance to its dedicated host. Default: default.
	// +optional
	// +kubebuilder:validation:Enum=default;host
	Affinity *string `json:"affinity,omitempty"`
}

// CapacityReservation is the capacity reservation that an instance uses.
//
// +kubebuilder:validation:XValidation:rule="[has(self.preference), has(self.id), has(self.resourceGroupARN)].filter(x, x).size() == 1",message="set exactly one of preference, id and resourceGroupARN"
type CapacityReservation struct {
	// Preference is open, to use any open reservation that matches, or none.
	// +optional
	// +kubebuilder:validation:Enum=open;none
	Preference *string `json:"preference,omitempty"`
	// ID of the capacity reservation. An instance of another reservation is not created.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-zA-Z]+$`
	ID *string `json:"id,omitempty"`
	// ResourceGroupARN is the ARN of the resource group of capacity reservations.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:`
	ResourceGroupARN *string `json:"resourceGroupARN,omitempty"`
}

// MetadataOptions are the options of the metadata service of an instance.
type MetadataOptions struct {
	// HTTPTokens is whether the metadata service requires a session token (IMDSv2).
	// +kubebuilder:validation:Enum=required;optional
	// +kubebuilder:default=required
	HTTPTokens string `json:"httpTokens,omitempty"`
	// HTTPPutResponseHopLimit is the number of network hops that a response with a session token may take. With 1, pods
	// with a network of their own do not reach the metadata service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:default=1
	HTTPPutResponseHopLimit *int32 `json:"httpPutResponseHopLimit,omitempty"`
	// InstanceTags means that the metadata service shows the tags of the instance. The tags of Drover have characters
	// that it does not show, so EC2 refuses the value enabled for tags with a slash. Default disabled.
	// +optional
	// +kubebuilder:validation:Enum=enabled;disabled
	InstanceTags *string `json:"instanceTags,omitempty"`
	// HTTPProtocolIPv6 means that the metadata service also has an IPv6 address. Default disabled.
	// +optional
	// +kubebuilder:validation:Enum=enabled;disabled
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
}

// VirtualMachineParameters are the parameters of a VM. They are used when the VM is created: a later
// change of them has no effect on the VM.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.iamInstanceProfile) && has(self.iamInstanceProfileARN))",message="set iamInstanceProfile or iamInstanceProfileARN, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.associatePublicIPAddress) && self.associatePublicIPAddress && has(self.networkInterfaces) && self.networkInterfaces.size() > 0)",message="associatePublicIPAddress requires that networkInterfaces is empty: EC2 assigns a public address only to an instance with one interface"
// +kubebuilder:validation:XValidation:rule="has(self.coreCount) == has(self.threadsPerCore)",message="set both of coreCount and threadsPerCore"
// +kubebuilder:validation:XValidation:rule="!(has(self.spot) && has(self.capacityReservation) && !has(self.capacityReservation.preference))",message="a spot instance uses no capacity reservation"
type VirtualMachineParameters struct {
	// Name of the instance in the console, which is the tag Name. A tag Name in tags takes precedence.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name *string `json:"name,omitempty"`

	// ImageID is the ID of the AMI, such as ami-0123456789abcdef0.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-zA-Z-]+$`
	ImageID *string `json:"imageID,omitempty"`

	// InstanceType, such as m7i.large.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+\.[a-z0-9-]+$`
	InstanceType *string `json:"instanceType,omitempty"`

	// AvailabilityZone of the instance, such as eu-west-1a. Drover sets it to the failure domain of the Machine.
	// If subnets is set, it selects the subnet. The default is the zone of subnetID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	AvailabilityZone *string `json:"availabilityZone,omitempty"`

	// SubnetID is the ID of the subnet. The instance is in its VPC and zone. If subnets has an entry for the zone of the
	// instance, that entry takes precedence.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-zA-Z-]+$`
	SubnetID *string `json:"subnetID,omitempty"`

	// Subnets by zone, for a class whose Machines have failure domains.
	// +optional
	// +listType=map
	// +listMapKey=availabilityZone
	// +kubebuilder:validation:MaxItems=32
	Subnets []ZoneSubnet `json:"subnets,omitempty"`

	// SecurityGroupIDs are the security groups of the instance. The default is the default group of the VPC.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// PrivateIPAddress of the instance in its subnet. The default is an address that EC2 chooses.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,3}){3}$`
	PrivateIPAddress *string `json:"privateIPAddress,omitempty"`

	// SecondaryPrivateIPAddressCount is the number of private IPv4 addresses beside the first. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	SecondaryPrivateIPAddressCount *int32 `json:"secondaryPrivateIPAddressCount,omitempty"`

	// IPv6AddressCount is the number of IPv6 addresses of the instance. The subnet must have an IPv6 CIDR block. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	IPv6AddressCount *int32 `json:"ipv6AddressCount,omitempty"`

	// PrimaryIPv6 means that the first IPv6 address is the primary one, which does not change while the instance exists. Default
	// false.
	// +optional
	PrimaryIPv6 *bool `json:"primaryIPv6,omitempty"`

	// IPv6PrefixCount is the number of IPv6 prefixes of the first network interface, such as for addresses of pods. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	IPv6PrefixCount *int32 `json:"ipv6PrefixCount,omitempty"`

	// PrivateDNSHostnameType is whether the host name in DNS follows from the IPv4 address or from the ID of the instance. The
	// default is the setting of the subnet.
	// +optional
	// +kubebuilder:validation:Enum=ip-name;resource-name
	PrivateDNSHostnameType *string `json:"privateDNSHostnameType,omitempty"`

	// AssociatePublicIPAddress means that the instance has a public IPv4 address. The default is the setting of the
	// subnet.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`

	// NetworkInterfaces beside the first.
	// +optional
	// +kubebuilder:validation:MaxItems=15
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`

	// SourceDestCheck means that the instance sends and receives only packets of its own addresses. A network of pods
	// without encapsulation needs false. Default true.
	// +optional
	SourceDestCheck *bool `json:"sourceDestCheck,omitempty"`

	// RootVolume is the volume that the instance boots from. The default is that of the image.
	// +optional
	RootVolume *VolumeParameters `json:"rootVolume,omitempty"`

	// Volumes beside the root volume, that are created with the instance.
	// +optional
	// +listType=map
	// +listMapKey=deviceName
	// +kubebuilder:validation:MaxItems=26
	Volumes []Volume `json:"volumes,omitempty"`

	// EBSOptimized is for instance types that can be optimized for EBS and are not by default.
	// +optional
	EBSOptimized *bool `json:"ebsOptimized,omitempty"`

	// Spot makes the instance a spot instance. EC2 terminates the instance when it takes it back.
	// +optional
	Spot *Spot `json:"spot,omitempty"`

	// Placement of the instance.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// CapacityReservation that the instance uses. The default is any open one that matches.
	// +optional
	CapacityReservation *CapacityReservation `json:"capacityReservation,omitempty"`

	// CPUCredits of a burstable instance. The default is that of the account for the family.
	// +optional
	// +kubebuilder:validation:Enum=standard;unlimited
	CPUCredits *string `json:"cpuCredits,omitempty"`

	// CoreCount is the number of cores, fewer than the instance type has. It requires threadsPerCore. The default is that of the
	// instance type.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	CoreCount *int32 `json:"coreCount,omitempty"`

	// ThreadsPerCore is the number of threads per core: 1 disables simultaneous multithreading. It requires coreCount. The
	// default is that of the instance type.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	ThreadsPerCore *int32 `json:"threadsPerCore,omitempty"`

	// AMDSEVSNP is whether the memory of the instance is encrypted by AMD SEV-SNP. It requires an instance type that has it.
	// Default disabled.
	// +optional
	// +kubebuilder:validation:Enum=enabled;disabled
	AMDSEVSNP *string `json:"amdSEVSNP,omitempty"`

	// DetailedMonitoring means that CloudWatch has metrics of the instance each minute. Default false.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`

	// Enclave means that the instance can have Nitro Enclaves. Default false.
	// +optional
	Enclave *bool `json:"enclave,omitempty"`

	// KeyName is the name of the SSH key pair.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	KeyName *string `json:"keyName,omitempty"`

	// IAMInstanceProfile is the name of the instance profile, whose role programs on the instance may use.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	IAMInstanceProfile *string `json:"iamInstanceProfile,omitempty"`

	// IAMInstanceProfileARN is the ARN of the instance profile.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:`
	IAMInstanceProfileARN *string `json:"iamInstanceProfileARN,omitempty"`

	// MetadataOptions of the instance. Without it, the metadata service requires a session token (IMDSv2), and
	// a response takes one network hop.
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`

	// Tags of the instance, its volumes, its network interfaces and its spot request, in addition to the tag by which
	// the provider finds the instance. A name must not begin with "aws:".
	// +optional
	// +kubebuilder:validation:MaxProperties=48
	Tags map[string]string `json:"tags,omitempty"`

	// VolumeTags are further tags of the volumes.
	// +optional
	// +kubebuilder:validation:MaxProperties=48
	VolumeTags map[string]string `json:"volumeTags,omitempty"`

	// NetworkInterfaceTags are further tags of the network interfaces.
	// +optional
	// +kubebuilder:validation:MaxProperties=48
	NetworkInterfaceTags map[string]string `json:"networkInterfaceTags,omitempty"`

	nativev1alpha1.UserData `json:",inline"`
}

// VirtualMachineObservation is the observed state of the VM.
type VirtualMachineObservation struct {
	nativev1alpha1.Observation `json:",inline"`

	// InstanceID of the last instance that EC2 showed for this VM.
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// FailedInstanceID is the ID of an instance that EC2 terminated before it ran.
	// +optional
	FailedInstanceID string `json:"failedInstanceID,omitempty"`
	// AvailabilityZone of the instance.
	// +optional
	AvailabilityZone string `json:"availabilityZone,omitempty"`
	// InstanceType of the instance.
	// +optional
	InstanceType string `json:"instanceType,omitempty"`
	// ImageID of the instance.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// PrivateDNSName of the instance in its VPC.
	// +optional
	PrivateDNSName string `json:"privateDNSName,omitempty"`
	// PublicDNSName of the instance.
	// +optional
	PublicDNSName string `json:"publicDNSName,omitempty"`
	// Lifecycle is spot for a spot instance, and empty for one on demand.
	// +optional
	Lifecycle string `json:"lifecycle,omitempty"`
	// Console is the end of the console of the instance, at most 4 KiB, while the annotation
	// machine.drover.dev/read-console is "true". Values that look like secrets are masked.
	// +optional
	Console string `json:"console,omitempty"`
}

// A VirtualMachineSpec is the desired state of a VM.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.instanceType)",message="spec.forProvider.instanceType is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.imageID)",message="spec.forProvider.imageID is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.subnetID) || has(self.forProvider.subnets)",message="spec.forProvider.subnetID or spec.forProvider.subnets is required"
// +kubebuilder:validation:XValidation:rule="!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || has(self.forProvider.subnetID) || has(self.forProvider.availabilityZone)",message="spec.forProvider.availabilityZone is required without subnetID: it selects one of subnets"
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

// A VirtualMachine is an instance of Amazon EC2. Its external name is the ID of the instance.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,aws}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.atProvider.availabilityZone`
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
