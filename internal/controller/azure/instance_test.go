package azure

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/native/nativetest"
	fakeazure "github.com/drover-dev/drover/test/fakes/azure"
)

// resource returns the ID of a resource of the subscription.
func resource(typ, name string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/shared/providers/" + typ + "/" + name
}

func TestAVMHasThePropertiesOfItsClass(t *testing.T) {
	l := newLab(t, fakeazure.Options{Boot: func(fakeazure.Booted) string { return "10.0.0.7" }})
	vm := newVM(l, "vm-1", map[string]string{"drover-cluster": "team-a/production"})
	p := &vm.Spec.ForProvider
	p.Image.Plan = &v1alpha1.Plan{Name: "server", Product: "ubuntu", Publisher: "canonical"}
	p.OSDisk = &v1alpha1.OSDisk{DiskParameters: v1alpha1.DiskParameters{
		Type: ptr.To("Premium_LRS"), SizeGiB: ptr.To(int32(64)), Caching: ptr.To("ReadWrite"), DiskEncryptionSetID: ptr.To(resource("Microsoft.Compute/diskEncryptionSets", "keys")),
	}}
	data := v1alpha1.DataDisk{LUN: ptr.To(int32(3)), IOPS: ptr.To(int64(6000)), ThroughputMBps: ptr.To(int64(250))}
	data.SizeGiB, data.Type, data.Keep = ptr.To(int32(100)), ptr.To("UltraSSD_LRS"), ptr.To(true)
	cloned := v1alpha1.DataDisk{SourceID: ptr.To(resource("Microsoft.Compute/snapshots", "data"))}
	p.DataDisks = []v1alpha1.DataDisk{data, cloned}
	p.DiskController = ptr.To("NVMe")
	p.NetworkInterfaces = []v1alpha1.NetworkInterface{
		{
			SubnetID: l.Subnet("nodes"), SecurityGroupID: ptr.To(resource("Microsoft.Network/networkSecurityGroups", "nodes")),
			AcceleratedNetworking: ptr.To(true), IPForwarding: ptr.To(true), PrivateAddresses: ptr.To(int32(2)), IPv6: ptr.To(true),
			PublicIP: &v1alpha1.PublicIP{
				PrefixID: ptr.To(resource("Microsoft.Network/publicIPPrefixes", "nodes")), IdleTimeoutMinutes: ptr.To(int32(10)), IPTags: map[string]string{"RoutingPreference": "Internet"},
			},
			ApplicationSecurityGroupIDs: []string{resource("Microsoft.Network/applicationSecurityGroups", "workers")},
			LoadBalancerBackendPoolIDs:  []string{resource("Microsoft.Network/loadBalancers", "lb/backendAddressPools/workers")},
			DNSServers:                  []string{"10.0.0.10"},
		},
		{SubnetID: l.Subnet("other")},
	}
	p.Identities = &v1alpha1.Identities{SystemAssigned: ptr.To(true), UserAssignedIDs: []string{resource("Microsoft.ManagedIdentity/userAssignedIdentities", "nodes")}}
	p.Spot = &v1alpha1.Spot{MaxPrice: ptr.To("0.035")}
	p.ProximityPlacementGroupID = ptr.To(resource("Microsoft.Compute/proximityPlacementGroups", "near"))
	p.Security = &v1alpha1.Security{Type: ptr.To("TrustedLaunch"), SecureBoot: ptr.To(true), VTPM: ptr.To(true), EncryptionAtHost: ptr.To(true)}
	p.BootDiagnostics, p.LicenseType, p.ExtensionOperations = &v1alpha1.BootDiagnostics{}, ptr.To("RHEL_BYOS"), ptr.To(false)
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		return slices.ContainsFunc(vm.Status.AtProvider.Addresses, func(a nativev1alpha1.Address) bool { return a.Address == "10.0.0.7" })
	}, func(vm *v1alpha1.VirtualMachine) {
		all := l.Existing()
		if len(all) != 1 {
			t.Fatalf("VMs %+v", all)
		}
		uid := string(vm.UID)
		beside := func(suffix string) string { return "vm-1-" + uid[:8] + "-" + suffix }
		nic := func(n string) string {
			return "/subscriptions/" + subscription + "/resourceGroups/" + fakeazure.Group + "/providers/Microsoft.Network/networkInterfaces/" + beside("nic"+n)
		}
		tags := `{"drover-cluster": "team-a/production", "drover-vm": "` + uid + `"}`
		wantJSON(t, all[0].Body, `{
			"location": "westeurope", "zones": ["1"], "tags": `+tags+`, "plan": {"name": "server", "product": "ubuntu", "publisher": "canonical"},
			"identity": {"type": "SystemAssigned, UserAssigned", "userAssignedIdentities": {"`+p.Identities.UserAssignedIDs[0]+`": {}}},
			"properties": {
				"hardwareProfile": {"vmSize": "Standard_D4s_v5"}, "priority": "Spot", "evictionPolicy": "Delete", "billingProfile": {"maxPrice": 0.035}, "licenseType": "RHEL_BYOS",
				"additionalCapabilities": {"ultraSSDEnabled": true}, "proximityPlacementGroup": {"id": "`+*p.ProximityPlacementGroupID+`"},
				"diagnosticsProfile": {"bootDiagnostics": {"enabled": true}},
				"securityProfile": {"securityType": "TrustedLaunch", "encryptionAtHost": true, "uefiSettings": {"secureBootEnabled": true, "vTpmEnabled": true}},
				"osProfile": {"computerName": "vm-1", "adminUsername": "operator", "allowExtensionOperations": false, "customData": "I2Nsb3VkLWNvbmZpZwp0b2tlbjogYWJjZGVmLjAxMjM0NTY3ODlhYmNkZWY=",
					"linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": [{"path": "/home/operator/.ssh/authorized_keys", "keyData": "`+sshKey+`"}]}}},
				"storageProfile": {"diskControllerType": "NVMe", "imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
					"osDisk": {"name": "`+beside("os")+`", "createOption": "FromImage", "osType": "Linux", "deleteOption": "Delete", "diskSizeGB": 64, "caching": "ReadWrite",
						"managedDisk": {"storageAccountType": "Premium_LRS", "diskEncryptionSet": {"id": "`+*p.OSDisk.DiskEncryptionSetID+`"}}},
					"dataDisks": [
						{"name": "`+beside("data0")+`", "lun": 3, "createOption": "Empty", "deleteOption": "Detach", "diskSizeGB": 100, "diskIOPSReadWrite": 6000, "diskMBpsReadWrite": 250,
							"managedDisk": {"storageAccountType": "UltraSSD_LRS"}},
						{"name": "`+beside("data1")+`", "lun": 1, "createOption": "Copy", "deleteOption": "Delete", "sourceResource": {"id": "`+*cloned.SourceID+`"}}]},
				"networkProfile": {"networkInterfaces": [
					{"id": "`+nic("0")+`", "properties": {"primary": true, "deleteOption": "Delete"}},
					{"id": "`+nic("1")+`", "properties": {"primary": false, "deleteOption": "Delete"}}]}}}`)
		group := `"applicationSecurityGroups": [{"id": "` + p.NetworkInterfaces[0].ApplicationSecurityGroupIDs[0] + `"}]`
		subnet := `"privateIPAllocationMethod": "Dynamic", "subnet": {"id": "` + l.Subnet("nodes") + `"}`
		wantJSON(t, marshalled(t, l.BodyOf("nic0")), `{"location": "westeurope", "tags": `+tags+`, "properties": {
			"enableAcceleratedNetworking": true, "enableIPForwarding": true, "dnsSettings": {"dnsServers": ["10.0.0.10"]},
			"networkSecurityGroup": {"id": "`+*p.NetworkInterfaces[0].SecurityGroupID+`"},
			"ipConfigurations": [
				{"name": "primary", "properties": {"primary": true, "privateIPAddressVersion": "IPv4", `+subnet+`, `+group+`,
					"loadBalancerBackendAddressPools": [{"id": "`+p.NetworkInterfaces[0].LoadBalancerBackendPoolIDs[0]+`"}],
					"publicIPAddress": {"id": "`+strings.ReplaceAll(strings.ReplaceAll(nic("0"), "networkInterfaces", "publicIPAddresses"), "-nic0", "-ip0")+`", "properties": {"deleteOption": "Delete"}}}},
				{"name": "secondary1", "properties": {"primary": false, "privateIPAddressVersion": "IPv4", `+subnet+`, `+group+`}},
				{"name": "ipv6", "properties": {"primary": false, "privateIPAddressVersion": "IPv6", `+subnet+`, `+group+`}}]}}`)
		wantJSON(t, marshalled(t, l.BodyOf("ip0")), `{"location": "westeurope", "tags": `+tags+`, "zones": ["1"], "sku": {"name": "Standard"}, "properties": {
			"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4", "idleTimeoutInMinutes": 10, "publicIPPrefix": {"id": "`+*p.NetworkInterfaces[0].PublicIP.PrefixID+`"},
			"ipTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}]}}`)
		at := vm.Status.AtProvider
		if at.ProviderID != "azure:///subscriptions/"+subscription+"/resourceGroups/production-nodes/providers/Microsoft.Compute/virtualMachines/vm-1" ||
			at.Place != "subscription "+subscription || at.Zone != "1" || at.VMID != all[0].ID || at.Size != "Standard_D4s_v5" || !at.Spot {
			t.Errorf("observed %+v", at)
		}
		var kinds []string
		for _, a := range at.Addresses {
			kinds = append(kinds, a.Type)
		}
		if want := []string{"InternalIP", "InternalIP", "InternalIP", "InternalIP", "ExternalIP"}; !slices.Equal(kinds, want) {
			t.Errorf("addresses %v, want the types %v", at.Addresses, want)
		}
	})
}

func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAnEphemeralOrConfidentialVM holds the fields of the OS disk that exclude others.
func TestAnEphemeralOrConfidentialVM(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	vm := name{group: "g", name: "vm"}
	p := newVM(l, "vm", nil).Spec.ForProvider
	p.OSDisk = &v1alpha1.OSDisk{EphemeralPlacement: ptr.To("NvmeDisk")}
	wantJSON(t, marshalled(t, storageOf(p, vm, "0b0e7d2c-uid").OSDisk), `{"name": "vm-0b0e7d2c-os", "createOption": "FromImage", "osType": "Linux", "deleteOption": "Delete", "caching": "ReadOnly",
		"diffDiskSettings": {"option": "Local", "placement": "NvmeDisk"}}`)
	if parts := plannedParts(p, vm, "0b0e7d2c-uid"); len(parts) != 1 || parts[0].kind != kindInterface {
		t.Errorf("parts %+v, want the network interface alone: an ephemeral disk is no resource", parts)
	}
	p.OSDisk = &v1alpha1.OSDisk{SecurityEncryptionType: ptr.To("DiskWithVMGuestState"), DiskParameters: v1alpha1.DiskParameters{DiskEncryptionSetID: ptr.To("set")}}
	wantJSON(t, marshalled(t, storageOf(p, vm, "0b0e7d2c-uid").OSDisk.ManagedDisk), `{"securityProfile": {"securityEncryptionType": "DiskWithVMGuestState", "diskEncryptionSet": {"id": "set"}}}`)
}

func TestErrorsNameTheirCause(t *testing.T) {
	refuse := func(status int, code, message string) func(*lab) {
		return func(l *lab) {
			l.Break(fakeazure.Fault{Call: fakeazure.CreateVM, Status: status, Code: code, Message: message})
		}
	}
	fail := func(code, message string) func(*lab) {
		return func(l *lab) { l.Fail(fakeazure.Failure{Code: code, Message: message}) }
	}
	type parameters = v1alpha1.VirtualMachineParameters
	cases := map[string]struct {
		lab    func(*lab)
		change func(*parameters)
		want   []string
	}{
		"AnImageThatDoesNotExist":     {nil, func(p *parameters) { p.Image.Offer = ptr.To("x") }, []string{"InvalidRequest: cannot create the VM: The platform image 'Canonical:x:server:latest' is not available", "(PlatformImageNotFound, status 404)"}},
		"ASizeThatDoesNotExist":       {nil, func(p *parameters) { p.Size = ptr.To("Standard_X") }, []string{"InvalidRequest: cannot create the VM", "the VM size is not valid"}},
		"ASubnetThatDoesNotExist":     {nil, func(p *parameters) { p.NetworkInterfaces[0].SubnetID += "x" }, []string{"InvalidRequest: cannot create network interface vm-1-", "was not found", "InvalidResourceReference"}},
		"AnIDOfAnotherType":           {nil, func(p *parameters) { p.HostID = ptr.To(resource("Microsoft.Compute/hostGroups", "g")) }, []string{`InvalidRequest: forProvider.hostID: "`, "must be the ID of a resource of the type Microsoft.Compute/hostGroups/hosts"}},
		"ATagOfTheProvider":           {nil, func(p *parameters) { p.Tags = map[string]string{"Drover-VM": "x"} }, []string{"InvalidRequest: forProvider.tags: invalid key", "the provider sets this tag"}},
		"ATagThatAzureKeeps":          {nil, func(p *parameters) { p.Tags = map[string]string{"azure-x": "x"} }, []string{"must not begin with microsoft, azure or windows"}},
		"ATagWithASlash":              {nil, func(p *parameters) { p.Tags = map[string]string{"a/b": "x"} }, []string{"InvalidRequest: forProvider.tags", "and none of <>%&"}},
		"ATagThatIsTooLong":           {nil, func(p *parameters) { p.Tags = map[string]string{"a": strings.Repeat("x", 257)} }, []string{"InvalidRequest: forProvider.tags: the value of a has 257 characters"}},
		"ALUNTwice":                   {nil, func(p *parameters) { p.DataDisks = []v1alpha1.DataDisk{{LUN: ptr.To(int32(1))}, {}} }, []string{"InvalidRequest: forProvider.dataDisks[1].lun: invalid value 1: dataDisks[0] has it"}},
		"ANameOfAnotherVM":            {func(l *lab) { l.Create("vm-1", nil) }, nil, []string{`InvalidRequest: forProvider.name: "vm-1": resource group production-nodes has a VM of this name that was not created for this VM`}},
		"NoCapacityForASize":          {refuse(409, "SkuNotAvailable", "The requested size is currently not available"), nil, []string{"CapacityExhausted: cannot create the VM", "(SkuNotAvailable, status 409)"}},
		"NoCapacityInAZone":           {fail("ZonalAllocationFailed", "Allocation failed. We do not have sufficient capacity"), nil, []string{"CapacityExhausted: the task create failed: ZonalAllocationFailed: Allocation failed"}},
		"NoCapacityAtAll":             {fail("AllocationFailed", "Allocation failed."), nil, []string{"CapacityExhausted: the task create failed: AllocationFailed"}},
		"TooManyConstraints":          {fail("OverconstrainedAllocationRequest", "Allocation failed."), nil, []string{"CapacityExhausted: "}},
		"NoCoresLeft":                 {refuse(409, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota."), nil, []string{"QuotaExceeded: cannot create the VM"}},
		"AQuotaOfTheOperation":        {fail("OperationNotAllowed", "exceeding approved Total Regional Cores quota"), nil, []string{"QuotaExceeded: the task create failed"}},
		"AnOperationThatIsNotQuota":   {refuse(409, "OperationNotAllowed", "Cannot attach the disk"), nil, []string{"InvalidRequest: cannot create the VM"}},
		"AQuota":                      {refuse(400, "QuotaExceeded", "Submitted request exceeds the quota."), nil, []string{"QuotaExceeded: "}},
		"APolicyOfTheOrganization":    {refuse(403, "RequestDisallowedByPolicy", "Resource 'vm-1' was disallowed by policy."), nil, []string{"PermissionDenied: cannot create the VM", "RequestDisallowedByPolicy"}},
		"ARightThatIsMissing":         {func(l *lab) { l.deny("Microsoft.Compute/virtualMachines/write") }, nil, []string{"PermissionDenied: cannot create the VM", "Microsoft.Compute/virtualMachines/write"}},
		"ARightForTheSubnet":          {func(l *lab) { l.deny("Microsoft.Network/virtualNetworks/subnets/join/action") }, nil, []string{"PermissionDenied: cannot create network interface", "LinkedAuthorizationFailed", "subnets/join/action"}},
		"AnIdentityThatMayNotList":    {func(l *lab) { l.deny("Microsoft.Compute/virtualMachines/read") }, nil, []string{"PermissionDenied: cannot list the VMs", "Microsoft.Compute/virtualMachines/read"}},
		"AServerThatFails":            {refuse(500, "InternalServerError", "Encountered internal server error."), nil, []string{"Transient: cannot create the VM"}},
		"AnotherOperation":            {refuse(409, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress."), nil, []string{"Transient: cannot create the VM"}},
		"ACallTooMany":                {refuse(429, "TooManyRequests", "too many requests"), nil, []string{"Throttled: "}},
		"ASecretThatWasRevoked":       {func(l *lab) { l.Revoke(fakeazure.Client, l.secret) }, nil, []string{"PermissionDenied: ", "cannot get a token", "AADSTS7000215", "(invalid_client, status 401)"}},
		"AResultWithoutAnExplanation": {fail("", ""), nil, []string{"Transient: the task create failed: Azure gives no reason"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakeazure.Options{})
			before := 0
			if tc.lab != nil {
				tc.lab(l)
				before = len(l.Existing())
			}
			vm := newVM(l, "vm-1", nil)
			if tc.change != nil {
				tc.change(&vm.Spec.ForProvider)
			}
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				text := vm.GetCondition(xpv2.TypeSynced).Message
				return !slices.ContainsFunc(tc.want, func(part string) bool { return !strings.Contains(text, part) })
			}, nil)
			if n := len(l.Existing()) - before; n > 0 {
				t.Errorf("%d VMs were created", n)
			}
		})
	}
}

// TestAFailedAllocationIsKnownWithinAMinute lets Azure accept a VM for which it then has no capacity. The failed VM and its
// network interface are removed before the next attempt.
func TestAFailedAllocationIsKnownWithinAMinute(t *testing.T) {
	l := newLab(t, fakeazure.Options{Step: 20 * time.Second, ListedAfter: 3 * time.Second})
	l.Fail(fakeazure.Failure{Code: "AllocationFailed", Message: "We do not have sufficient capacity", Times: 1})
	var began, reported time.Time
	removed := false
	nativetest.Until(t, cloudOf(l), newVM(l, "vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if began.IsZero() {
			began = time.Now()
		}
		if reported.IsZero() && strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "CapacityExhausted: ") {
			reported = time.Now()
		}
		removed = removed || !reported.IsZero() && len(l.Left()) == 0
		return vm.Status.AtProvider.ProviderID != ""
	}, func(*v1alpha1.VirtualMachine) {
		if took := reported.Sub(began); reported.IsZero() || took > time.Minute {
			t.Errorf("reported after %s", took)
		}
		if calls, _ := l.Calls(); calls[fakeazure.CreateVM] != 2 || calls[fakeazure.DeleteVM] != 1 || len(l.Existing()) != 1 || !removed {
			t.Errorf("calls %v, VMs %+v, removed %t; want a second creation after all of the first one is removed", calls, l.Existing(), removed)
		}
	})
}

// TestAVMWhoseExtensionFailedRuns has the state of a VM that runs, and that a change of it failed.
func TestAVMWhoseExtensionFailedRuns(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	failed := false
	var later time.Time
	nativetest.Until(t, cloudOf(l), newVM(l, "vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.ProviderID != "" && !failed {
			failed, later = true, time.Now().Add(5*time.Minute)
			l.FailUpdate("vm-1")
		}
		return failed && time.Now().After(later)
	}, func(vm *v1alpha1.VirtualMachine) {
		if at := vm.Status.AtProvider; at.State != string(native.StateRunning) || !strings.Contains(at.StateText, "provisioning state failed") {
			t.Errorf("observed %+v", at)
		}
	})
}

func TestASpotVMThatIsTakenBackFails(t *testing.T) {
	for name, tc := range map[string]struct {
		policy string
		end    func(*lab)
		want   native.State
		text   string
	}{
		"AndIsDeallocated": {"Deallocate", func(l *lab) { l.Evict("vm-1") }, native.StateFailed, "Azure took the spot VM back"},
		"AndIsDeleted":     {"Delete", func(l *lab) { l.Evict("vm-1") }, native.StateNone, ""},
		"ByAUser":          {"Deallocate", func(l *lab) { l.PowerOff("vm-1") }, native.StateStopped, "power state stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakeazure.Options{Step: 5 * time.Second})
			vm := newVM(l, "vm-1", nil)
			vm.Spec.ForProvider.Spot = &v1alpha1.Spot{EvictionPolicy: &tc.policy}
			ended := false
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				if vm.Status.AtProvider.ProviderID != "" && !ended {
					ended = true
					tc.end(l)
				}
				return ended && vm.Status.AtProvider.State == string(tc.want) && strings.Contains(vm.Status.AtProvider.StateText, tc.text)
			}, nil)
		})
	}
}

// TestAVMWhoseTagWasRemovedIsNotLost removes the tag by which the list shows the VM.
func TestAVMWhoseTagWasRemovedIsNotLost(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	removed := false
	nativetest.Until(t, cloudOf(l), newVM(l, "vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.ProviderID != "" && !removed {
			removed = true
			l.Untag("vm-1", tagVM)
		}
		return strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, `exists, and its tag drover-vm is "": set it to "`+string(vm.UID))
	}, func(vm *v1alpha1.VirtualMachine) {
		if c := vm.GetCondition(xpv2.TypeReady); c.Status != "True" {
			t.Errorf("condition %+v", c)
		}
	})
}

// TestAVMOfAnotherOwnerWithTheNameIsNeverDeleted replaces the VM by one of a user before the deletion.
func TestAVMOfAnotherOwnerWithTheNameIsNeverDeleted(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	c := cloudOf(l)
	opened, err := c.Provider.Open(c.Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	l.Create("vm-1", map[string]string{"owner": "someone"})
	vm := newVM(l, "vm-1", nil)
	vm.SetUID("0b0e7d2c-6a52-4a0b-9b53-000000000001")
	vm.SetAnnotations(map[string]string{"crossplane.io/external-name": string(vm.UID)})
	vm.Status.AtProvider.ID, vm.Status.AtProvider.VMID = resource("Microsoft.Compute/virtualMachines", "vm-1"), "another"
	vm.Status.AtProvider.ID = strings.ReplaceAll(vm.Status.AtProvider.ID, "/shared/", "/"+fakeazure.Group+"/")
	if err := opened.Delete(t.Context(), vm); err != nil {
		t.Error(err)
	}
	if calls, _ := l.Calls(); calls[fakeazure.DeleteVM] > 0 || calls[fakeazure.GetVM] != 1 {
		t.Errorf("calls %v, want the VM to be read and not deleted", calls)
	}
}

// TestACreationChangesNoOtherVM has a VM of the name that was created after the list was read.
func TestACreationChangesNoOtherVM(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	c := cloudOf(l)
	account, err := c.Provider.Open(c.Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	l.Create("vm-1", map[string]string{"owner": "someone"})
	vm := newVM(l, "vm-1", nil)
	meta.SetExternalName(vm, "0b0e7d2c-6a52-4a0b-9b53-000000000001")
	err = account.Create(t.Context(), vm, noUserData)
	if err == nil || !strings.Contains(err.Error(), "has a VM of this name that was not created for this VM") {
		t.Errorf("error %v", err)
	}
}

// TestAConflictOfNamesIsResolvedByTheTag has the answers to a creation whose VM exists.
func TestAConflictOfNamesIsResolvedByTheTag(t *testing.T) {
	for code, status := range map[string]int{"ConditionNotMet": http.StatusPreconditionFailed, "PropertyChangeNotAllowed": http.StatusConflict} {
		for tag, want := range map[string]string{"0b0e7d2c-6a52-4a0b-9b53-000000000001": "", "another": "was not created for this VM"} {
			l := newLab(t, fakeazure.Options{})
			l.Create("vm-1", map[string]string{tagVM: tag})
			l.Break(fakeazure.Fault{Call: fakeazure.CreateVM, Status: status, Code: code})
			c := cloudOf(l)
			account, err := c.Provider.Open(c.Config, l.credentials())
			if err != nil {
				t.Fatal(err)
			}
			vm := newVM(l, "vm-1", nil)
			meta.SetExternalName(vm, "0b0e7d2c-6a52-4a0b-9b53-000000000001")
			err = account.Create(t.Context(), vm, noUserData)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, tag %s: error %v, want %q", code, tag, err, want)
			}
		}
	}
}

// TestARepeatedCreationChangesNoVM sends the request for a VM that exists, as after a lost answer.
func TestARepeatedCreationChangesNoVM(t *testing.T) {
	l := newLab(t, fakeazure.Options{ListedAfter: 20 * time.Second})
	l.Break(fakeazure.Fault{Call: fakeazure.CreateVM, Times: 2, Lost: true})
	nativetest.Until(t, cloudOf(l), newVM(l, "vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" }, func(*v1alpha1.VirtualMachine) {
		if all := l.Existing(); len(all) != 1 {
			t.Errorf("VMs %+v", all)
		}
	})
}

// TestWhatIsBesideAVMThatNeverExistedIsDeleted refuses a VM whose network interface and public IP address exist by then.
func TestWhatIsBesideAVMThatNeverExistedIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, fakeazure.Options{ListedAfter: 3 * time.Second, Step: 4 * time.Second})
		l.Break(fakeazure.Fault{Call: fakeazure.CreateVM, Status: 409, Code: "SkuNotAvailable"})
		c := cloudOf(l)
		account, err := c.Provider.Open(c.Config, l.credentials())
		if err != nil {
			t.Fatal(err)
		}
		vm := newVM(l, "vm-1", nil)
		vm.Spec.ForProvider.NetworkInterfaces[0].PublicIP = &v1alpha1.PublicIP{}
		vm.SetUID("0b0e7d2c-6a52-4a0b-9b53-000000000001")
		meta.SetExternalName(vm, string(vm.UID))
		meta.SetExternalCreatePending(vm, time.Now())
		if err := account.Create(t.Context(), vm, noUserData); err == nil || len(l.Left()) != 2 {
			t.Fatalf("error %v, left %q; want a refusal, an interface and an address", err, l.Left())
		}
		vm.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		for range 30 {
			seen, err := account.Get(t.Context(), vm, time.Now())
			if err == nil && seen.State == native.StateNone {
				break
			}
			if err == nil && seen.State != native.StateDeleting {
				err = account.Delete(t.Context(), vm)
			}
			if err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
		}
		if left := l.Left(); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	})
}

// TestAVMThatStopsBeforeItRanIsStarted stops a VM while it is created.
func TestAVMThatStopsBeforeItRanIsStarted(t *testing.T) {
	l := newLab(t, fakeazure.Options{Step: 10 * time.Second})
	stopped := false
	nativetest.Until(t, cloudOf(l), newVM(l, "vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.VMID != "" && !stopped {
			stopped = true
			l.PowerOff("vm-1")
		}
		return vm.Status.AtProvider.ProviderID != ""
	}, nil)
}

// TestAVMThatIsRemovedBeforeItRanIsReported removes a VM while it is created.
func TestAVMThatIsRemovedBeforeItRanIsReported(t *testing.T) {
	l := newLab(t, fakeazure.Options{Step: 10 * time.Second})
	removed, reported := "", false
	nativetest.Until(t, cloudOf(l), newVM(l, "vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if at := vm.Status.AtProvider; removed == "" && at.VMID != "" {
			removed = at.VMID
			l.Lose("vm-1")
		}
		reported = reported || strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "VM vm-1 was removed before it ran")
		return vm.Status.AtProvider.ProviderID != ""
	}, func(*v1alpha1.VirtualMachine) {
		if all := l.Existing(); !reported || len(all) != 1 || all[0].ID == removed {
			t.Errorf("reported %t, VMs %+v, want another one than %s", reported, all, removed)
		}
	})
}

func TestTheConsoleIsReadOnRequest(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	vm := newVM(l, "vm-1", nil)
	vm.Spec.ForProvider.BootDiagnostics = &v1alpha1.BootDiagnostics{}
	vm.SetAnnotations(map[string]string{machinev1alpha1.AnnotationReadConsole: "true"})
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.VMID != "" {
			l.SetConsole("vm-1", strings.Repeat("noise\n", 10000)+"boot\njoin token: abcdef.0123456789abcdef\n")
		}
		return strings.Contains(vm.Status.AtProvider.Console, "boot\n")
	}, func(vm *v1alpha1.VirtualMachine) {
		if strings.Contains(vm.Status.AtProvider.Console, "abcdef.0123456789abcdef") {
			t.Errorf("the console has the token: %s", vm.Status.AtProvider.Console)
		}
	})
}

// TestDisksThatWereLeftAreListed lists a disk that no VM uses, with the tags of its VM.
func TestDisksThatWereLeftAreListed(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	id := l.AddDisk("left", map[string]string{machinev1alpha1.TagInstallation: "i", tagVM: "x"})
	l.AddDisk("foreign", map[string]string{machinev1alpha1.TagInstallation: "other"})
	c := cloudOf(l)
	opened, err := c.Provider.Open(c.Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	found, complete, err := opened.(*account).ListResources(t.Context(), "i")
	if err != nil || !complete || len(found) != 1 || found[0].ID != id || found[0].Tags[tagVM] != "" {
		t.Errorf("found %+v, complete %t, %v", found, complete, err)
	}
}

// TestNothingIsConcludedFromAListThatTheRightsCut gives the service principal rights in one resource group only.
func TestNothingIsConcludedFromAListThatTheRightsCut(t *testing.T) {
	l := newLab(t, fakeazure.Options{})
	l.deny("Microsoft.Compute/virtualMachines/read")
	l.Assign(fakeazure.Client, azuretestGroup("another"), azuretestRights())
	c := cloudOf(l)
	opened, err := c.Provider.Open(c.Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = opened.List(t.Context(), "i")
	if err == nil || !strings.Contains(err.Error(), "PermissionDenied: ") || !strings.Contains(err.Error(), "nothing is concluded from its list") {
		t.Errorf("error %v", err)
	}
}

// TestTheRoleHasTheRightsOfTheProvider compares the role of the example with the calls that the provider makes.
func TestTheRoleHasTheRightsOfTheProvider(t *testing.T) {
	b, err := os.ReadFile("../../../examples/azure/role.json")
	if err != nil {
		t.Fatal(err)
	}
	var role struct{ Actions []string }
	if err := json.Unmarshal(b, &role); err != nil {
		t.Fatal(err)
	}
	for _, a := range fakeazure.Actions {
		if !slices.Contains(role.Actions, a) {
			t.Errorf("the role lacks %s", a)
		}
	}
}

// TestFewCallsLeftSlowTheProvider translates the limits that Azure Resource Manager reports.
func TestFewCallsLeftSlowTheProvider(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for left, want := range map[string]string{"11999": "", "10": "10", "x": ""} {
		l := limits{next: answering{"x-ms-ratelimit-remaining-subscription-writes": left}, now: func() time.Time { return at }}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := l.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("RateLimit-Remaining"); got != want {
			t.Errorf("left %s: %q, want %q", left, got, want)
		}
		if want != "" && resp.Header.Get("RateLimit-Reset") != "1800000019" {
			t.Errorf("reset %s", resp.Header.Get("RateLimit-Reset"))
		}
	}
}

// answering is a transport that answers with headers.
type answering map[string]string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	h := http.Header{}
	for k, v := range a {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody}, nil
}

// TestStates has the states of VMs that the provider created, and of orphans.
func TestStates(t *testing.T) {
	vm := func(provisioning, power string, spot bool) machine {
		m := machine{VirtualMachine: &armcompute.VirtualMachine{Properties: &armcompute.VirtualMachineProperties{ProvisioningState: &provisioning}}, power: power}
		if spot {
			m.Properties.Priority = ptr.To(armcompute.VirtualMachinePriorityTypesSpot)
		}
		return m
	}
	for name, tc := range map[string]struct {
		m                 machine
		created, finished bool
		want              native.State
	}{
		"Accepted":                       {vm("Creating", "", false), true, false, native.StateCreating},
		"RunsBeforeItsCreationEnds":      {vm("Creating", "running", false), true, false, native.StateRunning},
		"Runs":                           {vm("Succeeded", "running", false), true, true, native.StateRunning},
		"Failed":                         {vm("Failed", "", false), true, false, native.StateIncomplete},
		"FailedDeallocated":              {vm("Failed", "deallocated", false), true, false, native.StateIncomplete},
		"AnOrphanThatFailed":             {vm("Failed", "", false), false, false, native.StateFailed},
		"AFailedUpdate":                  {vm("Failed", "running", false), true, true, native.StateRunning},
		"AFailedUpdateOfAStoppedVM":      {vm("Failed", "stopped", false), true, true, native.StateStopped},
		"StoppedByAUser":                 {vm("Succeeded", "stopped", true), true, true, native.StateStopped},
		"DeallocatedByAUser":             {vm("Succeeded", "deallocated", false), true, true, native.StateStopped},
		"Evicted":                        {vm("Succeeded", "deallocated", true), true, true, native.StateFailed},
		"StoppedBeforeItRan":             {vm("Succeeded", "stopped", false), true, false, native.StateIncomplete},
		"Starts":                         {vm("Updating", "starting", false), true, true, native.StateCreating},
		"IsDeleted":                      {vm("Deleting", "running", false), true, true, native.StateDeleting},
		"AnOrphanThatIsStopped":          {vm("Succeeded", "stopped", false), false, false, native.StateStopped},
		"AVMWithoutAPowerStateOfTheList": {vm("Succeeded", "", false), true, false, native.StateCreating},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(tc.m, tc.created, tc.finished); got != tc.want {
				t.Errorf("state %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTwoVMsWithOneTag has a VM whose tags a user copied to another one.
func TestTwoVMsWithOneTag(t *testing.T) {
	at := func(name string) machine {
		return machine{VirtualMachine: &armcompute.VirtualMachine{ID: ptr.To(resource("Microsoft.Compute/virtualMachines", name))}}
	}
	both := []machine{at("a"), at("b")}
	if m, err := choose(both, name{group: "SHARED", name: "B"}); err != nil || m == nil || m.name().name != "b" {
		t.Errorf("chosen %+v, %v", m, err)
	}
	if m, err := choose(both, name{group: "shared", name: "c"}); err != nil || m != nil {
		t.Errorf("chosen %+v, %v", m, err)
	}
	if _, err := choose(both, name{}); err == nil || !strings.Contains(err.Error(), "have the same tag drover-vm") {
		t.Errorf("error %v", err)
	}
}
