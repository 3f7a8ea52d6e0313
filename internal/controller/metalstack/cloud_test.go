package metalstack

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	"github.com/drover-dev/drover/test/fakes"
	fakemetal "github.com/drover-dev/drover/test/fakes/metalstack"
)

// A lab is a fake metal-api with the key of one user.
type lab struct {
	*fakemetal.API
	mu   sync.Mutex
	hmac string
	n    int
	// other credentials than the HMAC key.
	other *credentials
}

func newLab(o fakemetal.Options) *lab {
	l := &lab{API: fakemetal.New(o)}
	l.rotate()
	return l
}

func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.hmac = fmt.Sprintf("5ec4e7-%d", l.n)
	l.SetHMAC("Metal-Edit", l.hmac)
}

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.other != nil {
		return *l.other
	}
	return credentials{HMAC: l.hmac}
}

// each calls do for the machines of the project whose allocation has the name.
func (l *lab) each(name string, do func(id string)) {
	for _, m := range l.Machines() {
		if m.Name == name && m.Project == fakemetal.Project {
			do(m.ID)
		}
	}
}

// reboots returns the reboots of the machine whose allocation has the name.
func (l *lab) reboots(name string) (out []string) {
	for _, m := range l.Machines() {
		if m.Name == name && m.Project == fakemetal.Project {
			out = slices.Repeat([]string{string(machinev1alpha1.RebootHard)}, m.Resets)
		}
	}
	return out
}

func newVM(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.Partition, p.Size, p.Image = ptr.To(name), ptr.To(fakemetal.PartitionEast), ptr.To(fakemetal.SizeMedium), ptr.To(fakemetal.Image)
	p.Networks, p.FilesystemLayout = []string{fakemetal.NetworkInternet, fakemetal.NetworkEast}, ptr.To(fakemetal.FilesystemLayout)
	p.SSHKeys, p.Tags = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== ops"}, attributes
	return vm
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Server, pc.Spec.Project = "https://api.metal.example.org/metal", fakemetal.Project
	return nativetest.Cloud[*v1alpha1.VirtualMachine, credentials]{
		Provider:    provider(fakes.InMemory(l)),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      pc,
		Credentials: l.credentials,
		Rotate:      l.rotate,
		Secrets:     func() []string { return []string{l.credentials().HMAC, l.credentials().Token} },
		VM:          newVM,
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.Networks = []string{fakemetal.NetworkEast, "guests"}
			return "networks[1]"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, m := range l.Machines() {
				if m.Project == fakemetal.Project {
					out = append(out, nativetest.Existing{Name: m.Name, UserData: m.UserData})
				}
			}
			return out
		},
		Leftovers: func() []string {
			var out []string
			for _, n := range []string{fakemetal.NetworkEast, fakemetal.NetworkInternet} {
				if used := l.UsedAddresses(n); used > len(l.Machines()) {
					out = append(out, fmt.Sprintf("%d addresses of %s", used, n))
				}
			}
			return out
		},
		Lose:            func(name string) { l.each(name, l.Free) },
		Stop:            func(name string) { l.each(name, l.PowerOff) },
		Reboots:         l.reboots,
		LacksSoftReboot: true,
		Fake:            l, CreateCall: fakemetal.CreateCall,
		MostCalls: 25, MostDeletionCalls: 6, CreationTakes: 10 * time.Minute,
	}
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		return cloudOf(newLab(fakemetal.Options{InstallTakes: 90 * time.Second, WipeTakes: 4 * time.Minute, RateLimit: 60, Refill: 50 * time.Millisecond}))
	})
}

// isRunning reports whether the VM ran once.
func isRunning(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" }

func TestTheMachineIsAsRequested(t *testing.T) {
	l, vm := newLab(fakemetal.Options{InstallTakes: time.Minute}), newVM("vm-1", map[string]string{"cluster.metal-stack.io/id": "a=b"})
	p := &vm.Spec.ForProvider
	p.PlacementTags, p.DNSServers, p.NTPServers = []string{"pool=a"}, []string{"10.0.0.1"}, []string{"ntp-1", "ntp-2", "ntp-3"}
	nativetest.Until(t, cloudOf(l), vm, isRunning, func(vm *v1alpha1.VirtualMachine) {
		m, at := l.Machines()[0], vm.Status.AtProvider
		for _, c := range []struct{ what, got, want string }{
			{"user data", m.UserData, nativetest.UserData},
			{"hostname", m.Hostname, "vm-1"},
			{"size", m.Size, fakemetal.SizeMedium},
			{"image", m.Image, fakemetal.ImageExact},
			{"tag of the cluster", m.Tag("cluster.metal-stack.io/id"), "a=b"},
			{"tag of the VM", m.Tag("drover-vm"), string(vm.GetUID())},
			{"keys", fmt.Sprint(m.SSHKeys), fmt.Sprint(p.SSHKeys)},
			{"placement", fmt.Sprint(m.Placement), "[pool=a]"},
			{"DNS servers", fmt.Sprint(m.DNS), "[10.0.0.1]"},
			{"NTP servers", fmt.Sprint(m.NTP), "[ntp-1 ntp-2 ntp-3]"},
			{"external name", meta.GetExternalName(vm), m.ID + "/" + m.Allocation},
			{"providerID", at.ProviderID, "metal://" + fakemetal.PartitionEast + "/" + m.ID},
			{"place", at.Place, "project " + fakemetal.Project + ", created 2024-05-06T07:08:09.123456Z"},
			{"image of the status", at.Image + " " + at.ImageExpiresAt.UTC().Format("2006-01-02"), fakemetal.ImageExact + " 2027-08-01"},
			{"addresses", fmt.Sprint(at.Addresses), "[{InternalIP 10.130.0.2} {ExternalIP 212.34.0.2}]"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
			}
		}
	})
}

func TestAFailureDomainHasItsPartitionAndNetworks(t *testing.T) {
	domains := []v1alpha1.FailureDomain{{Name: "b", Partition: ptr.To(fakemetal.PartitionWest), Networks: []string{fakemetal.NetworkWest}}}
	for name, tc := range map[string]struct {
		domain    string
		domains   []v1alpha1.FailureDomain
		partition string
	}{
		"APartition":                {fakemetal.PartitionEast, nil, fakemetal.PartitionEast},
		"ANameOfAFailureDomain":     {"b", domains, fakemetal.PartitionWest},
		"AFailureDomainIsPartition": {fakemetal.PartitionWest, []v1alpha1.FailureDomain{{Name: fakemetal.PartitionWest, Networks: []string{fakemetal.NetworkWest}}}, fakemetal.PartitionWest},
	} {
		t.Run(name, func(t *testing.T) {
			l, vm := newLab(fakemetal.Options{}), newVM("vm-1", nil)
			p := &vm.Spec.ForProvider
			p.Partition, p.FailureDomain, p.FailureDomains = ptr.To("other"), &tc.domain, tc.domains
			nativetest.Until(t, cloudOf(l), vm, isRunning, func(*v1alpha1.VirtualMachine) {
				if got := l.Machines()[0].Partition; got != tc.partition {
					t.Errorf("partition %s, want %s", got, tc.partition)
				}
			})
		})
	}
}

func TestErrorsNameTheirCause(t *testing.T) {
	type params = v1alpha1.VirtualMachineParameters
	refuse := func(status int, message string) func(*lab) {
		return func(l *lab) {
			l.Break(fakemetal.Fault{Call: fakemetal.CreateCall, Status: status, Message: message})
		}
	}
	for name, tc := range map[string]struct {
		lab    func(*lab)
		change func(*params)
		want   []string
	}{
		"APartition":               {nil, func(p *params) { p.Partition = ptr.To("x") }, []string{`InvalidRequest: forProvider.partition: invalid value "x"`}},
		"AFailureDomain":           {nil, func(p *params) { p.FailureDomain = ptr.To("x y") }, []string{`InvalidRequest: forProvider.failureDomain: invalid value "x y"`}},
		"ASize":                    {nil, func(p *params) { p.Size = ptr.To("x") }, []string{`InvalidRequest: forProvider.size: invalid value "x"`}},
		"AnImage":                  {nil, func(p *params) { p.Image = ptr.To("debian-13") }, []string{`InvalidRequest: forProvider.image: invalid value "debian-13"`}},
		"AnImageThatWasRemoved":    {func(l *lab) { l.RemoveImage(fakemetal.ImageExact) }, func(p *params) { p.Image = ptr.To(fakemetal.ImageExact) }, []string{`InvalidRequest: forProvider.image`, "no such image"}},
		"AnImageOfFirewalls":       {nil, func(p *params) { p.Image = ptr.To(fakemetal.ImageOfFirewalls) }, []string{"InvalidRequest: forProvider.image", "must have the feature machine"}},
		"ALayout":                  {nil, func(p *params) { p.FilesystemLayout = ptr.To("x") }, []string{`InvalidRequest: forProvider.filesystemLayout: invalid value "x"`}},
		"NoNetworks":               {nil, func(p *params) { p.Networks = nil }, []string{"InvalidRequest: forProvider.networks: must not be empty"}},
		"NoPrivateNetwork":         {nil, func(p *params) { p.Networks = []string{"internet"} }, []string{"InvalidRequest: forProvider.networks", "one of them must be a private network"}},
		"AnUnderlay":               {nil, func(p *params) { p.Networks = []string{fakemetal.NetworkUnderlay} }, []string{"InvalidRequest: forProvider.networks[0]", "underlay"}},
		"TwoPrivateNetworks":       {nil, func(p *params) { p.Networks = []string{fakemetal.NetworkEast, "nodes-other"} }, []string{"InvalidRequest: forProvider.networks[1]", "one private network only"}},
		"ANetworkOfAnotherProject": {nil, func(p *params) { p.Networks = []string{"nodes-other"} }, []string{"InvalidRequest: forProvider.networks[0]", "does not belong to project"}},
		"ANetworkOfAPartition":     {nil, func(p *params) { p.Networks = []string{fakemetal.NetworkWest} }, []string{"InvalidRequest: forProvider.networks[0]", fakemetal.PartitionWest}},
		"ATagOfTwoLines":           {nil, func(p *params) { p.Tags = map[string]string{"a": "b\nc"} }, []string{"InvalidRequest: forProvider.tags: invalid value of a"}},
		"ATagWithAnEqualsSign":     {nil, func(p *params) { p.Tags = map[string]string{"a=b": "c"} }, []string{`InvalidRequest: forProvider.tags: invalid key "a=b"`}},
		"ADNSServer":               {nil, func(p *params) { p.DNSServers = []string{"10.0.0"} }, []string{`InvalidRequest: forProvider.dnsServers[0]: invalid value "10.0.0"`}},
		"NoMachine": {func(l *lab) {
			for _, id := range l.IDs() {
				l.SetState(id, "RESERVED", "for tests")
			}
		}, nil, []string{"CapacityExhausted: cannot allocate a machine: no machine available (status 422)"}},
		"NoAddress": {func(l *lab) { l.SetAddresses(fakemetal.NetworkEast, 0) }, nil, []string{"CapacityExhausted: cannot allocate a machine", "no ips left (status 500)"}},
		"AQuota":    {func(l *lab) { l.SetQuota(fakemetal.Project, 0) }, nil, []string{"QuotaExceeded: cannot allocate a machine: project quota for machines reached max:0"}},
		"AViewer": {func(l *lab) {
			l.SetHMAC("Metal-View", "view-key")
			l.other = &credentials{HMAC: "view-key", HMACAuthType: "Metal-View"}
		}, nil, []string{"PermissionDenied: cannot allocate a machine: you are not member in one of"}},
		"AnotherSpec": {refuse(http.StatusBadRequest, "network ids cannot be empty"), nil, []string{"InvalidRequest: cannot allocate a machine"}},
		"ARace":       {refuse(http.StatusUnprocessableEntity, `machine "m" already allocated`), nil, []string{"Transient: cannot allocate a machine"}},
		"ADatabase":   {refuse(http.StatusUnprocessableEntity, "cannot find size in database: rethinkdb: Connection was closed"), nil, []string{"Transient: cannot allocate a machine"}},
		"AConflict":   {refuse(http.StatusConflict, "the entity was changed by another user"), nil, []string{"Transient: cannot allocate a machine"}},
		"AProxy": {func(l *lab) {
			l.Break(fakemetal.Fault{Call: fakemetal.CreateCall, Status: 502, Code: "proxy", Message: "x"})
		}, nil, []string{"Transient: cannot allocate a machine: Bad Gateway (status 502)"}},
		"AProxyWithA404":   {func(l *lab) { l.Break(fakemetal.Fault{Status: 404, Code: "proxy", Message: "x"}) }, nil, []string{"Transient: cannot read project", "Not Found (status 404)"}},
		"AThrottlingProxy": {func(l *lab) { l.Throttle(time.Hour) }, nil, []string{"Throttled: "}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakemetal.Options{})
			if tc.lab != nil {
				tc.lab(l)
			}
			c, vm := cloudOf(l), newVM("vm-1", nil)
			if tc.change != nil {
				tc.change(&vm.Spec.ForProvider)
			}
			nativetest.Until(t, c, vm, func(vm *v1alpha1.VirtualMachine) bool {
				text := vm.GetCondition(xpv2.TypeSynced).Message
				return !slices.ContainsFunc(tc.want, func(part string) bool { return !strings.Contains(text, part) })
			}, nil)
			if n := len(l.Machines()); n > 0 {
				t.Errorf("%d machines are allocated, want none", n)
			}
		})
	}
}

// TestAMachineOfAnotherOwnerIsNeverFreed frees the machine of a VM and allocates it for another owner, in the same
// project and in another one.
func TestAMachineOfAnotherOwnerIsNeverFreed(t *testing.T) {
	for name, project := range map[string]string{"InTheProject": fakemetal.Project, "InAnotherProject": fakemetal.OtherProject} {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakemetal.Options{InstallTakes: time.Minute, WipeTakes: time.Minute})
			c, taken := cloudOf(l), ""
			nativetest.Until(t, c, newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
				if isRunning(vm) && taken == "" {
					taken = vm.Status.AtProvider.MachineID
					l.Free(taken)
					l.Take(taken, project, "of another owner")
				}
				return taken != "" && vm.GetCondition(xpv2.TypeReady).Reason == "Missing"
			}, func(vm *v1alpha1.VirtualMachine) {
				if err := openOf(t, l).Delete(context.Background(), vm); err != nil {
					t.Error(err)
				}
				if m := l.Machines(); len(m) != 1 || m[0].ID != taken || m[0].Project != project {
					t.Errorf("machines %+v, want the one of the other owner", m)
				}
				if calls, _ := l.Calls(); calls[fakemetal.FreeCall] > 0 {
					t.Errorf("calls %v: none may free the machine", calls)
				}
			})
		})
	}
}

// openOf returns an account of the lab.
func openOf(t *testing.T, l *lab) *account {
	t.Helper()
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Server, pc.Spec.Project = "https://api.metal.example.org/metal/", fakemetal.Project
	opened, err := open(fakes.InMemory(l), time.Now)(pc, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	return opened.(*account)
}

// TestAMachineThatChangesItsOwnerMeanwhileIsNotFreed changes the owner of the machine between the observation and the
// deletion.
func TestAMachineThatChangesItsOwnerMeanwhileIsNotFreed(t *testing.T) {
	l := newLab(fakemetal.Options{})
	a := openOf(t, l)
	id, allocation := l.TakeAny(fakemetal.Project, "vm-1", "drover-vm=1")
	vm := newVM("vm-1", nil)
	meta.SetExternalName(vm, id+"/"+allocation)
	if seen, err := a.Get(t.Context(), vm, time.Time{}); err != nil || seen.State == "" {
		t.Fatalf("state %q, %v", seen.State, err)
	}
	l.Free(id)
	l.Take(id, fakemetal.Project, "vm-2", "drover-vm=1")
	if err := a.Delete(t.Context(), vm); err != nil {
		t.Error(err)
	}
	if m := l.Machines(); len(m) != 1 || m[0].Name != "vm-2" {
		t.Errorf("machines %+v, want vm-2", m)
	}
}

// TestAnExternalNameReachesItsProjectOnly uses the names of a machine of another project, and of one without an
// allocation UUID.
func TestAnExternalNameReachesItsProjectOnly(t *testing.T) {
	l := newLab(fakemetal.Options{})
	a := openOf(t, l)
	id, allocation := l.TakeAny(fakemetal.OtherProject, "vm-1")
	own, ownAllocation := l.TakeAny(fakemetal.Project, "vm-2")
	for name, tc := range map[string]struct {
		externalName string
		exists       bool
	}{
		"OfTheProject":        {own + "/" + ownAllocation, true},
		"OfAnotherProject":    {id + "/" + allocation, false},
		"OfAnotherAllocation": {own + "/" + allocation, false},
		"WithoutAnAllocation": {own, false},
		"OfNoMachine":         {"x/" + ownAllocation, false},
		"WithAPath":           {own + "?/" + ownAllocation, false},
	} {
		t.Run(name, func(t *testing.T) {
			vm := newVM("vm", nil)
			meta.SetExternalName(vm, tc.externalName)
			seen, err := a.Get(t.Context(), vm, time.Time{})
			if err != nil || (seen.State != "") != tc.exists {
				t.Errorf("state %q, %v; want existing %t", seen.State, err, tc.exists)
			}
			if tc.exists {
				return
			}
			if err := a.Delete(t.Context(), vm); err != nil || len(l.Machines()) != 2 {
				t.Errorf("%d machines, %v", len(l.Machines()), err)
			}
		})
	}
}

func TestALockedMachineIsFreedWhenItIsUnlocked(t *testing.T) {
	l := newLab(fakemetal.Options{})
	a := openOf(t, l)
	id, allocation := l.TakeAny(fakemetal.Project, "vm-1")
	vm := newVM("vm-1", nil)
	meta.SetExternalName(vm, id+"/"+allocation)
	l.SetState(id, "LOCKED", "under repair")
	err := a.Delete(t.Context(), vm)
	if want := "PermissionDenied: machine " + id + " cannot be freed"; err == nil || !strings.Contains(err.Error(), "LOCKED: under repair (someone@example.org)") && !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	l.SetState(id, "", "")
	if err := a.Delete(t.Context(), vm); err != nil || len(l.Machines()) > 0 {
		t.Errorf("%d machines, %v", len(l.Machines()), err)
	}
}

// TestTwoMachinesOfOneVM gives two machines the tag of one VM: the VM is the first one, and an inventory shows the other
// under a name that no VM resource has.
func TestTwoMachinesOfOneVM(t *testing.T) {
	l := newLab(fakemetal.Options{})
	a := openOf(t, l)
	vm := newVM("vm-1", nil)
	vm.SetUID("7")
	var names []string
	for range 2 {
		id, allocation := l.TakeAny(fakemetal.Project, "vm-1", "drover-vm=7", "drover-installation=1d")
		names = append(names, id+"/"+allocation)
		time.Sleep(2 * time.Millisecond) // The API has milliseconds.
	}
	_, _ = l.TakeAny(fakemetal.OtherProject, "vm-1", "drover-vm=7", "drover-installation=1d")
	if got, err := a.FindLost(t.Context(), vm); err != nil || got != names[0] {
		t.Errorf("found %s, %v; want %s", got, err, names[0])
	}
	vms, complete, err := a.List(t.Context(), "1d")
	if err != nil || !complete || len(vms) != 2 || vms[0].ExternalName != names[0] || vms[1].ExternalName != names[1] {
		t.Errorf("listed %+v, complete %t, %v; want %v", vms, complete, err, names)
	}
}

// TestAVMIsFoundWithoutItsTags removes the tags of a machine, as an administrator does it.
func TestAVMIsFoundWithoutItsTags(t *testing.T) {
	l := newLab(fakemetal.Options{})
	a := openOf(t, l)
	id, allocation := l.TakeAny(fakemetal.Project, "vm-1", "drover-vm=7")
	l.SetTags(id)
	vm := newVM("vm-1", nil)
	meta.SetExternalName(vm, id+"/"+allocation)
	if seen, err := a.Get(t.Context(), vm, time.Time{}); err != nil || seen.State != "Running" {
		t.Errorf("state %q, %v", seen.State, err)
	}
	if vms, _, err := a.Find(t.Context(), []string{id + "/" + allocation, id}); err != nil || len(vms) != 1 {
		t.Errorf("found %+v, %v", vms, err)
	}
}

// TestAMachineThatIsFreedBeforeItRunsIsReplaced frees the first machine of a VM during its installation. The metal-api
// may choose the same machine for the next allocation.
func TestAMachineThatIsFreedBeforeItRunsIsReplaced(t *testing.T) {
	l := newLab(fakemetal.Options{InstallTakes: time.Minute})
	first, allocation, reported := "", "", false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if id := vm.Status.AtProvider.MachineID; id != "" && first == "" {
			first, allocation = id, meta.GetExternalName(vm)
			l.Free(id)
		}
		reported = reported || strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "machine "+first+" was freed before it ran")
		return isRunning(vm)
	}, func(vm *v1alpha1.VirtualMachine) {
		if name := meta.GetExternalName(vm); name == allocation || !reported || len(l.Machines()) != 1 {
			t.Errorf("machine and allocation %s after %s, reported %t, %d machines", name, allocation, reported, len(l.Machines()))
		}
	})
}

func TestCredentialsAreTokensToo(t *testing.T) {
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		credentials func(*lab) credentials
		want        string // part of the error; empty for none
		pauses      bool   // The account makes no call for some time.
	}{
		"AToken": {func(l *lab) credentials { return credentials{Token: l.Token("drover", day, fakemetal.GroupEdit)} }, "", false},
		"AnExpiredToken": {func(l *lab) credentials {
			return credentials{Token: l.Token("drover", -time.Hour, fakemetal.GroupEdit)}
		}, "token is expired", true},
		"ATokenOfAnotherAPI": {func(*lab) credentials {
			return credentials{Token: fakemetal.New(fakemetal.Options{}).Token("drover", day)}
		}, "key \"", true},
		"AChangedToken":       {func(l *lab) credentials { return credentials{Token: l.Token("drover", day, fakemetal.GroupEdit) + "A"} }, "token signature is invalid", true},
		"ATokenWithoutGroups": {func(l *lab) credentials { return credentials{Token: l.Token("drover", day)} }, "you are not member", false},
		"AWrongHMAC":          {func(*lab) credentials { return credentials{HMAC: "x"} }, "Wrong HMAC found", true},
		"AnUnknownUser":       {func(l *lab) credentials { return credentials{HMAC: l.hmac, HMACAuthType: "Metal-Admin"} }, "you are not member", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakemetal.Options{})
			c := tc.credentials(l)
			l.other = &c
			_, err := openOf(t, l).Place(t.Context())
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := errorIn(err); e == nil || e.Class != "PermissionDenied" || e.Credentials != tc.pauses || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v (%+v), want %q", err, e, tc.want)
			}
		})
	}
}

// TestASignatureThatIsTooOldProvesNothing lets the clock of the metal-api be ahead.
func TestASignatureThatIsTooOldProvesNothing(t *testing.T) {
	_, err := openOf(t, newLab(fakemetal.Options{ClockIsAhead: 20 * time.Second})).Place(t.Context())
	if e := errorIn(err); e == nil || e.Class != "Transient" || e.Credentials || !e.Refused || !strings.Contains(err.Error(), "too old") {
		t.Errorf("error %v (%+v)", err, e)
	}
	if _, err := openOf(t, newLab(fakemetal.Options{ClockIsAhead: 10 * time.Second})).Place(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAProjectThatDoesNotExist(t *testing.T) {
	a := openOf(t, newLab(fakemetal.Options{}))
	a.project = "x"
	if _, err := a.Place(t.Context()); err == nil || err.Error() != `InvalidRequest: spec.project: invalid value "x": metal-stack has no such project` {
		t.Error(err)
	}
}

// TestManyVMsAreValidatedWithFewCalls prepares several VMs with the same references.
func TestManyVMsAreValidatedWithFewCalls(t *testing.T) {
	l := newLab(fakemetal.Options{})
	a := openOf(t, l)
	for range 50 {
		if err := a.Prepare(t.Context(), newVM("vm", nil)); err != nil {
			t.Fatal(err)
		}
	}
	if calls, n := l.Calls(); n != 6 {
		t.Errorf("calls %v, want 6", calls)
	}
}
