package vcd

import (
	"encoding/base64"
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

	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	"github.com/drover-dev/drover/test/fakes"
	fakevcd "github.com/drover-dev/drover/test/fakes/vcd"
)

const organization, username = "acme", "drover"

// A lab is a fake Cloud Director with one organization and one user.
type lab struct {
	*fakevcd.Director
	// tokens means that the user has an API token instead of a password.
	tokens bool

	mu   sync.Mutex
	user fakevcd.User
	n    int
}

func newLab(o fakevcd.Options) *lab {
	l := &lab{Director: fakevcd.New(o)}
	l.AddOrganization(organization)
	l.rotate()
	return l
}

func newLabWithTokens(o fakevcd.Options) *lab {
	l := &lab{Director: fakevcd.New(o), tokens: true}
	l.AddOrganization(organization)
	l.rotate()
	return l
}

func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.user = fakevcd.User{Password: fmt.Sprintf("5ec4e7-%d", l.n)}
	if l.tokens {
		l.user = fakevcd.User{APIToken: fmt.Sprintf("t0ken-%d", l.n)}
	}
	l.SetUser(organization, username, l.user)
}

// change changes the user, without other credentials.
func (l *lab) change(change func(*fakevcd.User)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.user)
	l.SetUser(organization, username, l.user)
}

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tokens {
		return credentials{APIToken: l.user.APIToken}
	}
	return credentials{Username: username, Password: l.user.Password}
}

// each calls do for the VMs with a name.
func (l *lab) each(name string, do func(id string)) {
	for _, vm := range l.VMs() {
		if vm.Name == name {
			do(vm.ID)
		}
	}
}

// reboots returns the reboots of the VM with a name.
func (l *lab) reboots(name string) (out []string) {
	for _, vm := range l.VMs() {
		if vm.Name == name {
			out = vm.Reboots
		}
	}
	return out
}

func newVM(name string, metadata map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.VDC, p.Catalog, p.Template = ptr.To(name), ptr.To("east"), ptr.To(fakevcd.Catalog), ptr.To(fakevcd.Template)
	p.CPUs, p.CoresPerSocket, p.MemoryMiB, p.SystemDiskSizeGiB = ptr.To(int32(4)), ptr.To(int32(2)), ptr.To(int64(8192)), ptr.To(int64(40))
	p.PlacementPolicy, p.StorageProfile = ptr.To("gpu"), ptr.To("silver")
	p.Networks = []v1alpha1.Network{
		{Name: "workers", IPAllocationMode: v1alpha1.IPAllocationPool, SecondaryIPAllocationMode: ptr.To(v1alpha1.IPAllocationPool), AdapterType: "VMXNET3"},
		{Name: "storage", IPAllocationMode: v1alpha1.IPAllocationDHCP, AdapterType: "VMXNET3"},
	}
	p.DataDisks = []v1alpha1.Disk{{SizeGiB: 100, StorageProfile: ptr.To("gold")}, {SizeGiB: 10}}
	p.Metadata = metadata
	return vm
}

func configuration() *v1alpha1.ClusterProviderConfig {
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Server, pc.Spec.Organization = "https://vcd.example.org", organization
	return pc
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	return nativetest.Cloud[*v1alpha1.VirtualMachine, credentials]{
		Provider:    provider(fakes.InMemory(l)),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      configuration(),
		Credentials: l.credentials,
		Rotate:      l.rotate,
		Secrets:     func() []string { c := l.credentials(); return []string{c.Password, c.APIToken} },
		VM:          newVM,
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.Networks[1].Name = "guests"
			return "networks[1].name"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, vm := range l.VMs() {
				data, _ := base64.StdEncoding.DecodeString(vm.Properties["user-data"])
				out = append(out, nativetest.Existing{Name: vm.Name, UserData: string(data)})
			}
			return out
		},
		Leftovers: l.VApps,
		Lose:      func(name string) { l.each(name, l.Lose) },
		Stop:      func(name string) { l.each(name, l.PowerOff) },
		Reboots:   l.reboots,
		Fake:      l, CreateCall: fakevcd.CreateCall,
		MostCalls: 45, MostDeletionCalls: 16, CreationTakes: 10 * time.Minute,
	}
}

var slow = fakevcd.Options{
	QueuedFor: time.Second, Step: 3 * time.Second, CreateTakes: 20 * time.Second, ListedAfter: 10 * time.Second, SessionLasts: 5 * time.Minute,
	RateLimit: 60, Refill: 50 * time.Millisecond, Operations: 25,
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		return cloudOf(newLab(slow))
	})
}

// TestAnAPITokenBeginsSessions lets several sessions expire.
func TestAnAPITokenBeginsSessions(t *testing.T) {
	l := newLabWithTokens(fakevcd.Options{Step: time.Second, SessionLasts: time.Minute})
	known := time.Time{}
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if isKnown(vm) && known.IsZero() {
			known = time.Now()
		}
		return !known.IsZero() && time.Since(known) > 10*time.Minute
	}, func(vm *v1alpha1.VirtualMachine) {
		calls, _ := l.Calls()
		if c := vm.GetCondition(xpv2.TypeSynced); c.Status != "True" || calls["POST /oauth/tenant/{org}/token"] < 5 {
			t.Errorf("the VM is %+v after %d sessions", c, calls["POST /oauth/tenant/{org}/token"])
		}
	})
}

func isKnown(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" }

func TestAVMHasThePropertiesOfItsClass(t *testing.T) {
	l := newLab(fakevcd.Options{})
	metadata := map[string]string{"drover-installation": "1d", "drover-cluster": "team-a/production"}
	nativetest.Until(t, cloudOf(l), newVM("vm-1", metadata), func(vm *v1alpha1.VirtualMachine) bool {
		return len(vm.Status.AtProvider.GuestAddresses) > 0
	}, func(vm *v1alpha1.VirtualMachine) {
		vms := l.VMs()
		if len(vms) != 1 {
			t.Fatalf("VMs %+v", vms)
		}
		got := vms[0]
		for what, is := range map[string][2]any{
			"name": {got.Name, "vm-1"}, "description": {got.Description, "Drover VM " + string(vm.UID) + " of installation 1d"},
			"VDC": {got.VDC, "east"}, "storage profile": {got.StorageProfile, "silver"}, "placement": {got.Placement, "gpu"}, "sizing": {got.Sizing, ""},
			"CPUs": {got.CPUs, 4}, "cores": {got.Cores, 2}, "memory": {got.MemoryMiB, int64(8192)}, "host name": {got.ComputerName, "vm-1"},
			"disks": {fmt.Sprint(got.DisksMiB), "[40960 102400 10240]"}, "profiles": {fmt.Sprint(got.DiskProfiles), "[silver gold silver]"},
			"networks": {fmt.Sprint(got.Networks), "[workers POOL storage DHCP]"}, "customization": {got.Customized, true},
			"metadata": {fmt.Sprint(got.Metadata), fmt.Sprint(metadata)}, "instance-id": {got.Properties["instance-id"], "urn:vcloud:vm:" + got.ID}, "hostname": {got.Properties["hostname"], "vm-1"},
		} {
			if is[0] != is[1] {
				t.Errorf("%s is %v, want %v", what, is[0], is[1])
			}
		}
		at := vm.Status.AtProvider
		if at.ProviderID != "vmware-cloud-director://urn:vcloud:vm:"+got.ID || !strings.HasPrefix(at.Place, "organization urn:vcloud:org:") || at.ID != "urn:vcloud:vm:"+got.ID || at.VDC == "" || at.VApp == "" {
			t.Errorf("observed %+v", at)
		}
		if len(at.Addresses) != 2 || !strings.Contains(at.Addresses[1].Address, ":") || len(at.GuestAddresses) != 1 || len(at.MACAddresses) != 2 {
			t.Errorf("addresses %v, of the guest %v, of cards %v", at.Addresses, at.GuestAddresses, at.MACAddresses)
		}
	})
}

func TestASizingPolicySetsCPUsAndMemory(t *testing.T) {
	l, vm := newLab(fakevcd.Options{}), newVM("vm-1", nil)
	p := &vm.Spec.ForProvider
	p.CPUs, p.CoresPerSocket, p.MemoryMiB, p.SystemDiskSizeGiB, p.DataDisks, p.SizingPolicy = nil, nil, nil, nil, nil, ptr.To("medium")
	p.Networks = p.Networks[1:]
	nativetest.Until(t, cloudOf(l), vm, isKnown, func(*v1alpha1.VirtualMachine) {
		if got := l.VMs()[0]; got.CPUs != 4 || got.MemoryMiB != 8192 || got.Sizing != "medium" || len(got.DisksMiB) != 1 || got.Customized {
			t.Errorf("VM %+v", got)
		}
	})
}

func TestIgnitionIsAGuestProperty(t *testing.T) {
	p := propertiesOf(v1alpha1.VirtualMachineParameters{}, machine{}, `{"ignition": {}}`)
	var keys []string
	for _, q := range p.Section.Properties {
		keys = append(keys, q.Key)
	}
	if want := "instance-id hostname guestinfo.ignition.config.data guestinfo.ignition.config.data.encoding"; strings.Join(keys, " ") != want {
		t.Errorf("properties %v, want %s", keys, want)
	}
}

func TestAFailureDomainHasItsVDCAndNetworks(t *testing.T) {
	cases := map[string]struct {
		domain                string
		domains               []v1alpha1.FailureDomain
		vdc, network, profile string
	}{
		"AVDC":            {"west", nil, "west", "workers POOL", "silver"},
		"AVDCAndNetworks": {"b", []v1alpha1.FailureDomain{{Name: "b", VDC: ptr.To("west"), StorageProfile: ptr.To("gold"), Networks: []v1alpha1.Network{{Name: "storage", IPAllocationMode: "POOL"}}}}, "west", "storage POOL", "gold"},
		"ItsNameIsAVDC":   {"west", []v1alpha1.FailureDomain{{Name: "west", StorageProfile: ptr.To("gold")}}, "west", "workers POOL", "gold"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, vm := newLab(fakevcd.Options{}), newVM("vm-1", nil)
			vm.Spec.ForProvider.FailureDomain, vm.Spec.ForProvider.FailureDomains = &tc.domain, tc.domains
			nativetest.Until(t, cloudOf(l), vm, isKnown, func(*v1alpha1.VirtualMachine) {
				if got := l.VMs()[0]; got.VDC != tc.vdc || got.Networks[0] != tc.network || got.StorageProfile != tc.profile {
					t.Errorf("VDC %s, network %s, profile %s", got.VDC, got.Networks[0], got.StorageProfile)
				}
			})
		})
	}
}

func failing(operation, code, text string) func(*lab) {
	return func(l *lab) {
		l.FailTasks(func(op, _, _ string) *fakevcd.Message {
			if op != operation {
				return nil
			}
			return &fakevcd.Message{Code: code, Text: text}
		})
	}
}

func breaking(f fakevcd.Fault) func(*lab) { return func(l *lab) { l.Break(f) } }

func TestErrorsNameTheirCause(t *testing.T) {
	type params = v1alpha1.VirtualMachineParameters
	quota := "The requested operation will exceed the VDC's storage quota: storage policy \"gold\" has 12 MB remaining, requested 40,960 MB"
	cases := map[string]struct {
		lab    func(*lab)
		change func(*params)
		want   []string
	}{
		"AVDCThatDoesNotExist":     {nil, func(p *params) { p.VDC = ptr.To("x") }, []string{"InvalidRequest: forProvider.vdc", `"x"`, "no such virtual data center"}},
		"AFailureDomain":           {nil, func(p *params) { p.FailureDomain = ptr.To("zone-a") }, []string{"InvalidRequest: forProvider.failureDomain", `"zone-a"`}},
		"AVDCThatIsDisabled":       {func(l *lab) { l.DisableVDC("east") }, nil, []string{"InvalidRequest: forProvider.vdc", "is disabled"}},
		"ATemplate":                {nil, func(p *params) { p.Template = ptr.To("a;b==c, d") }, []string{"InvalidRequest: forProvider.template", `"a;b==c, d"`, "no such template"}},
		"ACatalog":                 {nil, func(p *params) { p.Catalog = ptr.To("x") }, []string{"InvalidRequest: forProvider.template", `catalog "x"`}},
		"ATemplateWithTwoVMs":      {nil, func(p *params) { p.Template = ptr.To(fakevcd.TwoVMs) }, []string{"InvalidRequest: forProvider.template", "has 2 VMs"}},
		"ATemplateThatIsNotReady":  {nil, func(p *params) { p.Template = ptr.To("uploading") }, []string{"InvalidRequest: forProvider.template", "UNRESOLVED"}},
		"ADiskSmallerThanTemplate": {nil, func(p *params) { p.SystemDiskSizeGiB = ptr.To(int64(2)) }, []string{"InvalidRequest: forProvider.systemDiskSizeGiB: invalid value 2", "at least 4"}},
		"AStorageProfile":          {nil, func(p *params) { p.StorageProfile = ptr.To("x") }, []string{"InvalidRequest: forProvider.storageProfile", "it has gold, silver"}},
		"AStorageProfileOfADisk":   {nil, func(p *params) { p.DataDisks[0].StorageProfile = ptr.To("x") }, []string{"InvalidRequest: forProvider.dataDisks[0].storageProfile"}},
		"ASizingPolicy":            {nil, func(p *params) { p.SizingPolicy = ptr.To("gpu") }, []string{"InvalidRequest: forProvider.sizingPolicy", "it has medium"}},
		"APlacementPolicy":         {nil, func(p *params) { p.PlacementPolicy = ptr.To("x") }, []string{"InvalidRequest: forProvider.placementPolicy", "it has gpu"}},
		"MetadataOfTwoLines":       {nil, func(p *params) { p.Metadata = map[string]string{"a": "b\nc"} }, []string{"InvalidRequest: forProvider.metadata", "one line"}},
		"CoresThatDoNotDivide":     {nil, func(p *params) { p.CoresPerSocket = ptr.To(int32(3)) }, []string{"InvalidRequest: cannot change the hardware", "not a multiple"}},
		"APlacementThatFails":      {failing(fakevcd.OperationCreate, "NO_FEASIBLE_PLACEMENT_SOLUTION", "The operation failed because no suitable resource was found."), nil, []string{"CapacityExhausted: the task vdcInstantiateVmTemplate failed", "no suitable resource"}},
		"AHostWithoutMemory":       {failing(fakevcd.OperationPowerOn, "VC_OPERATION_ERROR", "The available Memory resources in the parent resource pool are insufficient for the operation."), nil, []string{"CapacityExhausted: the task vappDeploy failed", "insufficient"}},
		"AStorageQuota":            {breaking(fakevcd.Fault{Call: fakevcd.CreateCall, Status: 400, Code: "BAD_REQUEST", Message: quota}), nil, []string{"QuotaExceeded: cannot create the VM", "12 MB remaining"}},
		"AnOperationLimit":         {breaking(fakevcd.Fault{Call: fakevcd.CreateCall, Status: 400, Code: "OPERATION_LIMITS_EXCEEDED", Message: "The maximum number of simultaneous operations for user \"drover\" on organization \"acme\" has been reached."}), nil, []string{"Throttled: cannot create the VM", "OPERATION_LIMITS_EXCEEDED"}},
		"ABusyVM":                  {breaking(fakevcd.Fault{Call: fakevcd.PowerOnCall, Status: 400, Code: "BUSY_ENTITY", Message: "The entity Ref: com.vmware.vcloud.entity.vm:1 is busy completing an operation VAPP_UPDATE_VM."}), nil, []string{"Transient: cannot power on the VM", "BUSY_ENTITY"}},
		"AUserThatMayOnlyRead":     {func(l *lab) { l.change(func(u *fakevcd.User) { u.ReadOnly = true }) }, nil, []string{"PermissionDenied: forProvider.vdc", "offers the user no creation of VMs"}},
		"AMissingRight":            {breaking(fakevcd.Fault{Call: fakevcd.PowerOnCall, Status: 403, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "Either you need some or all of the following rights [Base] to perform operations [VAPP_DEPLOY]"}), nil, []string{"PermissionDenied: cannot power on the VM", "following rights"}},
		"AnInternalError":          {breaking(fakevcd.Fault{Call: fakevcd.CreateCall, Status: 500, Code: "INTERNAL_SERVER_ERROR", Message: "Unable to perform this action. Contact your cloud administrator."}), nil, []string{"Transient: cannot create the VM", "status 500"}},
		"AProxyThatFails":          {breaking(fakevcd.Fault{Call: fakevcd.CreateCall, Status: http.StatusBadGateway, Message: "Bad Gateway"}), nil, []string{"Transient: cannot create the VM", "status 502"}},
		"AServiceAccount": {func(l *lab) {
			l.tokens = true
			l.change(func(u *fakevcd.User) { *u = fakevcd.User{APIToken: "t0ken", ServiceAccount: true} })
		}, nil, []string{"PermissionDenied: cannot log in", "credentials: apiToken", "service account"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakevcd.Options{})
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

// TestACreationThatFailedIsRepeated fails the first task: the vApp that stays is deleted before the next creation.
func TestACreationThatFailedIsRepeated(t *testing.T) {
	l := newLab(fakevcd.Options{Step: time.Second})
	var once sync.Once
	l.FailTasks(func(operation, _, _ string) (out *fakevcd.Message) {
		if operation == fakevcd.OperationCreate {
			once.Do(func() {
				out = &fakevcd.Message{Code: "NO_FEASIBLE_PLACEMENT_SOLUTION", Text: "The operation failed because no suitable resource was found."}
			})
		}
		return out
	})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), isKnown, func(*v1alpha1.VirtualMachine) {
		if len(l.VMs()) != 1 || len(l.VApps()) != 0 {
			t.Errorf("VMs %v and empty vApps %v, want one VM", l.VMs(), l.VApps())
		}
	})
}

// TestALostResponseAddsNoDiskTwice loses the response to each change of hardware once.
func TestALostResponseAddsNoDiskTwice(t *testing.T) {
	l := newLab(fakevcd.Options{Step: time.Second})
	l.Break(fakevcd.Fault{Call: "POST /api/vApp/{id}/action/reconfigureVm", Times: 1, Lost: true})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), isKnown, func(*v1alpha1.VirtualMachine) {
		if got := fmt.Sprint(l.VMs()[0].DisksMiB); got != "[40960 102400 10240]" {
			t.Errorf("disks %s", got)
		}
	})
}

// afterStart changes the lab when the VM runs, and returns a condition that is met when the VM is not Synced with a text.
func afterStart(change func(), text string) func(vm *v1alpha1.VirtualMachine) bool {
	done := false
	return func(vm *v1alpha1.VirtualMachine) bool {
		if isKnown(vm) && !done {
			done = true
			change()
		}
		return done && strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, text)
	}
}

func mustBeReady(t *testing.T) func(*v1alpha1.VirtualMachine) {
	return func(vm *v1alpha1.VirtualMachine) {
		if c := vm.GetCondition(xpv2.TypeReady); c.Status != "True" {
			t.Errorf("the VM is %+v, want Ready as before", c)
		}
	}
}

// TestAVMOfAVDCThatTheUserNoLongerSeesIsNotLost hides a VDC: Cloud Director responds as if the VM did not exist.
func TestAVMOfAVDCThatTheUserNoLongerSeesIsNotLost(t *testing.T) {
	l := newLab(fakevcd.Options{})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), afterStart(func() { l.HideVDC("east") }, "does not see the virtual data center"), mustBeReady(t))
}

// TestAVMThatAnotherUserDoesNotSeeIsNotLost replaces the user by one that sees its own VMs only.
func TestAVMThatAnotherUserDoesNotSeeIsNotLost(t *testing.T) {
	l := newLab(fakevcd.Options{SessionLasts: time.Minute})
	c := cloudOf(l)
	nativetest.Until(t, c, newVM("vm-1", nil), afterStart(func() {
		l.RenameUser(organization, username, "former")
		l.change(func(u *fakevcd.User) { u.Own = true })
	}, "nothing can be concluded"), mustBeReady(t))
}

// TestAVMThatAQueryListsIsNotLost refuses to read the VM only.
func TestAVMThatAQueryListsIsNotLost(t *testing.T) {
	l := newLab(fakevcd.Options{})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), afterStart(func() {
		l.Break(fakevcd.Fault{Call: "GET /api/vApp/{id}", Status: 403, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "This operation is denied."})
	}, "a query lists the VM, but the user may not read it"), mustBeReady(t))
}

// TestAProxyProvesNothing lets a proxy respond with 404 and 403.
func TestAProxyProvesNothing(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden} {
		l := newLab(fakevcd.Options{})
		nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), afterStart(func() { l.Break(fakevcd.Fault{Status: status, Message: "Not here"}) }, fmt.Sprintf("status %d", status)), mustBeReady(t))
	}
}

// TestVolumesAreDetachedBeforeTheDeletion deletes a VM with a named disk, which a CSI driver attached.
func TestVolumesAreDetachedBeforeTheDeletion(t *testing.T) {
	m := machine{reference: reference{HREF: "https://x/api/vApp/vm-0b0e7d2c-6a52-4a0b-9b53-000000000001"}, Status: statusPoweredOff}
	m.Spec.Disks = []diskSetting{{ID: "2000"}, {ID: "2016", Disk: &reference{HREF: "https://x/api/disk/1"}}}
	if r := deletionOf(m); !strings.HasSuffix(r.path, "/disk/action/detach") || r.body.(detachment).Disk.HREF != "https://x/api/disk/1" {
		t.Errorf("the first step is %+v", r)
	}
	l := newLab(fakevcd.Options{Step: time.Second})
	c := cloudOf(l)
	attached := false
	nativetest.Until(t, c, newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if isKnown(vm) && !attached {
			attached = true
			l.each("vm-1", l.AttachDisk)
		}
		return attached
	}, nil)
	opened, err := open(fakes.InMemory(l), time.Now)(configuration(), l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vm := newVM("adopted", nil)
	vm.Annotations = map[string]string{"crossplane.io/external-name": l.VMs()[0].ID}
	vm.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for range 40 {
		seen, err := opened.Get(t.Context(), vm, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if seen.State == "" {
			break
		}
		if seen.State != "Deleting" {
			if err := opened.Delete(t.Context(), vm); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	calls, _ := l.Calls()
	if len(l.VMs()) != 0 || calls["POST /api/vApp/{id}/disk/action/detach"] != 1 {
		t.Errorf("VMs %v, calls %v", l.VMs(), calls)
	}
}

// TestAListHasAllPages lists more VMs than a page has, one of them without metadata.
func TestAListHasAllPages(t *testing.T) {
	l := newLab(fakevcd.Options{})
	for i := range 300 {
		metadata := map[string]string{"drover-installation": "1d", "drover-machine": "m"}
		if i == 0 {
			metadata = nil
		}
		l.Create(organization, username, fmt.Sprintf("vm-%d", i), fmt.Sprintf("Drover VM %d of installation 1d", i), metadata)
	}
	l.Create(organization, username, "of-a-user", "Drover VM", nil)
	opened, err := open(fakes.InMemory(l), time.Now)(configuration(), l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vms, complete, err := opened.List(t.Context(), "1d")
	if err != nil || !complete || len(vms) != 300 {
		t.Errorf("listed %d VMs, complete %t, %v", len(vms), complete, err)
	}
	if calls, n := l.Calls(); n != 4 {
		t.Errorf("calls %v, want a login and 3 pages", calls)
	}
}
