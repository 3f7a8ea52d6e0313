package proxmox

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
)

const testUUID = "0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11"

func TestTheIdentityOfAVM(t *testing.T) {
	cases := map[string]struct {
		c      config
		ours   bool
		hidden bool
	}{
		"BySMBIOS":                     {config{"smbios1": "uuid=" + testUUID}, true, false},
		"BySMBIOSInOtherLetters":       {config{"smbios1": "base64=1,uuid=" + strings.ToUpper(testUUID)}, true, false},
		"ByTheNotesOfAClone":           {config{"smbios1": "uuid=x", "description": notesOf(testUUID, nil), "lock": "clone"}, true, false},
		"NotByNotesThatAUserWrote":     {config{"description": "drover-vm: " + testUUID}, false, false},
		"NotByAnotherUUID":             {config{"smbios1": "uuid=0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d12"}, false, false},
		"NotByNothing":                 {config{}, false, false},
		"ACloneThatHasNothingIsHidden": {config{"lock": "clone", "digest": "x"}, false, true},
		"ALockedVMIsNotHidden":         {config{"lock": "backup", "name": "vm", "smbios1": "uuid=" + testUUID}, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.c.isOf(testUUID); got != tc.ours {
				t.Errorf("ours: %t", got)
			}
			if got := tc.c.isHidden(); got != tc.hidden {
				t.Errorf("hidden: %t", got)
			}
		})
	}
}

func TestNotesAreReadAgain(t *testing.T) {
	want := map[string]string{
		"drover-installation": "7f3a0c1e-0000-4000-8000-000000000001", "drover-cluster": "team-a/production",
		"drover-machine": "m: with a colon", "example.org/owner": "",
	}
	uuid, got := readNotes(notesOf(testUUID, want) + "\nA line of a user: x\n")
	if d := cmp.Diff(want, got); uuid != testUUID || d != "" {
		t.Errorf("UUID %q, attributes (-want +got):\n%s", uuid, d)
	}
	// A browser may send carriage returns when a user edits the notes.
	uuid, got = readNotes(strings.ReplaceAll(notesOf(testUUID, want), "\n", "\r\n"))
	if d := cmp.Diff(want, got); uuid != testUUID || d != "" {
		t.Errorf("with carriage returns: UUID %q, attributes (-want +got):\n%s", uuid, d)
	}
}

func TestAttributesArePlain(t *testing.T) {
	cases := map[string]struct {
		attributes map[string]string
		want       string
	}{
		"PlainOnes":     {map[string]string{"drover-machine": "m", "example.org/owner": "Team A: x"}, ""},
		"ALineBreak":    {map[string]string{"owner": "x\ndrover-vm: " + testUUID}, "forProvider.attributes: invalid value of owner"},
		"ABackquote":    {map[string]string{"owner": "```"}, "forProvider.attributes: invalid value of owner"},
		"ALongValue":    {map[string]string{"owner": strings.Repeat("x", 257)}, "forProvider.attributes: invalid value of owner"},
		"ANameOfOthers": {map[string]string{"a: b": "x"}, `forProvider.attributes: invalid name "a: b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := validate(v1alpha1.VirtualMachineParameters{Attributes: tc.attributes}, testUUID)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTagsAndImages(t *testing.T) {
	attributes := map[string]string{"drover-installation": "ID/With Other+Letters"}
	tags := tagsOf(strings.ToUpper(testUUID), []string{"b", "a", "a"}, attributes)
	if want := "a;b;drover-in-id_with_other+letters;drover-vm-" + testUUID; tags != want {
		t.Errorf("tags %q, want %q", tags, want)
	}
	if got := uuidOfTags("x, drover-vm-" + testUUID); got != testUUID {
		t.Errorf("UUID %q", got)
	}
	for _, in := range []map[string]string{nil, {"drover-installation": "7f3a0c1e-0000-4000-8000-000000000001"}} {
		installation, uuid, ok := readImageName(imageName(testUUID, in))
		if !ok || uuid != testUUID || installation != in["drover-installation"] {
			t.Errorf("image %s is of installation %q and VM %q", imageName(testUUID, in), installation, uuid)
		}
	}
	for _, other := range []string{"debian-12.iso", "drover-.iso", "drover-x.iso", testUUID + ".iso"} {
		if _, _, ok := readImageName(other); ok {
			t.Errorf("%s counts as an image of Drover", other)
		}
	}
}

func TestTheNextMove(t *testing.T) {
	p := v1alpha1.VirtualMachineParameters{DiskSizeGiB: ptr.To(int64(40)), CloudInit: &v1alpha1.CloudInit{Storage: "local"}}
	image := "local:iso/" + imageName(testUUID, nil)
	ours := config{"smbios1": "uuid=" + testUUID, "boot": "order=ide2;scsi0", "scsi0": "ceph:vm-100-disk-0,size=40G", "ide2": image + ",media=cdrom"}
	with := func(k, v string) config {
		c := config{}
		for key, value := range ours {
			c[key] = value
		}
		c[k] = v
		return c
	}
	cases := map[string]struct {
		c       config
		p       v1alpha1.VirtualMachineParameters
		running bool
		want    move
	}{
		"ACloneIsConfigured":                 {with("smbios1", "uuid=x"), p, false, moveConfigure},
		"ACloneThatRunsIsConfiguredToo":      {with("smbios1", ""), p, true, moveConfigure},
		"ASmallDiskGrows":                    {with("scsi0", "ceph:vm-100-disk-0,size=2252M"), p, false, moveResize},
		"ALargerDiskStays":                   {with("scsi0", "ceph:vm-100-disk-0,size=1T"), p, false, moveStart},
		"TheImageIsAttached":                 {with("ide2", "none,media=cdrom"), p, false, moveAttach},
		"AnImageOfAnotherVMIsReplaced":       {with("ide2", "local:iso/"+imageName("0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d12", nil)+",media=cdrom"), p, false, moveAttach},
		"ACompleteVMIsStarted":               {ours, p, false, moveStart},
		"ARunningVMIsComplete":               {ours, p, true, moveNone},
		"AVMWithoutWishesIsComplete":         {config{"smbios1": "uuid=" + testUUID}, v1alpha1.VirtualMachineParameters{}, true, moveNone},
		"AVMWithoutADiskIsNotResizedForEver": {config{"smbios1": "uuid=" + testUUID}, v1alpha1.VirtualMachineParameters{DiskSizeGiB: ptr.To(int64(40))}, true, moveNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nextMove(tc.c, tc.p, testUUID, image, tc.running); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestTheBootDisk(t *testing.T) {
	cases := map[string]struct {
		c    config
		want string
	}{
		"OfTheOrder":              {config{"boot": "order=net0;virtio0;scsi0", "virtio0": "l:x,size=4G", "scsi0": "l:y,size=4G"}, "virtio0"},
		"NotACD":                  {config{"boot": "order=ide2;scsi0", "ide2": "none,media=cdrom", "scsi0": "l:y"}, "scsi0"},
		"OfAnOldTemplate":         {config{"boot": "c", "bootdisk": "sata0", "sata0": "l:x"}, "sata0"},
		"WithoutAnOrder":          {config{"virtio0": "l:x"}, "virtio0"},
		"OfATemplateThatHasNoOne": {config{"net0": "virtio"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.c.bootDisk(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestDisksTakeFreeDevices(t *testing.T) {
	p := v1alpha1.VirtualMachineParameters{
		Disks:     []v1alpha1.Disk{{Storage: "a", SizeGiB: 1}, {Storage: "b", SizeGiB: 2}, {Storage: "c", SizeGiB: 3}},
		CloudInit: &v1alpha1.CloudInit{Storage: "local", Device: "scsi2"},
		Networks:  []v1alpha1.Network{{Bridge: "vmbr0", Model: "e1000", Firewall: ptr.To(true)}},
		Agent:     ptr.To(false), StartOnBoot: ptr.To(false), CPUType: ptr.To("host"),
	}
	got := configure(config{"scsi0": "x", "scsi3": "y", "net0": "x", "net1": "y", "net7": "z"}, p, testUUID)
	for k, want := range map[string]any{
		"scsi0": nil, "scsi1": "a:1", "scsi2": nil, "scsi3": nil, "scsi4": "b:2", "scsi5": "c:3",
		"net0": "e1000,bridge=vmbr0,firewall=1", "delete": "net1,net7", "agent": "enabled=0", "onboot": "0", "cpu": "host", "cores": nil, "memory": nil,
	} {
		if got[k] != want {
			t.Errorf("%s is %v, want %v", k, got[k], want)
		}
	}
}

func TestAddressesAreThoseOfTheCards(t *testing.T) {
	var i interfaces
	if err := json.Unmarshal([]byte(`{"result": [
		{"name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": [{"ip-address": "127.0.0.1"}]},
		{"name": "eth0", "hardware-address": "BC:24:11:00:64:00", "ip-addresses": [{"ip-address": "10.0.0.7"}, {"ip-address": "fe80::1%eth0"}, {"ip-address": "2001:db8::7"}, {"ip-address": "10.0.0.7"}, {"ip-address": "nonsense"}]},
		{"name": "cni0", "hardware-address": "5e:00:00:00:00:01", "ip-addresses": [{"ip-address": "10.244.3.1"}]},
		{"name": "sit0"}]}`), &i); err != nil {
		t.Fatal(err)
	}
	want := []nativev1alpha1.Address{{Type: "InternalIP", Address: "10.0.0.7"}, {Type: "InternalIP", Address: "2001:db8::7"}}
	if d := cmp.Diff(want, i.of([]string{"bc:24:11:00:64:00"})); d != "" {
		t.Errorf("addresses (-want +got):\n%s", d)
	}
}

func TestANodeHasATemplateOfItsOwn(t *testing.T) {
	vms := []entry{
		{Type: "qemu", VMID: 9000, Name: "golden", Node: "pve1", Template: 1}, {Type: "qemu", VMID: 9001, Name: "golden", Node: "pve2", Template: 1},
		{Type: "qemu", VMID: 100, Name: "golden", Node: "pve3"}, {Type: "lxc", VMID: 101, Name: "box", Node: "pve1", Template: 1},
	}
	cases := map[string]struct {
		name, node string
		want       int64
	}{
		"ByNameOnTheNode":       {"golden", "pve2", 9001},
		"ByNameOfAnotherNode":   {"golden", "pve3", 9000},
		"ByVMIDWhereverItIs":    {"9001", "pve1", 9001},
		"AContainerIsNone":      {"box", "pve1", 0},
		"AVMIsNone":             {"100", "pve3", 0},
		"ANameThatDoesNotExist": {"silver", "pve1", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := templateFor(vms, tc.name, tc.node)
			if got.VMID != tc.want || (err == nil) != (tc.want != 0) {
				t.Errorf("%d, %v, want %d", got.VMID, err, tc.want)
			}
		})
	}
}
