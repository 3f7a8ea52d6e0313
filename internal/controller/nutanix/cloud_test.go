package nutanix

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	"github.com/drover-dev/drover/test/fakes"
	fakenutanix "github.com/drover-dev/drover/test/fakes/nutanix"
)

const username = "drover"

// A lab is a fake Prism Central with one user.
type lab struct {
	*fakenutanix.Prism
	mu       sync.Mutex
	password string
	n        int
}

func newLab(o fakenutanix.Options) *lab {
	l := &lab{Prism: fakenutanix.New(o)}
	l.rotate()
	return l
}

func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.password = fmt.Sprintf("5ec4e7-%d", l.n)
	l.SetUser(username, fakenutanix.User{Password: l.password})
}

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	return credentials{Username: username, Password: l.password}
}

// each calls do for the VMs with a name.
func (l *lab) each(name string, do func(id string)) {
	for _, vm := range l.VMs() {
		if vm.Name == name {
			do(vm.UUID)
		}
	}
}

func newVM(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.Cluster, p.Image, p.Project = ptr.To(name), ptr.To("east"), ptr.To("ubuntu-24.04"), ptr.To("k8s")
	p.VCPUSockets, p.VCPUsPerSocket, p.MemoryMiB, p.SystemDiskSizeGiB = 2, 2, ptr.To(int64(8192)), ptr.To(int64(40))
	p.Subnets, p.Categories = []string{"workers", "overlay"}, []v1alpha1.Category{{Key: "AppType", Value: "Kubernetes"}}
	p.DataDisks = []v1alpha1.Disk{{SizeGiB: 100, StorageContainer: ptr.To("default"), BusType: "SCSI"}}
	p.BootType, p.Attributes = v1alpha1.BootUEFI, attributes
	return vm
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Server = "https://prism.example.org"
	return nativetest.Cloud[*v1alpha1.VirtualMachine, credentials]{
		Provider:    provider(fakes.InMemory(l)),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      pc,
		Credentials: l.credentials,
		Rotate:      l.rotate,
		Secrets:     func() []string { return []string{l.credentials().Password} },
		VM:          newVM,
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.Subnets = []string{"workers", "guests"}
			return "subnets[1]"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, vm := range l.VMs() {
				out = append(out, nativetest.Existing{Name: vm.Name, UserData: vm.UserData})
			}
			return out
		},
		Leftovers: func() []string { return nil },
		Lose:      func(name string) { l.each(name, l.Lose) },
		Stop:      func(name string) { l.each(name, l.PowerOff) },
		Reboots: func(name string) (out []string) {
			l.each(name, func(id string) { out = l.Reboots(id) })
			return out
		},
		Fake: l, CreateCall: fakenutanix.CreateCall,
		MostCalls: 20, MostDeletionCalls: 12, CreationTakes: 10 * time.Minute,
	}
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		return cloudOf(newLab(fakenutanix.Options{
			QueuedFor: time.Second, Step: 3 * time.Second, CreateTakes: 6 * time.Second, ReadableAfter: 3 * time.Second, ListedAfter: 10 * time.Second,
			RateLimit: 60, Refill: 50 * time.Millisecond,
		}))
	})
}

// TestARepeatedCreationHasTheSameRequestID lets the task of a creation wait longer than the time after which a creation
// is repeated: only the request ID prevents a second VM.
func TestARepeatedCreationHasTheSameRequestID(t *testing.T) {
	l := newLab(fakenutanix.Options{QueuedFor: 5 * time.Minute})
	l.Break(fakenutanix.Fault{Call: fakenutanix.CreateCall, Times: 1, Lost: true})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" },
		func(*v1alpha1.VirtualMachine) {
			if calls, _ := l.Calls(); calls[fakenutanix.CreateCall] != 2 || len(l.VMs()) != 1 {
				t.Errorf("%d VMs after %d creations, want one VM after 2", len(l.VMs()), calls[fakenutanix.CreateCall])
			}
		})
}

func TestACreationThatFailedIsRepeatedWithAnotherRequestID(t *testing.T) {
	l := newLab(fakenutanix.Options{})
	var once sync.Once
	l.FailTasks(func(operation, _, _ string) (out *fakenutanix.Message) {
		if operation == "VmCreate" {
			once.Do(func() {
				out = &fakenutanix.Message{Code: "VMM-10000", Group: "INTERNAL_ERROR", Text: "Failed to perform the operation due to an internal error."}
			})
		}
		return out
	})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" },
		func(*v1alpha1.VirtualMachine) {
			if len(l.VMs()) != 1 {
				t.Errorf("%d VMs, want one", len(l.VMs()))
			}
		})
}

func TestAVMHasThePropertiesOfItsClass(t *testing.T) {
	var booted fakenutanix.Booted
	l := newLab(fakenutanix.Options{Boot: func(b fakenutanix.Booted) string { booted = b; return "10.0.0.7" }})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", map[string]string{"drover-installation": "1d", "drover-cluster": "team-a/production"}), func(vm *v1alpha1.VirtualMachine) bool {
		return len(vm.Status.AtProvider.Addresses) > 0
	}, func(vm *v1alpha1.VirtualMachine) {
		vms := l.VMs()
		if len(vms) != 1 {
			t.Fatalf("VMs %+v", vms)
		}
		got := vms[0]
		for path, want := range map[string]string{
			"name": "vm-1", "cluster.extId": fakenutanix.ClusterEast, "project.extId": fakenutanix.ProjectK8s, "numSockets": "2", "numCoresPerSocket": "2",
			"memorySizeBytes": "8589934592", "description": "drover-vm: " + string(vm.UID) + "\ndrover-cluster: team-a/production\ndrover-installation: 1d",
			"disks.0.diskAddress.busType": "SCSI", "disks.0.diskAddress.index": "0", "disks.0.backingInfo.diskSizeBytes": "42949672960",
			"disks.0.backingInfo.dataSource.reference.imageExtId": fakenutanix.ImageUbuntu, "disks.0.backingInfo.storageContainer": "<nil>",
			"disks.1.diskAddress.index": "1", "disks.1.backingInfo.diskSizeBytes": "107374182400", "disks.1.backingInfo.storageContainer.extId": fakenutanix.ContainerEast,
			"nics.0.networkInfo.subnet.extId": fakenutanix.SubnetEast, "nics.1.networkInfo.subnet.extId": fakenutanix.SubnetOverlay,
			"categories.0.extId": fakenutanix.Category, "bootConfig.$objectType": "vmm.v4.ahv.config.UefiBoot", "bootConfig.isSecureBootEnabled": "false", "machineType": "<nil>",
		} {
			if v := fmt.Sprint(at(got.Spec, path)); v != want {
				t.Errorf("%s is %q, want %q", path, v, want)
			}
		}
		if booted.UserData != nativetest.UserData || booted.MetaData != `{"hostname":"vm-1","name":"vm-1","uuid":"`+string(vm.UID)+`"}` {
			t.Errorf("booted with %+v", booted)
		}
		at := vm.Status.AtProvider
		if at.ProviderID != "nutanix://"+got.UUID || at.Place != "Prism Central "+fakenutanix.PrismCentral || at.UUID != got.UUID || at.Cluster != fakenutanix.ClusterEast {
			t.Errorf("observed %+v", at)
		}
		if len(at.Addresses) != 1 || at.Addresses[0].Address != "10.0.0.7" || len(at.LearnedAddresses) > 0 || len(at.MACAddresses) == 0 {
			t.Errorf("addresses %v, learned %v, of cards %v", at.Addresses, at.LearnedAddresses, at.MACAddresses)
		}
	})
}

// at returns the value at a path of an object.
func at(v any, path string) any {
	for _, key := range strings.Split(path, ".") {
		switch o := v.(type) {
		case map[string]any:
			v = o[key]
		case []any:
			v = o[key[0]-'0']
		default:
			return nil
		}
	}
	return v
}

func TestTheSystemDiskGrowsIfTheCreationSkipsItsSize(t *testing.T) {
	l := newLab(fakenutanix.Options{SkipsSizes: true})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" },
		func(*v1alpha1.VirtualMachine) {
			spec := l.VMs()[0].Spec
			if size, second := fmt.Sprint(at(spec, "disks.0.backingInfo.diskSizeBytes")), fmt.Sprint(at(spec, "disks.1.backingInfo.diskSizeBytes")); size != "42949672960" || second != "107374182400" {
				t.Errorf("the disks have %s and %s bytes", size, second)
			}
		})
}

func TestAddressesThatNutanixLearnedAreNotAssigned(t *testing.T) {
	l := newLab(fakenutanix.Options{Unmanaged: true})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		return len(vm.Status.AtProvider.LearnedAddresses) > 0
	}, func(vm *v1alpha1.VirtualMachine) {
		if a := vm.Status.AtProvider; len(a.Addresses) > 0 || len(a.LearnedAddresses) != 1 {
			t.Errorf("addresses %v, learned %v", a.Addresses, a.LearnedAddresses)
		}
	})
}

func TestAFailureDomainHasItsClusterAndSubnets(t *testing.T) {
	cases := map[string]struct {
		domain          string
		domains         []v1alpha1.FailureDomain
		cluster, subnet string
	}{
		"ACluster":           {"west", nil, fakenutanix.ClusterWest, fakenutanix.SubnetWest},
		"AClusterByUUID":     {fakenutanix.ClusterWest, nil, fakenutanix.ClusterWest, fakenutanix.SubnetWest},
		"AClusterAndSubnets": {"b", []v1alpha1.FailureDomain{{Name: "b", Cluster: ptr.To("west"), Subnets: []string{"overlay"}}}, fakenutanix.ClusterWest, fakenutanix.SubnetOverlay},
		"ItsNameIsACluster":  {"west", []v1alpha1.FailureDomain{{Name: "west", Subnets: []string{"overlay"}}}, fakenutanix.ClusterWest, fakenutanix.SubnetOverlay},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, vm := newLab(fakenutanix.Options{}), newVM("vm-1", nil)
			p := &vm.Spec.ForProvider
			p.FailureDomain, p.FailureDomains, p.DataDisks = &tc.domain, tc.domains, nil
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" },
				func(*v1alpha1.VirtualMachine) {
					spec := l.VMs()[0].Spec
					if c, s := at(spec, "cluster.extId"), at(spec, "nics.0.networkInfo.subnet.extId"); c != tc.cluster || s != tc.subnet {
						t.Errorf("cluster %v, subnet %v", c, s)
					}
				})
		})
	}
}

func TestSecureBootHasItsMachineType(t *testing.T) {
	l, vm := newLab(fakenutanix.Options{}), newVM("vm-1", nil)
	vm.Spec.ForProvider.BootType = v1alpha1.BootSecure
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" },
		func(*v1alpha1.VirtualMachine) {
			if spec := l.VMs()[0].Spec; at(spec, "machineType") != "Q35" || at(spec, "bootConfig.isSecureBootEnabled") != true {
				t.Errorf("spec %v", spec)
			}
		})
}

func TestErrorsNameTheirCause(t *testing.T) {
	type params = v1alpha1.VirtualMachineParameters
	cases := map[string]struct {
		lab    func(*lab)
		change func(*params)
		want   []string
	}{
		"AClusterThatDoesNotExist":  {nil, func(p *params) { p.Cluster = ptr.To("x") }, []string{"InvalidRequest: forProvider.cluster", `"x"`, "no such cluster"}},
		"PrismCentralIsNoCluster":   {nil, func(p *params) { p.Cluster = ptr.To("Unnamed") }, []string{"InvalidRequest: forProvider.cluster", "no cluster for VMs"}},
		"AFailureDomain":            {nil, func(p *params) { p.FailureDomain = ptr.To("zone-a") }, []string{"InvalidRequest: forProvider.failureDomain", `"zone-a"`}},
		"AnImageThatDoesNotExist":   {nil, func(p *params) { p.Image = ptr.To("x's") }, []string{"InvalidRequest: forProvider.image", `"x's"`}},
		"AnImageUUID":               {nil, func(p *params) { p.Image = ptr.To(fakenutanix.ClusterEast) }, []string{"InvalidRequest: forProvider.image", fakenutanix.ClusterEast}},
		"ANameOfTwoImages":          {func(l *lab) { l.AddImage("1a000000-0000-4000-8000-000000000002", "ubuntu-24.04") }, nil, []string{"InvalidRequest: forProvider.image", "2 of this name"}},
		"ADiskSmallerThanTheImage":  {nil, func(p *params) { p.SystemDiskSizeGiB = ptr.To(int64(2)) }, []string{"InvalidRequest: forProvider.systemDiskSizeGiB: invalid value 2", "at least 4"}},
		"ASubnetOfAnotherCluster":   {nil, func(p *params) { p.Subnets = []string{fakenutanix.SubnetWest} }, []string{"InvalidRequest: forProvider.subnets[0]", "does not have this subnet"}},
		"AStorageContainer":         {nil, func(p *params) { p.DataDisks[0].StorageContainer = ptr.To("x") }, []string{"InvalidRequest: forProvider.dataDisks[0].storageContainer"}},
		"ACategoryThatDoesNotExist": {nil, func(p *params) { p.Categories[0].Value = "x" }, []string{"InvalidRequest: forProvider.categories[0]", "AppType:x"}},
		"AProjectThatDoesNotExist":  {nil, func(p *params) { p.Project = ptr.To("x") }, []string{"InvalidRequest: forProvider.project", `"x"`}},
		"AProjectUUID":              {nil, func(p *params) { p.Project = ptr.To("b0000000-0000-4000-8000-0000000000ff") }, []string{"InvalidRequest: the task VmCreate failed", "key 'project'", "VMM-30102"}},
		"AnAttributeOfTwoLines":     {nil, func(p *params) { p.Attributes = map[string]string{"a": "b\ndrover-vm: c"} }, []string{"InvalidRequest: forProvider.attributes", "one line"}},
		"AttributesThatAreTooLong":  {nil, func(p *params) { p.Attributes = longAttributes() }, []string{"InvalidRequest: forProvider.attributes", "at most 1000"}},
		"AClusterWithoutResources":  {failing("VmPowerOn", "VMM-30128", "INSUFFICIENT_RESOURCES_ERROR", "Failed to perform the operation 'VmPowerOn' on the VM with UUID 'u', as no host has enough resources."), nil, []string{"CapacityExhausted: the task VmPowerOn failed", "no host has enough resources", "VMM-30128"}},
		"AStoragePoolThatIsFull":    {failing("VmCreate", "VMM-30131", "RESOURCE_SHORTAGE", "The storage pool is above its threshold."), nil, []string{"CapacityExhausted: the task VmCreate failed"}},
		"AQuotaOfTheProject":        {failing("VmCreate", "VMM-30500", "PROJECT_QUOTA_EXCEEDED", "The quota of the project is exceeded."), nil, []string{"QuotaExceeded: the task VmCreate failed"}},
		"AUserThatMayOnlyRead":      {func(l *lab) { l.SetUser(username, fakenutanix.User{Password: l.password, ReadOnly: true}) }, nil, []string{"PermissionDenied: cannot create the VM", "ACCESS_DENIED"}},
		"ASchemaThatIsViolated": {func(l *lab) {
			l.Break(fakenutanix.Fault{Call: fakenutanix.CreateCall, Status: 400, Code: "VMM-30102 VM_INVALID_ARGUMENT", Message: "x"})
		}, nil, []string{"InvalidRequest: cannot create the VM"}},
		"AnInternalErrorWithStatus400": {func(l *lab) {
			l.Break(fakenutanix.Fault{Call: fakenutanix.CreateCall, Status: 400, Code: "VMM-10000 INTERNAL_ERROR", Message: "Failed to perform the operation due to an internal error."})
		}, nil, []string{"Transient: cannot create the VM", "VMM-10000"}},
		"AProxyThatFails": {func(l *lab) {
			l.Break(fakenutanix.Fault{Call: fakenutanix.CreateCall, Status: http.StatusBadGateway, Message: "Bad Gateway"})
		}, nil, []string{"Transient: cannot create the VM", "status 502"}},
		"AVMThatOtherServicesDoNotKnowYet": {func(l *lab) {
			l.Break(fakenutanix.Fault{Call: "POST /api/vmm/v4.1/ahv/config/vms/{id}/$actions/power-on", Status: 404, Code: "VMM-30100 VM_NOT_FOUND", Message: "Failed to perform the operation on the VM with UUID 'u', because it is not found."})
		}, nil, []string{"Transient: cannot power on the VM", "VM_NOT_FOUND"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakenutanix.Options{})
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

func longAttributes() map[string]string {
	out := map[string]string{}
	for i := range 5 {
		out[fmt.Sprintf("a%d", i)] = strings.Repeat("x", 250)
	}
	return out
}

func failing(operation, code, group, text string) func(*lab) {
	return func(l *lab) {
		l.FailTasks(func(op, _, _ string) *fakenutanix.Message {
			if op != operation {
				return nil
			}
			return &fakenutanix.Message{Code: code, Group: group, Text: text}
		})
	}
}

// TestAVMOfAClusterThatIsUnregisteredIsNotLost unregisters the cluster of a VM: Prism Central forgets the VM.
func TestAVMOfAClusterThatIsUnregisteredIsNotLost(t *testing.T) {
	l := newLab(fakenutanix.Options{})
	done := false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.ProviderID != "" && !done {
			done = true
			l.Unregister(fakenutanix.ClusterEast)
		}
		return done && strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "is not registered with Prism Central")
	}, func(vm *v1alpha1.VirtualMachine) {
		if c := vm.GetCondition(xpv2.TypeReady); c.Status != "True" {
			t.Errorf("the VM is %+v, want Ready as before", c)
		}
	})
}

// TestARunningVMIsFoundWithoutItsDescription changes the description of a VM, as a user does it.
func TestARunningVMIsFoundWithoutItsDescription(t *testing.T) {
	l := newLab(fakenutanix.Options{})
	described := time.Time{}
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.ProviderID != "" && described.IsZero() {
			described = time.Now()
			l.each("vm-1", func(id string) { l.Describe(id, "of a user") })
		}
		return !described.IsZero() && time.Since(described) > 5*time.Minute
	}, func(vm *v1alpha1.VirtualMachine) {
		if c := vm.GetCondition(xpv2.TypeReady); c.Status != "True" || len(l.VMs()) != 1 {
			t.Errorf("the VM is %+v, and %d VMs exist", c, len(l.VMs()))
		}
	})
}

// TestAListHasAllPages lists more VMs than a page has.
func TestAListHasAllPages(t *testing.T) {
	l := newLab(fakenutanix.Options{})
	for i := range 250 {
		l.Create(fmt.Sprintf("vm-%d", i), "", fmt.Sprintf("drover-vm: %d\ndrover-installation: 1d", i))
	}
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Server = "https://prism.example.org"
	opened, err := open(fakes.InMemory(l), time.Now)(pc, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vms, complete, err := opened.List(t.Context(), "1d")
	if err != nil || !complete || len(vms) != 250 {
		t.Errorf("listed %d VMs, complete %t, %v", len(vms), complete, err)
	}
	if calls, n := l.Calls(); n != 3 {
		t.Errorf("calls %v, want 3", calls)
	}
}
