package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// maxUserData is the maximum size of the custom data in bytes, before base64.
const maxUserData = 65535

// Create creates the resources beside the VM, and the VM if they are ready at once.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	return a.build(ctx, vm, userData, nil)
}

// Continue carries out the next step of a creation: it creates missing resources, deletes a VM whose creation failed, or
// starts a VM that stopped before it ran.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	switch {
	case v.failed:
		_, err := a.deleteVM(ctx, vm)
		return err
	case v.stopped:
		n := knownVM(vm)
		_, err := a.api.vms.BeginStart(ctx, n.group, n.name, nil)
		return classify("cannot start the VM", err)
	}
	return a.build(ctx, vm, userData, v.parts)
}

// build creates the resources of a VM that are not among those that exist, in their order, until one is not ready at once.
func (a *account) build(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData, existing []part) error {
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	custom, err := native.EncodeUserData(data, maxUserData)
	if err != nil {
		return err
	}
	p, externalName := vm.Spec.ForProvider, meta.GetExternalName(vm)
	n := plannedVM(vm)
	if ready, err := a.createAddresses(ctx, p, n, externalName, existing); err != nil || !ready {
		return err
	}
	if ready, err := a.createInterfaces(ctx, p, n, externalName, existing); err != nil || !ready {
		return err
	}
	_, err = a.api.vms.BeginCreateOrUpdate(ctx, n.group, n.name, a.machineOf(p, n, externalName, custom), &armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{
		// Without it, the request would change a VM of this name.
		IfNoneMatch: ptr.To("*"),
	})
	if isConflict(err) {
		return a.adopt(ctx, vm, n, err)
	}
	if err != nil {
		return classify("cannot create the VM", err)
	}
	a.accepted.Add(externalName)
	return nil
}

// adopt uses the VM that has the name already, if an earlier creation of the managed resource created it.
func (a *account) adopt(ctx context.Context, vm *v1alpha1.VirtualMachine, n name, conflict error) error {
	found, err := a.api.vms.Get(ctx, n.group, n.name, nil)
	switch {
	case hasStatus(err, http.StatusNotFound): // It was just deleted.
		return native.Refused(classify("cannot create the VM", conflict))
	case err != nil:
		return native.Refused(classify("cannot read the VM that has the name", err))
	case tagOf(found.Tags) != meta.GetExternalName(vm):
		return foreign(vm)
	}
	return nil
}

// isReady reports whether a resource beside a VM is among those that exist and are ready.
func isReady(existing []part, k kind, n name) bool {
	return slices.ContainsFunc(existing, func(p part) bool { return p.kind == k && p.is(n) && p.state == provisioningSucceeded })
}

// put calls f, which creates a resource, and reports whether the resource is ready at once. The SDK would wait for the
// operation to know that.
func put(ctx context.Context, f func(context.Context) error) (ready bool, err error) {
	var resp *http.Response
	if err := f(policy.WithCaptureResponse(ctx, &resp)); err != nil {
		return false, err
	}
	var body struct {
		Properties struct {
			ProvisioningState string `json:"provisioningState"`
		} `json:"properties"`
	}
	payload, err := runtime.Payload(resp)
	if err == nil {
		err = json.Unmarshal(payload, &body)
	}
	return err == nil && strings.EqualFold(body.Properties.ProvisioningState, provisioningSucceeded), err
}

// createAddresses creates the public IP addresses of a VM. It returns false if one is not ready yet.
func (a *account) createAddresses(ctx context.Context, p v1alpha1.VirtualMachineParameters, vm name, externalName string, existing []part) (bool, error) {
	ready := true
	for n, i := range p.NetworkInterfaces {
		at := addressName(vm, externalName, n)
		if i.PublicIP == nil || isReady(existing, kindAddress, at) {
			continue
		}
		done, err := put(ctx, func(ctx context.Context) error {
			_, err := a.api.addresses.BeginCreateOrUpdate(ctx, at.group, at.name, addressOf(p, *i.PublicIP, externalName), nil)
			return err
		})
		if err != nil {
			return false, classify("cannot create public IP address "+at.name, err)
		}
		a.accepted.Add(part{kind: kindAddress, name: at}.key())
		ready = ready && done
	}
	return ready, nil
}

// createInterfaces creates the network interfaces of a VM. It returns false if one is not ready yet.
func (a *account) createInterfaces(ctx context.Context, p v1alpha1.VirtualMachineParameters, vm name, externalName string, existing []part) (bool, error) {
	ready := true
	for n := range p.NetworkInterfaces {
		at := interfaceName(vm, externalName, n)
		if isReady(existing, kindInterface, at) {
			continue
		}
		done, err := put(ctx, func(ctx context.Context) error {
			_, err := a.api.interfaces.BeginCreateOrUpdate(ctx, at.group, at.name, a.interfaceOf(p, vm, externalName, n), nil)
			return err
		})
		if err != nil {
			return false, classify("cannot create network interface "+at.name, err)
		}
		a.accepted.Add(part{kind: kindInterface, name: at}.key())
		ready = ready && done
	}
	return ready, nil
}

// addressOf returns the public IP address to create.
func addressOf(p v1alpha1.VirtualMachineParameters, ip v1alpha1.PublicIP, externalName string) armnetwork.PublicIPAddress {
	zones := ip.Zones
	if len(zones) == 0 && p.Zone != nil {
		zones = []string{*p.Zone}
	}
	out := armnetwork.PublicIPAddress{
		Location: p.Location, Tags: tagsWith(p.Tags, externalName), Zones: pointers(zones),
		SKU: &armnetwork.PublicIPAddressSKU{Name: ptr.To(armnetwork.PublicIPAddressSKUNameStandard)},
		Properties: &armnetwork.PublicIPAddressPropertiesFormat{
			PublicIPAllocationMethod: ptr.To(armnetwork.IPAllocationMethodStatic), PublicIPAddressVersion: ptr.To(armnetwork.IPVersionIPv4),
			IdleTimeoutInMinutes: ip.IdleTimeoutMinutes,
		},
	}
	if ip.PrefixID != nil {
		out.Properties.PublicIPPrefix = &armnetwork.SubResource{ID: ip.PrefixID}
	}
	for _, k := range slices.Sorted(maps.Keys(ip.IPTags)) {
		out.Properties.IPTags = append(out.Properties.IPTags, &armnetwork.IPTag{IPTagType: ptr.To(k), Tag: ptr.To(ip.IPTags[k])})
	}
	return out
}

// interfaceOf returns the network interface to create.
func (a *account) interfaceOf(p v1alpha1.VirtualMachineParameters, vm name, externalName string, n int) armnetwork.Interface {
	i := p.NetworkInterfaces[n]
	out := &armnetwork.InterfacePropertiesFormat{EnableAcceleratedNetworking: i.AcceleratedNetworking, EnableIPForwarding: i.IPForwarding}
	if i.SecurityGroupID != nil {
		out.NetworkSecurityGroup = &armnetwork.SecurityGroup{ID: i.SecurityGroupID}
	}
	if len(i.DNSServers) > 0 {
		out.DNSSettings = &armnetwork.InterfaceDNSSettings{DNSServers: pointers(i.DNSServers)}
	}
	add := func(name string, version armnetwork.IPVersion) *armnetwork.InterfaceIPConfigurationPropertiesFormat {
		c := &armnetwork.InterfaceIPConfigurationPropertiesFormat{
			Primary: ptr.To(len(out.IPConfigurations) == 0), Subnet: &armnetwork.Subnet{ID: ptr.To(i.SubnetID)},
			PrivateIPAllocationMethod: ptr.To(armnetwork.IPAllocationMethodDynamic), PrivateIPAddressVersion: &version,
		}
		// All configurations of an interface must have the same groups.
		for _, g := range i.ApplicationSecurityGroupIDs {
			c.ApplicationSecurityGroups = append(c.ApplicationSecurityGroups, &armnetwork.ApplicationSecurityGroup{ID: ptr.To(g)})
		}
		out.IPConfigurations = append(out.IPConfigurations, &armnetwork.InterfaceIPConfiguration{Name: ptr.To(name), Properties: c})
		return c
	}
	first := add("primary", armnetwork.IPVersionIPv4)
	if i.PublicIP != nil {
		first.PublicIPAddress = &armnetwork.PublicIPAddress{
			ID:         ptr.To(a.idOf("Microsoft.Network/publicIPAddresses", addressName(vm, externalName, n))),
			Properties: &armnetwork.PublicIPAddressPropertiesFormat{DeleteOption: ptr.To(armnetwork.DeleteOptionsDelete)},
		}
	}
	for _, pool := range i.LoadBalancerBackendPoolIDs {
		first.LoadBalancerBackendAddressPools = append(first.LoadBalancerBackendAddressPools, &armnetwork.BackendAddressPool{ID: ptr.To(pool)})
	}
	for _, pool := range i.ApplicationGatewayBackendPoolIDs {
		first.ApplicationGatewayBackendAddressPools = append(first.ApplicationGatewayBackendAddressPools, &armnetwork.ApplicationGatewayBackendAddressPool{ID: ptr.To(pool)})
	}
	for more := range ptr.Deref(i.PrivateAddresses, 1) - 1 {
		add(fmt.Sprintf("secondary%d", more+1), armnetwork.IPVersionIPv4)
	}
	if ptr.Deref(i.IPv6, false) {
		add("ipv6", armnetwork.IPVersionIPv6)
	}
	return armnetwork.Interface{Location: p.Location, Tags: tagsWith(p.Tags, externalName), Properties: out}
}

// machineOf returns the VM to create.
func (a *account) machineOf(p v1alpha1.VirtualMachineParameters, vm name, externalName, customData string) armcompute.VirtualMachine {
	out := armcompute.VirtualMachine{Location: p.Location, Tags: tagsWith(p.Tags, externalName), Identity: identityOf(p.Identities)}
	if p.Zone != nil {
		out.Zones = []*string{p.Zone}
	}
	if p.Image != nil && p.Image.Plan != nil {
		plan := p.Image.Plan
		out.Plan = &armcompute.Plan{Name: &plan.Name, Product: &plan.Product, Publisher: &plan.Publisher}
	}
	size := armcompute.VirtualMachineSizeTypes(ptr.Deref(p.Size, ""))
	o := &armcompute.VirtualMachineProperties{
		HardwareProfile: &armcompute.HardwareProfile{VMSize: &size},
		StorageProfile:  storageOf(p, vm, externalName),
		OSProfile:       osOf(p, vm, customData),
		NetworkProfile:  &armcompute.NetworkProfile{},
		SecurityProfile: securityOf(p.Security),
		LicenseType:     p.LicenseType,

		ProximityPlacementGroup: reference(p.ProximityPlacementGroupID), AvailabilitySet: reference(p.AvailabilitySetID),
		VirtualMachineScaleSet: reference(p.ScaleSetID), Host: reference(p.HostID), HostGroup: reference(p.HostGroupID),
	}
	out.Properties = o
	for n := range p.NetworkInterfaces {
		o.NetworkProfile.NetworkInterfaces = append(o.NetworkProfile.NetworkInterfaces, &armcompute.NetworkInterfaceReference{
			ID:         ptr.To(a.idOf("Microsoft.Network/networkInterfaces", interfaceName(vm, externalName, n))),
			Properties: &armcompute.NetworkInterfaceReferenceProperties{Primary: ptr.To(n == 0), DeleteOption: ptr.To(armcompute.DeleteOptionsDelete)},
		})
	}
	if p.CapacityReservationGroupID != nil {
		o.CapacityReservation = &armcompute.CapacityReservationProfile{CapacityReservationGroup: reference(p.CapacityReservationGroupID)}
	}
	if b := p.BootDiagnostics; b != nil {
		o.DiagnosticsProfile = &armcompute.DiagnosticsProfile{BootDiagnostics: &armcompute.BootDiagnostics{Enabled: ptr.To(true), StorageURI: b.StorageAccountURI}}
	}
	if s := p.Spot; s != nil {
		policy := armcompute.VirtualMachineEvictionPolicyTypes(ptr.Deref(s.EvictionPolicy, string(armcompute.VirtualMachineEvictionPolicyTypesDelete)))
		o.Priority, o.EvictionPolicy = ptr.To(armcompute.VirtualMachinePriorityTypesSpot), &policy
		price := -1.0 // That of a VM on demand.
		if s.MaxPrice != nil {
			price, _ = strconv.ParseFloat(*s.MaxPrice, 64) // The schema validates it.
		}
		o.BillingProfile = &armcompute.BillingProfile{MaxPrice: &price}
	}
	ultra := ptr.Deref(p.UltraSSD, false) || slices.ContainsFunc(p.DataDisks, func(d v1alpha1.DataDisk) bool {
		return ptr.Deref(d.Type, "") == string(armcompute.StorageAccountTypesUltraSSDLRS)
	})
	if ultra {
		o.AdditionalCapabilities = &armcompute.AdditionalCapabilities{UltraSSDEnabled: ptr.To(true)}
	}
	return out
}

func identityOf(i *v1alpha1.Identities) *armcompute.VirtualMachineIdentity {
	if i == nil {
		return nil
	}
	own, users := ptr.Deref(i.SystemAssigned, false), len(i.UserAssignedIDs) > 0
	typ := armcompute.ResourceIdentityTypeNone
	switch {
	case own && users:
		typ = armcompute.ResourceIdentityTypeSystemAssignedUserAssigned
	case own:
		typ = armcompute.ResourceIdentityTypeSystemAssigned
	case users:
		typ = armcompute.ResourceIdentityTypeUserAssigned
	default:
		return nil
	}
	out := &armcompute.VirtualMachineIdentity{Type: &typ}
	for _, u := range i.UserAssignedIDs {
		if out.UserAssignedIdentities == nil {
			out.UserAssignedIdentities = map[string]*armcompute.UserAssignedIdentitiesValue{}
		}
		out.UserAssignedIdentities[u] = &armcompute.UserAssignedIdentitiesValue{}
	}
	return out
}

func osOf(p v1alpha1.VirtualMachineParameters, vm name, customData string) *armcompute.OSProfile {
	user := ptr.Deref(p.AdminUsername, "")
	ssh := &armcompute.SSHConfiguration{}
	for _, k := range p.SSHPublicKeys {
		ssh.PublicKeys = append(ssh.PublicKeys, &armcompute.SSHPublicKey{Path: ptr.To("/home/" + user + "/.ssh/authorized_keys"), KeyData: ptr.To(k)})
	}
	out := &armcompute.OSProfile{
		ComputerName: ptr.To(vm.name), AdminUsername: &user, AllowExtensionOperations: p.ExtensionOperations,
		LinuxConfiguration: &armcompute.LinuxConfiguration{DisablePasswordAuthentication: ptr.To(true), SSH: ssh},
	}
	if customData != "" {
		out.CustomData = &customData
	}
	return out
}

func securityOf(s *v1alpha1.Security) *armcompute.SecurityProfile {
	if s == nil {
		return nil
	}
	out := &armcompute.SecurityProfile{EncryptionAtHost: s.EncryptionAtHost}
	if s.Type != nil {
		out.SecurityType = ptr.To(armcompute.SecurityTypes(*s.Type))
	}
	if s.SecureBoot != nil || s.VTPM != nil {
		out.UefiSettings = &armcompute.UefiSettings{SecureBootEnabled: s.SecureBoot, VTpmEnabled: s.VTPM}
	}
	return out
}

// storageOf returns the OS disk and the data disks.
func storageOf(p v1alpha1.VirtualMachineParameters, vm name, externalName string) *armcompute.StorageProfile {
	out := &armcompute.StorageProfile{ImageReference: imageOf(p.Image)}
	if p.DiskController != nil {
		out.DiskControllerType = ptr.To(armcompute.DiskControllerTypes(*p.DiskController))
	}
	os := ptr.Deref(p.OSDisk, v1alpha1.OSDisk{})
	out.OSDisk = &armcompute.OSDisk{
		Name: ptr.To(osDiskName(vm, externalName).name), CreateOption: ptr.To(armcompute.DiskCreateOptionTypesFromImage), OSType: ptr.To(armcompute.OperatingSystemTypesLinux),
		DeleteOption: deletionOf(os.DiskParameters), DiskSizeGB: os.SizeGiB, Caching: cachingOf(os.DiskParameters), WriteAcceleratorEnabled: os.WriteAccelerator,
		ManagedDisk: managedOf(os.DiskParameters),
	}
	if os.SecurityEncryptionType != nil {
		if out.OSDisk.ManagedDisk == nil {
			out.OSDisk.ManagedDisk = &armcompute.ManagedDiskParameters{}
		}
		s := &armcompute.VMDiskSecurityProfile{SecurityEncryptionType: ptr.To(armcompute.SecurityEncryptionTypes(*os.SecurityEncryptionType))}
		// The key of a confidential VM encrypts its state, too.
		s.DiskEncryptionSet, out.OSDisk.ManagedDisk.DiskEncryptionSet = out.OSDisk.ManagedDisk.DiskEncryptionSet, nil
		out.OSDisk.ManagedDisk.SecurityProfile = s
	}
	if os.EphemeralPlacement != nil {
		out.OSDisk.DiffDiskSettings = &armcompute.DiffDiskSettings{Option: ptr.To(armcompute.DiffDiskOptionsLocal), Placement: ptr.To(armcompute.DiffDiskPlacement(*os.EphemeralPlacement))}
		out.OSDisk.Caching = ptr.To(armcompute.CachingTypesReadOnly)
	}
	for n, d := range p.DataDisks {
		disk := &armcompute.DataDisk{
			Name: ptr.To(dataDiskName(vm, externalName, n).name), Lun: ptr.To(lunOf(n, d)), CreateOption: ptr.To(armcompute.DiskCreateOptionTypesEmpty),
			DeleteOption: deletionOf(d.DiskParameters), DiskSizeGB: d.SizeGiB, Caching: cachingOf(d.DiskParameters), WriteAcceleratorEnabled: d.WriteAccelerator,
			ManagedDisk: managedOf(d.DiskParameters), DiskIOPSReadWrite: d.IOPS, DiskMBpsReadWrite: d.ThroughputMBps,
		}
		if d.SourceID != nil {
			disk.CreateOption = ptr.To(armcompute.DiskCreateOptionTypesCopy)
			if strings.Contains(strings.ToLower(*d.SourceID), "/diskrestorepoints/") {
				disk.CreateOption = ptr.To(armcompute.DiskCreateOptionTypesRestore)
			}
			disk.SourceResource = &armcompute.APIEntityReference{ID: d.SourceID}
		}
		out.DataDisks = append(out.DataDisks, disk)
	}
	return out
}

func imageOf(i *v1alpha1.Image) *armcompute.ImageReference {
	if i == nil {
		return nil
	}
	out := &armcompute.ImageReference{
		ID: i.ID, CommunityGalleryImageID: i.CommunityGalleryImageID, SharedGalleryImageID: i.SharedGalleryImageID,
		Publisher: i.Publisher, Offer: i.Offer, SKU: i.SKU, Version: i.Version,
	}
	if i.Publisher != nil && i.Version == nil {
		out.Version = ptr.To("latest")
	}
	return out
}

func deletionOf(d v1alpha1.DiskParameters) *armcompute.DiskDeleteOptionTypes {
	if ptr.Deref(d.Keep, false) {
		return ptr.To(armcompute.DiskDeleteOptionTypesDetach)
	}
	return ptr.To(armcompute.DiskDeleteOptionTypesDelete)
}

func cachingOf(d v1alpha1.DiskParameters) *armcompute.CachingTypes {
	if d.Caching == nil {
		return nil
	}
	return ptr.To(armcompute.CachingTypes(*d.Caching))
}

// managedOf returns the parameters of a managed disk, or nil for the defaults.
func managedOf(d v1alpha1.DiskParameters) *armcompute.ManagedDiskParameters {
	if d.Type == nil && d.DiskEncryptionSetID == nil {
		return nil
	}
	out := &armcompute.ManagedDiskParameters{}
	if d.Type != nil {
		out.StorageAccountType = ptr.To(armcompute.StorageAccountTypes(*d.Type))
	}
	if d.DiskEncryptionSetID != nil {
		out.DiskEncryptionSet = &armcompute.DiskEncryptionSetParameters{ID: d.DiskEncryptionSetID}
	}
	return out
}

func reference(id *string) *armcompute.SubResource {
	if id == nil {
		return nil
	}
	return &armcompute.SubResource{ID: id}
}

func pointers(list []string) []*string {
	var out []*string
	for n := range list {
		out = append(out, &list[n])
	}
	return out
}
