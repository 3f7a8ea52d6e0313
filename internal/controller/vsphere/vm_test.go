package vsphere

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

func disk(file, uuid string, change ...func(*types.VirtualDisk, *types.VirtualDiskFlatVer2BackingInfo)) types.BaseVirtualDevice {
	b := &types.VirtualDiskFlatVer2BackingInfo{Uuid: uuid}
	b.FileName = file
	d := &types.VirtualDisk{VirtualDevice: types.VirtualDevice{Backing: b}}
	for _, c := range change {
		c(d, b)
	}
	return d
}

func firstClass(d *types.VirtualDisk, _ *types.VirtualDiskFlatVer2BackingInfo) {
	d.VDiskId = &types.ID{Id: "fcd"}
}

func independent(_ *types.VirtualDisk, b *types.VirtualDiskFlatVer2BackingInfo) {
	b.DiskMode = string(types.VirtualDiskModeIndependent_persistent)
}

func TestForeignDisks(t *testing.T) {
	const vmx = "[a] vm/vm.vmx"
	cases := map[string]struct {
		disk    types.BaseVirtualDevice
		own     []string
		foreign bool
	}{
		"OneThatWasMadeWithTheVMIsItsOwn":             {disk("[a] vm/vm.vmdk", "1"), []string{"1"}, false},
		"AlsoWhenItMovedToAnotherDatastore":           {disk("[b] vm_1/vm.vmdk", "1"), []string{"1"}, false},
		"OneThatWasNotIsForeignAlsoInTheVMsFolder":    {disk("[a] vm/vm_1.vmdk", "2"), []string{"1"}, true},
		"AFirstClassOneIsForeignWhateverIsRemembered": {disk("[a] vm/vm.vmdk", "1", firstClass), []string{"1"}, true},
		"UnknownOneInTheVMsFolderIsItsOwn":            {disk("[a] vm/vm.vmdk", "1"), nil, false},
		"UnknownOneInTheSameFolderElsewhereIsItsOwn":  {disk("[b] vm/vm.vmdk", "1"), nil, false},
		"UnknownOneInAnotherFolderIsForeign":          {disk("[a] kubevols/pv.vmdk", "1"), nil, true},
		"UnknownFirstClassOneIsForeign":               {disk("[a] vm/vm.vmdk", "1", firstClass), nil, true},
		"UnknownOneThatIsLeftOutOfSnapshotsIsForeign": {disk("[a] vm/vm.vmdk", "1", independent), nil, true},
		"OneWithoutUUIDIsForeignWhereTheOwnAreKnown":  {disk("[a] vm/vm.vmdk", ""), []string{"1"}, true},
		"OneWithoutAFileIsForeign":                    {&types.VirtualDisk{}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := object.VirtualDeviceList{&types.VirtualCdrom{}, tc.disk}
			if got := len(foreignDisks(l, tc.own, vmx)) == 1; got != tc.foreign {
				t.Errorf("foreign: %t, want %t", got, tc.foreign)
			}
		})
	}
}

func TestOwnDisks(t *testing.T) {
	l := object.VirtualDeviceList{
		disk("[a] vm/vm.vmdk", "own"), disk("[a] vm_2/data.vmdk", "elsewhere"), disk("[a] fcd/pv.vmdk", "volume", firstClass),
		disk("[a] vm/i.vmdk", "independent", independent),
	}
	if d := cmp.Diff([]string{"elsewhere", "independent", "own"}, ownDisks(l, "[a] vm/vm.vmx", true)); d != "" {
		t.Errorf("of a VM that never ran (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"own"}, ownDisks(l, "[a] vm/vm.vmx", false)); d != "" {
		t.Errorf("of a VM that runs (-want +got):\n%s", d)
	}
}

func TestAddresses(t *testing.T) {
	guest := &types.GuestInfo{
		HostName: "node-1",
		Net: []types.GuestNicInfo{
			{Network: "VM Network", DeviceConfigId: 4000, IpAddress: []string{"10.0.0.7", "fe80::1", "2001:db8::7", "10.0.0.7", "nonsense"}},
			{Network: "public", DeviceConfigId: 4001, IpAddress: []string{"192.0.2.7", "169.254.1.1", "::ffff:192.0.2.8", "224.0.0.1", "::"}},
			{Network: "", DeviceConfigId: notACard, IpAddress: []string{"10.244.0.1"}},
		},
	}
	networks := []v1alpha1.Network{{Name: "VM Network"}, {Name: "/DC0/network/public", AddressType: v1alpha1.AddressExternal}}
	want := []v1alpha1.Address{
		{Type: "InternalIP", Address: "10.0.0.7"}, {Type: "InternalIP", Address: "2001:db8::7"},
		{Type: "ExternalIP", Address: "192.0.2.7"}, {Type: "ExternalIP", Address: "192.0.2.8"},
	}
	if d := cmp.Diff(want, addressesOf(guest, networks)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := addressesOf(nil, nil); got != nil {
		t.Errorf("of a guest without tools: %v", got)
	}
}

func TestTheHostNameThatAGuestReportsIsNoAddress(t *testing.T) {
	guest := &types.GuestInfo{HostName: "kubernetes.default.svc", Net: []types.GuestNicInfo{{DeviceConfigId: 4000, IpAddress: []string{"10.96.0.1"}}}}
	for _, a := range addressesOf(guest, nil) {
		if a.Address == guest.HostName {
			t.Errorf("%+v is an address of the VM", a)
		}
	}
}
