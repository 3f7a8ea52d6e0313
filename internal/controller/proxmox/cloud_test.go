package proxmox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	fakeproxmox "github.com/drover-dev/drover/test/fakes/proxmox"
)

const tokenID = "drover@pve!drover"

// A lab is a fake cluster with one token.
type lab struct {
	*fakeproxmox.Cluster
	mu     sync.Mutex
	secret string
	n      int
}

func newLab(o fakeproxmox.Options) *lab {
	l := &lab{Cluster: fakeproxmox.New(o)}
	l.rotate()
	return l
}

func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.secret = fmt.Sprintf("5ec4e700-0000-4000-8000-%012d", l.n)
	l.SetToken(tokenID, fakeproxmox.Token{Secret: l.secret})
}

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	return credentials{TokenID: tokenID, Secret: l.secret}
}

// id returns the VMID of the VM with a name.
func (l *lab) id(name string) int {
	for _, vm := range l.VMs() {
		if vm.Name == name {
			return vm.VMID
		}
	}
	return 0
}

func newVM(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.Template, p.CloneMode = ptr.To(name), ptr.To("ubuntu-24.04"), v1alpha1.CloneFull
	p.Cores, p.MemoryMiB, p.DiskSizeGiB, p.Pool = ptr.To(int32(4)), ptr.To(int64(8192)), ptr.To(int64(40)), ptr.To("k8s")
	p.Networks = []v1alpha1.Network{{Bridge: "vmbr0", VLAN: ptr.To(int32(20)), Model: "virtio"}}
	p.Disks = []v1alpha1.Disk{{Storage: "ceph", SizeGiB: 100}}
	p.Tags, p.Attributes = []string{"kubernetes"}, attributes
	p.CloudInit = &v1alpha1.CloudInit{Storage: "local", Device: "ide2"}
	p.Agent, p.StartOnBoot = ptr.To(true), ptr.To(true)
	return vm
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Server = "https://pve.example.org"
	return nativetest.Cloud[*v1alpha1.VirtualMachine, credentials]{
		Provider:    provider(l),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      pc,
		Credentials: l.credentials,
		Rotate:      l.rotate,
		Secrets:     func() []string { return []string{l.credentials().Secret} },
		VM:          newVM,
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.CloudInit.Storage = "local-lvm"
			return "cloudInit.storage"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, vm := range l.VMs() {
				name := vm.Name
				if vm.Hidden {
					name = "hidden"
				}
				out = append(out, nativetest.Existing{Name: name, UserData: vm.UserData})
			}
			return out
		},
		Leftovers: l.Images,
		Lose:      func(name string) { l.Lose(l.id(name)) },
		Stop:      func(name string) { l.PowerOff(l.id(name)) },
		Reboots:   func(name string) []string { return l.Reboots(l.id(name)) },
		Fake:      l, CreateCall: "POST /nodes/{node}/qemu/{id}/clone",
		MostCalls: 40, MostDeletionCalls: 20, CreationTakes: 20 * time.Minute,
	}
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		return cloudOf(newLab(fakeproxmox.Options{
			Step: 2 * time.Second, CloneTakes: 20 * time.Second, AgentAfter: 30 * time.Second, StatusEvery: 10 * time.Second,
			RateLimit: 100, Refill: 50 * time.Millisecond,
		}))
	})
}

func TestAVMHasThePropertiesOfItsClass(t *testing.T) {
	var booted fakeproxmox.Booted
	l := newLab(fakeproxmox.Options{Boot: func(b fakeproxmox.Booted) string { booted = b; return "10.0.0.7" }})
	l.Set(9000, "net1", "virtio=BC:24:11:00:00:02,bridge=vmbr1")
	nativetest.Until(t, cloudOf(l), newVM("vm-1", map[string]string{"drover-installation": "1d", "drover-cluster": "team-a/production"}), func(vm *v1alpha1.VirtualMachine) bool {
		return len(vm.Status.AtProvider.Addresses) > 0
	}, func(vm *v1alpha1.VirtualMachine) {
		vms := l.VMs()
		if len(vms) != 1 {
			t.Fatalf("VMs %+v", vms)
		}
		got, uuid := vms[0], string(vm.UID)
		for k, want := range map[string]string{
			"cores": "4", "sockets": "1", "memory": "8192", "onboot": "1", "agent": "enabled=1", "smbios1": "uuid=" + uuid,
			"tags": "drover-in-1d;drover-vm-" + uuid + ";kubernetes", "net1": "", "net0": "virtio=BC:24:11:00:64:00,bridge=vmbr0,tag=20",
			"scsi1": "ceph:vm-100-scsi1,size=100G", "scsi0": "ceph:vm-100-disk-0,size=40G", "ide2": "local:iso/drover-1d-" + uuid + ".iso,media=cdrom",
		} {
			if got.Config[k] != want {
				t.Errorf("%s is %q, want %q", k, got.Config[k], want)
			}
		}
		if got.Pool != "k8s" || !strings.Contains(got.Notes, "drover-cluster: team-a/production") {
			t.Errorf("pool %q, notes %q", got.Pool, got.Notes)
		}
		if booted.UserData != nativetest.UserData || booted.MetaData != `{"instance-id":"`+uuid+`","local-hostname":"vm-1"}` || booted.UUID != uuid {
			t.Errorf("booted with %+v", booted)
		}
		at := vm.Status.AtProvider
		if at.ProviderID != "proxmox://"+uuid || at.Place != "cluster lab" || at.VMID != 100 || at.Node != "pve1" {
			t.Errorf("observed %+v", at)
		}
		// The address of the card, and none of the bridges in the guest.
		if len(at.Addresses) != 1 || at.Addresses[0].Address != "10.0.0.7" {
			t.Errorf("addresses %v", at.Addresses)
		}
	})
}

// TestAVMOfAnotherInstallationIsNotListed: a tag has fewer characters than an installation, so that two have one tag.
func TestAVMOfAnotherInstallationIsNotListed(t *testing.T) {
	l := newLab(fakeproxmox.Options{})
	c := cloudOf(l)
	nativetest.Until(t, c, newVM("vm-1", map[string]string{"drover-installation": "team/1"}), func(vm *v1alpha1.VirtualMachine) bool {
		return vm.Status.AtProvider.ProviderID != ""
	}, func(*v1alpha1.VirtualMachine) {
		a, err := c.Provider.Open(c.Config, l.credentials())
		if err != nil {
			t.Fatal(err)
		}
		for installation, want := range map[string]int{"team/1": 1, "team_1": 0} {
			if vms, complete, err := a.List(context.Background(), installation); len(vms) != want || !complete || err != nil {
				t.Errorf("%s has %+v, complete %t, error %v", installation, vms, complete, err)
			}
		}
	})
}

func TestErrorsNameTheirCause(t *testing.T) {
	cases := map[string]struct {
		lab    func(*lab)
		change func(*v1alpha1.VirtualMachineParameters)
		want   []string
	}{
		"ATemplateThatDoesNotExist": {nil, func(p *v1alpha1.VirtualMachineParameters) { p.Template = ptr.To("x") }, []string{"InvalidRequest: forProvider.template", `"x"`}},
		"ATemplateThatIsAVM":        {func(l *lab) { l.Occupy(100, "x", "pve1") }, func(p *v1alpha1.VirtualMachineParameters) { p.Template = ptr.To("100") }, []string{"InvalidRequest: forProvider.template", "no template"}},
		"ANodeThatDoesNotExist":     {nil, func(p *v1alpha1.VirtualMachineParameters) { p.Node = ptr.To("pve9") }, []string{"InvalidRequest: forProvider.node", `"pve9"`}},
		"ANodeThatIsOffline":        {func(l *lab) { l.SetOnline("pve2", false) }, func(p *v1alpha1.VirtualMachineParameters) { p.Node = ptr.To("pve2") }, []string{"CapacityExhausted: forProvider.node"}},
		"AStorageThatDoesNotExist":  {nil, func(p *v1alpha1.VirtualMachineParameters) { p.Storage = ptr.To("x") }, []string{"InvalidRequest: forProvider.storage"}},
		"AStorageOfAnotherNode":     {func(l *lab) { l.AddStorage("nvme", []string{"images"}, "pve2") }, func(p *v1alpha1.VirtualMachineParameters) { p.Node, p.Storage = ptr.To("pve1"), ptr.To("nvme") }, []string{"InvalidRequest: forProvider.storage", "not available on node pve1"}},
		"AStorageOfADisk":           {nil, func(p *v1alpha1.VirtualMachineParameters) { p.Disks[0].Storage = "local" }, []string{"InvalidRequest: forProvider.disks[0].storage"}},
		"ADiskThatShrinks":          {nil, func(p *v1alpha1.VirtualMachineParameters) { p.DiskSizeGiB = ptr.To(int64(2)) }, []string{"InvalidRequest: forProvider.diskSizeGiB: invalid value 2", "must be at least 4"}},
		"APoolThatDoesNotExist":     {nil, func(p *v1alpha1.VirtualMachineParameters) { p.Pool = ptr.To("x") }, []string{"InvalidRequest: cannot clone template", "pool 'x' does not exist"}},
		"ABridgeThatDoesNotExist":   {nil, func(p *v1alpha1.VirtualMachineParameters) { p.Networks[0].Bridge = "vmbr9" }, []string{"InvalidRequest: the task qmstart failed", "bridge 'vmbr9' does not exist"}},
		"AnMTUOfAnotherModel": {nil, func(p *v1alpha1.VirtualMachineParameters) {
			p.Networks[0].Model, p.Networks[0].MTU = "e1000", ptr.To(int32(9000))
		}, []string{"InvalidRequest: forProvider.networks[0].mtu"}},
		"AStorageThatIsFull": {func(l *lab) {
			fail(l, "qmclone", "lvcreate 'pve/vm-100-disk-0' error:   Insufficient free space: 10240 extents needed, but only 12 available")
		}, nil, []string{"CapacityExhausted: the task qmclone failed"}},
		"AQuotaOfAStorage":      {func(l *lab) { fail(l, "qmclone", "rbd error: (122) Disk quota exceeded") }, nil, []string{"QuotaExceeded: the task qmclone failed"}},
		"MemoryOfTheNode":       {func(l *lab) { fail(l, "qmstart", "start failed: unable to allocate: Cannot allocate memory") }, nil, []string{"CapacityExhausted: the task qmstart failed"}},
		"ATokenThatMayOnlyRead": {func(l *lab) { l.SetToken(tokenID, fakeproxmox.Token{Secret: l.secret, ReadOnly: true}) }, nil, []string{"PermissionDenied: cannot clone template", "Permission check failed (/vms/9000, VM.Clone)"}},
		"ALockThatIsHeld": {func(l *lab) {
			l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/qemu/{id}/clone", Status: 500, Message: "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout"})
		}, nil, []string{"Transient: cannot clone template", "got timeout"}},
		"ANodeThatCannotBeReached": {func(l *lab) {
			l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/qemu/{id}/config", Status: 595, Message: "No route to host"})
		}, nil, []string{"Transient: cannot configure the VM", "No route to host (status 595)"}},
		"ANodeThatDoesNotAnswerInTime": {func(l *lab) {
			l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/storage/{storage}/upload", Status: 596, Message: "Connection timed out"})
		}, nil, []string{"Transient: cannot upload the image", "(status 596)"}},
		"AProxyThatIsOverloaded": {func(l *lab) {
			l.Break(fakeproxmox.Fault{Call: "PUT /nodes/{node}/qemu/{id}/resize", Status: 503, Message: "Service Unavailable"})
		}, nil, []string{"Throttled: cannot resize the disk scsi0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakeproxmox.Options{})
			if tc.lab != nil {
				tc.lab(l)
			}
			vm := newVM("vm-1", nil)
			if tc.change != nil {
				tc.change(&vm.Spec.ForProvider)
			}
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				text := vm.GetCondition(xpv2.TypeSynced).Message
				return !slices.ContainsFunc(tc.want, func(part string) bool { return !strings.Contains(text, part) })
			}, nil)
		})
	}
}

func fail(l *lab, kind, text string) {
	l.FailTasks(func(k, _, vm string) string {
		if k == kind && vm == "vm-1" {
			return text
		}
		return ""
	})
}

func TestAnotherVMIDIsChosenIfItIsTaken(t *testing.T) {
	l := newLab(fakeproxmox.Options{})
	var once sync.Once
	// Another VM takes the VMID between nextid and the clone.
	l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/qemu/{id}/clone", Match: func(string, []byte) bool {
		once.Do(func() { l.Occupy(100, "of-another", "pve1") })
		return false
	}})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" },
		func(vm *v1alpha1.VirtualMachine) {
			if id := vm.Status.AtProvider.VMID; id != 101 {
				t.Errorf("the VMID is %d, want 101", id)
			}
			if calls, _ := l.Calls(); calls["POST /nodes/{node}/qemu/{id}/clone"] != 2 {
				t.Errorf("calls %v, want one clone that is refused", calls)
			}
			if l.id("of-another") != 100 {
				t.Error("the other VM was changed")
			}
		})
}

// TestAnotherVMWithTheVMIDIsNotChanged deletes the VM and gives its VMID to another VM, as a cluster does:
// it assigns the lowest free VMID to the next VM.
func TestAnotherVMWithTheVMIDIsNotChanged(t *testing.T) {
	cases := map[string]fakeproxmox.Token{
		"ThatTheTokenReads":        {Pools: []string{"k8s"}, Audit: true},
		"ThatTheTokenMayNotReadAt": {Pools: []string{"k8s"}},
	}
	for name, token := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakeproxmox.Options{})
			token.Secret = l.credentials().Secret
			l.SetToken(tokenID, token)
			replaced := false
			nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
				if vm.Status.AtProvider.ProviderID != "" && !replaced {
					replaced = true
					l.Lose(100)
					l.Occupy(100, "of-another", "pve1")
				}
				if !token.Audit {
					// The provider cannot know which VM this is.
					return replaced && strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "PermissionDenied: ")
				}
				return replaced && vm.GetCondition(xpv2.TypeReady).Reason == "Missing"
			}, nil)
			if l.id("of-another") != 100 {
				t.Error("the other VM was deleted")
			}
		})
	}
}

// TestTheVMIDOfAFailedCloneIsAbandoned gives the VMID of a failed clone to a VM that the token may not read.
func TestTheVMIDOfAFailedCloneIsAbandoned(t *testing.T) {
	cases := map[string]func(*lab){
		"IfTheCloneWasRefused": func(l *lab) {
			l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/qemu/{id}/clone", Times: 1, Status: 500, Message: "storage 'ssd' is not available on node 'pve2'"})
		},
		"IfItsTaskFailed": func(l *lab) { fail(l, "qmclone", "unable to create image: Disk quota exceeded") },
	}
	for name, breakClone := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakeproxmox.Options{})
			l.SetToken(tokenID, fakeproxmox.Token{Secret: l.credentials().Secret, Pools: []string{"k8s"}})
			breakClone(l)
			occupied := false
			nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
				if c := vm.GetCondition(xpv2.TypeSynced); !occupied && c.Status == "False" {
					occupied = true
					l.FailTasks(nil)
					l.Occupy(100, "of-another", "pve1")
				}
				return vm.Status.AtProvider.ProviderID != ""
			}, func(vm *v1alpha1.VirtualMachine) {
				if id := vm.Status.AtProvider.VMID; !occupied || id != 101 {
					t.Errorf("the VMID is %d, want 101", id)
				}
			})
			if l.id("of-another") != 100 {
				t.Error("the other VM was deleted")
			}
		})
	}
}

func TestAVMIsFoundOnItsNode(t *testing.T) {
	l := newLab(fakeproxmox.Options{StatusEvery: 10 * time.Second})
	moved := false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.ProviderID != "" && !moved {
			moved = true
			l.Migrate(100, "pve2")
			l.Set(100, "tags", "of-a-user") // The VM is found by the UUID in its SMBIOS.
		}
		return moved && vm.Status.AtProvider.Node == "pve2" && vm.GetCondition(xpv2.TypeReady).Status == "True"
	}, nil)
}
