package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	cloudaws "github.com/drover-dev/drover/internal/cloud/aws"
	"github.com/drover-dev/drover/internal/native"
)

// maxUserData is the maximum size of user data in bytes, before base64.
const maxUserData = 16 << 10

// Create creates the instance.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	token := tokenOf(vm)
	if token.text == "" {
		return &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the annotation %s must have the ClientToken", v1alpha1.AnnotationClientToken), Refused: true}
	}
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	encoded, err := native.EncodeUserData(data, maxUserData)
	if err != nil {
		return err
	}
	image, err := a.image(ctx, ptr.Deref(vm.Spec.ForProvider.ImageID, ""))
	if err != nil {
		return native.Refused(err)
	}
	in := inputOf(vm.Spec.ForProvider, image, string(vm.GetUID()))
	in.ClientToken = &token.text
	if encoded != "" {
		in.UserData = &encoded
	}
	if err := wait(ctx, a.paces.run); err != nil {
		return err
	}
	out, err := a.EC2.RunInstances(ctx, in)
	switch {
	case hasCode(err, codeTokenMismatch):
		return a.created(ctx, vm, token.text, err)
	case err != nil:
		return classify("cannot create the instance", err)
	case len(out.Instances) == 0:
		return errNoInstance
	}
	meta.SetExternalName(vm, aws.ToString(out.Instances[0].InstanceId))
	return nil
}

// errNoInstance is returned if EC2 accepts a creation and returns no instance.
var errNoInstance = errors.New("EC2 returned no instance")

// created uses the instance that an earlier request with the token created, with other parameters, such as other user
// data. If EC2 shows none, the creation is refused: the frame has the token used again until EC2 certainly shows an instance.
func (a *account) created(ctx context.Context, vm *v1alpha1.VirtualMachine, token string, mismatch error) error {
	all, err := a.lister.Instances(ctx, cloudaws.Filter("client-token", token))
	if err != nil {
		return native.Refused(classify("cannot find the instance of the ClientToken", err))
	}
	for _, i := range all {
		if !isTerminated(i) {
			meta.SetExternalName(vm, aws.ToString(i.InstanceId))
			return nil
		}
	}
	return classify("cannot create the instance", mismatch)
}

// subnetOf returns the ID of the subnet, or "" if the spec has none for its zone.
func subnetOf(p v1alpha1.VirtualMachineParameters) string {
	for _, s := range p.Subnets {
		if p.AvailabilityZone != nil && s.AvailabilityZone == *p.AvailabilityZone {
			return s.SubnetID
		}
	}
	return ptr.Deref(p.SubnetID, "")
}

// inputOf returns the input of RunInstances, except the token and the user data. The order of volumes, interfaces and
// tags is always the same: a repeated request must equal the first one.
func inputOf(p v1alpha1.VirtualMachineParameters, image types.Image, uid string) *ec2.RunInstancesInput {
	in := &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), ImageId: p.ImageID, InstanceType: types.InstanceType(ptr.Deref(p.InstanceType, "")),
		KeyName: p.KeyName, EbsOptimized: p.EBSOptimized,
		// An instance whose operating system shuts down has no use: its Machine fails.
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorStop,
		NetworkInterfaces:                 interfacesOf(p),
		BlockDeviceMappings:               volumesOf(p, aws.ToString(image.RootDeviceName)),
		TagSpecifications:                 tagsOf(p, uid),
		MetadataOptions:                   metadataOf(p.MetadataOptions),
		Placement:                         placementOf(p),
		CapacityReservationSpecification:  reservationOf(p.CapacityReservation),
	}
	if p.IAMInstanceProfile != nil || p.IAMInstanceProfileARN != nil {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: p.IAMInstanceProfile, Arn: p.IAMInstanceProfileARN}
	}
	if p.Spot != nil {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: &types.SpotMarketOptions{
			MaxPrice: p.Spot.MaxPrice, SpotInstanceType: types.SpotInstanceTypeOneTime, InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
		}}
		in.InstanceInitiatedShutdownBehavior = "" // A one-time spot instance is terminated.
	}
	if p.CPUCredits != nil {
		in.CreditSpecification = &types.CreditSpecificationRequest{CpuCredits: p.CPUCredits}
	}
	if p.CoreCount != nil || p.ThreadsPerCore != nil || p.AMDSEVSNP != nil {
		in.CpuOptions = &types.CpuOptionsRequest{
			CoreCount: p.CoreCount, ThreadsPerCore: p.ThreadsPerCore, AmdSevSnp: types.AmdSevSnpSpecification(ptr.Deref(p.AMDSEVSNP, "")),
		}
	}
	if p.PrivateDNSHostnameType != nil {
		in.PrivateDnsNameOptions = &types.PrivateDnsNameOptionsRequest{HostnameType: types.HostnameType(*p.PrivateDNSHostnameType)}
	}
	if p.DetailedMonitoring != nil {
		in.Monitoring = &types.RunInstancesMonitoringEnabled{Enabled: p.DetailedMonitoring}
	}
	if p.Enclave != nil {
		in.EnclaveOptions = &types.EnclaveOptionsRequest{Enabled: p.Enclave}
	}
	return in
}

// interfacesOf returns the network interfaces. The first one has the addresses of the spec.
func interfacesOf(p v1alpha1.VirtualMachineParameters) []types.InstanceNetworkInterfaceSpecification {
	subnet := subnetOf(p)
	out := []types.InstanceNetworkInterfaceSpecification{{
		DeviceIndex: aws.Int32(0), DeleteOnTermination: aws.Bool(true), SubnetId: &subnet, Groups: p.SecurityGroupIDs,
		PrivateIpAddress: p.PrivateIPAddress, SecondaryPrivateIpAddressCount: positive(p.SecondaryPrivateIPAddressCount),
		Ipv6AddressCount: positive(p.IPv6AddressCount), Ipv6PrefixCount: positive(p.IPv6PrefixCount), PrimaryIpv6: p.PrimaryIPv6,
		AssociatePublicIpAddress: p.AssociatePublicIPAddress,
	}}
	for index, n := range p.NetworkInterfaces {
		i := types.InstanceNetworkInterfaceSpecification{
			DeviceIndex: aws.Int32(int32(index) + 1), DeleteOnTermination: aws.Bool(true), SubnetId: n.SubnetID, Groups: n.SecurityGroupIDs,
			NetworkCardIndex: n.NetworkCardIndex, InterfaceType: n.Type,
			SecondaryPrivateIpAddressCount: positive(n.SecondaryPrivateIPAddressCount), Ipv6AddressCount: positive(n.IPv6AddressCount),
		}
		if i.SubnetId == nil {
			i.SubnetId = &subnet
		}
		if len(i.Groups) == 0 {
			i.Groups = p.SecurityGroupIDs
		}
		out = append(out, i)
	}
	return out
}

// positive returns nil for 0, which EC2 does not accept.
func positive(n *int32) *int32 {
	if ptr.Deref(n, 0) == 0 {
		return nil
	}
	return n
}

func volumesOf(p v1alpha1.VirtualMachineParameters, rootDevice string) []types.BlockDeviceMapping {
	var out []types.BlockDeviceMapping
	if p.RootVolume != nil {
		out = append(out, types.BlockDeviceMapping{DeviceName: &rootDevice, Ebs: volumeOf(*p.RootVolume)})
	}
	for _, v := range p.Volumes {
		ebs := volumeOf(v.VolumeParameters)
		ebs.SnapshotId = v.SnapshotID
		out = append(out, types.BlockDeviceMapping{DeviceName: aws.String(v.DeviceName), Ebs: ebs})
	}
	return out
}

func volumeOf(v v1alpha1.VolumeParameters) *types.EbsBlockDevice {
	return &types.EbsBlockDevice{
		VolumeSize: v.SizeGiB, VolumeType: types.VolumeType(v.Type), Iops: v.IOPS, Throughput: v.Throughput, Encrypted: v.Encrypted, KmsKeyId: v.KMSKeyID,
		DeleteOnTermination: aws.Bool(ptr.Deref(v.DeleteOnTermination, true)),
	}
}

// metadataOf returns the options of the metadata service. Without any, it requires a session token (IMDSv2).
func metadataOf(m *v1alpha1.MetadataOptions) *types.InstanceMetadataOptionsRequest {
	if m == nil {
		m = &v1alpha1.MetadataOptions{}
	}
	out := &types.InstanceMetadataOptionsRequest{
		HttpEndpoint: types.InstanceMetadataEndpointStateEnabled, HttpTokens: types.HttpTokensStateRequired,
		HttpPutResponseHopLimit: aws.Int32(ptr.Deref(m.HTTPPutResponseHopLimit, 1)),
		InstanceMetadataTags:    types.InstanceMetadataTagsState(ptr.Deref(m.InstanceTags, "")),
		HttpProtocolIpv6:        types.InstanceMetadataProtocolState(ptr.Deref(m.HTTPProtocolIPv6, "")),
	}
	if m.HTTPTokens != "" {
		out.HttpTokens = types.HttpTokensState(m.HTTPTokens)
	}
	return out
}

func placementOf(p v1alpha1.VirtualMachineParameters) *types.Placement {
	if p.Placement == nil && p.AvailabilityZone == nil {
		return nil
	}
	out := &types.Placement{AvailabilityZone: p.AvailabilityZone}
	if at := p.Placement; at != nil {
		out.GroupName, out.GroupId, out.PartitionNumber = at.GroupName, at.GroupID, at.PartitionNumber
		out.Tenancy, out.HostId, out.HostResourceGroupArn, out.Affinity = types.Tenancy(ptr.Deref(at.Tenancy, "")), at.HostID, at.HostResourceGroupARN, at.Affinity
	}
	return out
}

func reservationOf(r *v1alpha1.CapacityReservation) *types.CapacityReservationSpecification {
	if r == nil {
		return nil
	}
	if r.Preference != nil {
		return &types.CapacityReservationSpecification{CapacityReservationPreference: types.CapacityReservationPreference(*r.Preference)}
	}
	return &types.CapacityReservationSpecification{CapacityReservationTarget: &types.CapacityReservationTarget{
		CapacityReservationId: r.ID, CapacityReservationResourceGroupArn: r.ResourceGroupARN,
	}}
}

// tagsOf returns the tags of everything that EC2 creates with an instance.
func tagsOf(p v1alpha1.VirtualMachineParameters, uid string) []types.TagSpecification {
	common := map[string]string{}
	if p.Name != nil {
		common[tagName] = *p.Name
	}
	maps.Copy(common, p.Tags)
	common[tagVM] = uid
	of := func(kind types.ResourceType, more map[string]string) types.TagSpecification {
		all := maps.Clone(common)
		for k, v := range more {
			if _, ok := all[k]; !ok {
				all[k] = v
			}
		}
		out := types.TagSpecification{ResourceType: kind}
		for _, k := range slices.Sorted(maps.Keys(all)) {
			out.Tags = append(out.Tags, types.Tag{Key: aws.String(k), Value: aws.String(all[k])})
		}
		return out
	}
	out := []types.TagSpecification{
		of(types.ResourceTypeInstance, nil), of(types.ResourceTypeVolume, p.VolumeTags), of(types.ResourceTypeNetworkInterface, p.NetworkInterfaceTags),
	}
	if p.Spot != nil {
		out = append(out, of(types.ResourceTypeSpotInstancesRequest, nil))
	}
	return out
}
