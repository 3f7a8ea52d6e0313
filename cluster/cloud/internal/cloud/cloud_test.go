package cloud

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/guest"
	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
	"github.com/drover-dev/drover/cluster/cloud/internal/real"
)

// guests records which VMs are started and stopped, and runs nothing.
type guests struct {
	running map[string]guest.VM
	hosts   map[string]guest.Host
}

func (g *guests) Start(vm guest.VM, h guest.Host) {
	g.running[vm.Facts.ID], g.hosts[vm.Facts.ID] = vm, h
}
func (g *guests) Stop(id string) { delete(g.running, id) }

// machines records which VMs are started, stopped and deleted, and runs nothing.
type machines struct {
	running map[string]real.VM
	hosts   map[string]real.Host
	deleted []string
	kept    []string
	stops   int
}

func (m *machines) ImageNames() ([]string, error) {
	return []string{localcloud.ImageDebian12Real}, nil
}
func (m *machines) Start(vm real.VM, h real.Host) { m.running[vm.ID], m.hosts[vm.ID] = vm, h }
func (m *machines) Stop(id string) {
	m.stops++
	delete(m.running, id)
}
func (m *machines) Delete(id string) {
	m.Stop(id)
	m.deleted = append(m.deleted, id)
}
func (m *machines) Keep(ids []string) error {
	m.kept = ids
	return nil
}

type bench struct {
	*Cloud
	t        *testing.T
	dir      string
	clock    *clocktesting.FakeClock
	guests   *guests
	machines *machines
}

var settings = localcloud.Settings{
	CreateTime:   localcloud.Duration(time.Second),
	BootTime:     localcloud.Duration(2 * time.Second),
	ShutdownTime: localcloud.Duration(3 * time.Second),
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir(), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	b.restart()
	return b
}

// restart simulates a kill and a new start of the daemon: nothing is closed before.
func (b *bench) restart() {
	b.t.Helper()
	b.guests = &guests{running: map[string]guest.VM{}, hosts: map[string]guest.Host{}}
	b.machines = &machines{running: map[string]real.VM{}, hosts: map[string]real.Host{}}
	var err error
	b.Cloud, err = Open(b.dir, settings, b.guests, b.machines, b.clock, slog.New(slog.DiscardHandler))
	b.must(err)
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	b.clock.Step(d)
	_, err := b.Advance()
	b.must(err)
}

func request(name string) localcloud.CreateVMRequest {
	return localcloud.CreateVMRequest{Name: name, Image: localcloud.ImageDebian12, Size: localcloud.SizeMedium,
		UserData: []byte("data"), Tags: map[string]string{"k": name}}
}

func (b *bench) create(name string) string {
	b.t.Helper()
	vm, _, err := b.Create(request(name))
	b.must(err)
	return vm.ID
}

func (b *bench) fault(f localcloud.Fault) localcloud.Fault {
	b.t.Helper()
	f, err := b.AddFault(f)
	b.must(err)
	return f
}

func (b *bench) state(id string) localcloud.State {
	b.t.Helper()
	vm, err := b.Get(id)
	if localcloud.IsNotFound(err) {
		return "gone"
	}
	b.must(err)
	return vm.State
}

func (b *bench) runs(id string) bool { _, ok := b.guests.running[id]; return ok }

func TestTheLifeOfAVM(t *testing.T) {
	b := newBench(t)
	vm, lose, err := b.Create(request("a"))
	b.must(err)
	want := localcloud.VM{ID: vm.ID, Name: "a", Image: "debian-12", Size: "medium", Zone: "zone-a", Tags: map[string]string{"k": "a"},
		State: "Pending", ProviderID: "local:///zone-a/" + vm.ID, CreatedAt: b.clock.Now().UTC()}
	if d := cmp.Diff(want, vm); d != "" || lose != nil {
		t.Errorf("lose %v (-want +got):\n%s", lose, d)
	}
	check := func(state localcloud.State, runs bool) {
		t.Helper()
		if got := b.state(vm.ID); got != state || b.runs(vm.ID) != runs {
			t.Errorf("VM is %s and runs: %v; want %s and %v", got, b.runs(vm.ID), state, runs)
		}
	}
	check("Pending", false)
	b.pass(time.Second)
	check("Running", false)
	if got, _ := b.Get(vm.ID); len(got.Addresses) != 2 || got.Addresses[0].Address != "10.200.0.10" {
		t.Errorf("addresses %v", got.Addresses)
	}
	b.pass(2 * time.Second)
	check("Running", true)
	facts := b.guests.running[vm.ID].Facts
	if facts.ProviderID != vm.ProviderID || facts.CPU.String() != "2" || facts.PodCIDR != "100.64.0.0/24" {
		t.Errorf("facts %+v", facts)
	}
	b.must(b.Delete(vm.ID))
	check("Terminating", false)
	b.pass(2 * time.Second)
	b.must(b.Delete(vm.ID)) // A second deletion does not delay the first.
	check("Terminating", false)
	b.pass(time.Second)
	check("gone", false)
	if err := b.Delete(vm.ID); !localcloud.IsNotFound(err) {
		t.Errorf("error %v, want NotFound", err)
	}
}

func TestAVMHasTheAddressThatItsRequestNames(t *testing.T) {
	b := newBench(t)
	for i, tc := range []struct{ address, want, refused string }{
		{"", "10.200.0.10", ""},
		{"10.200.32.1", "10.200.32.1", ""},
		{"", "10.200.0.11", ""},
		{"10.200.64.9", "10.200.64.9", ""},
		{"10.200.32.1", "", "address: 10.200.32.1: another VM has it"},
		{"10.200.64.10", "", `address: invalid value "10.200.64.10": must be one of 10.200.0.10 to 10.200.64.9`},
		{"here", "", `address: invalid value "here": must be one of 10.200.0.10 to 10.200.64.9`},
	} {
		r := request(fmt.Sprintf("vm-%d", i))
		r.Address = tc.address
		vm, _, err := b.Create(r)
		if tc.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%q: %v, want %s", tc.address, err, tc.refused)
			}
			continue
		}
		b.must(err)
		b.pass(time.Second)
		if got, err := b.Get(vm.ID); err != nil || got.Addresses[0].Address != tc.want {
			t.Errorf("%q: %v, %v, want %s", tc.address, got.Addresses, err, tc.want)
		}
	}
}

func TestARebootKeepsWhatTheVMWas(t *testing.T) {
	b := newBench(t)
	id, pending := b.create("a"), ""
	b.pass(3 * time.Second)
	pending = b.create("b")
	b.must(b.guests.hosts[id].Save(kubelet.State{Registered: true}))
	delete(b.guests.hosts, id)
	b.must(b.Reboot(id))
	if vm := b.guests.running[id]; b.guests.hosts[id] == nil || vm.FirstBoot || !vm.State.Registered {
		t.Errorf("the VM was started as %+v", vm)
	}
	if got := b.guests.running[id].Facts.BootID; got != id+"-1" {
		t.Errorf("boot ID %s", got)
	}
	if text, _ := b.Console(id); !strings.HasSuffix(text, " rebooted\n") {
		t.Errorf("console: %s", text)
	}
	if err := b.Reboot(pending); localcloud.CodeOf(err) != localcloud.CodeInvalidRequest || !strings.Contains(err.Error(), "is Pending and nothing runs in it") {
		t.Errorf("of a VM that does not run: %v", err)
	}
	if err := b.Reboot("vm-no"); !localcloud.IsNotFound(err) {
		t.Errorf("of no VM: %v", err)
	}
}

func TestAVMShowsItsConsoleWhileItMayExplainSomething(t *testing.T) {
	console := func(b *bench, id string) string {
		vm, err := b.Get(id)
		b.must(err)
		return vm.Console
	}
	b := newBench(t)
	joined, lost := b.create("a"), b.create("b")
	b.pass(3 * time.Second)
	b.must(b.guests.hosts[joined].Save(kubelet.State{Registered: true}))
	b.guests.hosts[lost].Console("no kubelet for token 0123ab.0123456789abcdef")
	if got := console(b, lost); got != "" {
		t.Errorf("at its boot: %q", got)
	}
	b.pass(30 * time.Second)
	if got := console(b, lost); !strings.HasSuffix(got, " no kubelet for token (token)\n") {
		t.Errorf("after 30 s: %q", got)
	}
	if got := console(b, joined); got != "" {
		t.Errorf("of a VM that joined: %q", got)
	}
	if l, err := b.List(localcloud.ListVMsOptions{}); err != nil || l.Items[0].Console+l.Items[1].Console != "" {
		t.Errorf("a list has consoles: %+v, %v", l, err)
	}
	b.guests.hosts[lost].Console("%s", strings.Repeat("é", 3000))
	b.guests.hosts[lost].Console("%s", strings.Repeat("x", 3000))
	if got := console(b, lost); len(got) > 4<<10 || !strings.HasSuffix(got, "x...\n") {
		t.Errorf("of a long console %d bytes are shown", len(got))
	}
	b.pass(30 * time.Minute)
	if got := console(b, lost); got != "" {
		t.Errorf("after half an hour: %q", got)
	}
	b.fault(localcloud.Fault{Kind: localcloud.FaultCreateFails, Delay: 1})
	failed := b.create("c")
	b.pass(time.Hour)
	if got := console(b, failed); !strings.Contains(got, "created VM") {
		t.Errorf("of a Failed VM: %q", got)
	}
}

func TestAdvanceSaysWhenToComeBack(t *testing.T) {
	b := newBench(t)
	start := b.clock.Now()
	id := b.create("a")
	for _, after := range []time.Duration{time.Second, 3 * time.Second} {
		next, err := b.Advance()
		b.must(err)
		if !next.Equal(start.Add(after)) {
			t.Errorf("next %s after start, want %s", next.Sub(start), after)
		}
		b.clock.SetTime(next)
	}
	if next, err := b.Advance(); err != nil || !next.IsZero() || !b.runs(id) {
		t.Errorf("next %s, error %v: a VM that runs needs nothing", next, err)
	}
}

func TestARestartCatchesUpAndForgetsNothing(t *testing.T) {
	b := newBench(t)
	running, terminating := b.create("running"), b.create("terminating")
	b.pass(3 * time.Second)
	b.must(b.guests.hosts[running].Save(kubelet.State{Registered: true}))
	b.guests.hosts[running].Console("hello %s", "console")
	b.must(b.Delete(terminating))
	booting := b.create("booting")
	b.must(b.SetQuota(localcloud.Quota{VMs: 7}))
	changed := settings
	changed.RateLimit = 5
	b.must(b.SetSettings(changed))
	fault := b.fault(localcloud.Fault{Kind: localcloud.FaultNeverBoots, Count: 2})

	b.clock.Step(time.Minute)
	b.restart()
	if got := []localcloud.State{b.state(running), b.state(terminating), b.state(booting)}; !slices.Equal(got, []localcloud.State{"Running", "gone", "Running"}) {
		t.Errorf("states %v", got)
	}
	if vm := b.guests.running[running]; vm.FirstBoot || !vm.State.Registered || string(vm.UserData) != "data" {
		t.Errorf("the running VM was resumed as %+v", vm)
	}
	if vm := b.guests.running[booting]; !vm.FirstBoot {
		t.Errorf("the booting VM was started as %+v", vm)
	}
	if out, err := b.Console(running); err != nil || !strings.Contains(out, "hello console\n") {
		t.Errorf("console %q, error %v", out, err)
	}
	if b.Quota().VMs != 7 || b.Settings() != changed {
		t.Errorf("quota %+v, settings %+v", b.Quota(), b.Settings())
	}
	if d := cmp.Diff([]localcloud.Fault{fault}, b.Faults()); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
}

func TestFaultsOfCreation(t *testing.T) {
	cases := map[string]struct {
		fault localcloud.Fault
		// code of the error that the creation returns.
		code string
		lose bool
		// state of the VM after a minute, and whether a guest runs in it.
		state localcloud.State
		runs  bool
	}{
		"CreateFails":           {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails}, code: "Internal"},
		"CreateFailsWithCode":   {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Code: "CapacityExhausted", Message: "no"}, code: "CapacityExhausted"},
		"CreateFailsLater":      {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Delay: 1}, state: "Failed"},
		"Unavailable":           {fault: localcloud.Fault{Kind: localcloud.FaultUnavailable}, code: "Unavailable"},
		"CreateAnswerLost":      {fault: localcloud.Fault{Kind: localcloud.FaultCreateAnswerLost}, lose: true, state: "Running", runs: true},
		"NeverBoots":            {fault: localcloud.Fault{Kind: localcloud.FaultNeverBoots}, state: "Running"},
		"SlowBootStillBoots":    {fault: localcloud.Fault{Kind: localcloud.FaultSlowBoot, Delay: localcloud.Duration(30 * time.Second)}, state: "Running", runs: true},
		"SlowBootIsSlow":        {fault: localcloud.Fault{Kind: localcloud.FaultSlowBoot, Delay: localcloud.Duration(time.Hour)}, state: "Running"},
		"AnotherName":           {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Match: localcloud.FaultMatch{Name: "b*"}}, state: "Running", runs: true},
		"AnotherTag":            {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Match: localcloud.FaultMatch{Tags: map[string]string{"k": "b"}}}, state: "Running", runs: true},
		"MatchingNameAndTag":    {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Match: localcloud.FaultMatch{Name: "a*", Tags: map[string]string{"k": "a"}}}, code: "Internal"},
		"MatchingNameWrongTag":  {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Match: localcloud.FaultMatch{Name: "a*", Tags: map[string]string{"x": "a"}}}, state: "Running", runs: true},
		"MatchingTagOfNoValue":  {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Match: localcloud.FaultMatch{Tags: map[string]string{"x": ""}}}, state: "Running", runs: true},
		"AnotherNameOfTheGlobs": {fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Match: localcloud.FaultMatch{Name: "?"}}, code: "Internal"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			f := b.fault(tc.fault)
			vm, lose, err := b.Create(request("a"))
			if localcloud.CodeOf(err) != tc.code || (lose != nil) != tc.lose {
				t.Fatalf("error %v, answer lost: %v", err, lose)
			}
			b.pass(time.Minute)
			vms, err := b.List(localcloud.ListVMsOptions{})
			b.must(err)
			if tc.code != "" {
				if len(vms.Items) != 0 {
					t.Errorf("a refused creation left %v", vms)
				}
			} else if got := b.state(vm.ID); got != tc.state || b.runs(vm.ID) != tc.runs {
				t.Errorf("VM is %s and runs: %v; want %s and %v", got, b.runs(vm.ID), tc.state, tc.runs)
			}
			hit := tc.code != "" || tc.lose || tc.state == "Failed" || !tc.runs || tc.fault.Kind == localcloud.FaultSlowBoot
			if left := len(b.Faults()); left == 0 != hit {
				t.Errorf("%d faults are left", left)
			}
			if !hit {
				b.must(b.DeleteFault(f.ID))
			}
			if err := b.DeleteFault(f.ID); !localcloud.IsNotFound(err) {
				t.Errorf("error %v, want NotFound", err)
			}
		})
	}
}

func TestAVMWithoutProviderIDKeepsItFromItsKubeletForGood(t *testing.T) {
	b := newBench(t)
	b.fault(localcloud.Fault{Kind: localcloud.FaultNoProviderID})
	without, with := b.create("a"), b.create("b")
	b.pass(time.Minute)
	for _, restarted := range []bool{false, true} {
		if restarted {
			b.restart()
		}
		if got := b.guests.running[without].Facts.ProviderID; got != "" {
			t.Errorf("restarted %v: its kubelet knows %q", restarted, got)
		}
		if got := b.guests.running[with].Facts.ProviderID; got != "local:///zone-a/"+with {
			t.Errorf("restarted %v: another VM's kubelet knows %q", restarted, got)
		}
	}
	if vm, err := b.Get(without); err != nil || vm.ProviderID != "local:///zone-a/"+without {
		t.Errorf("the API says %q, %v", vm.ProviderID, err)
	}
}

func TestAFailedVMSaysWhyAndStaysUntilItIsDeleted(t *testing.T) {
	b := newBench(t)
	b.fault(localcloud.Fault{Kind: localcloud.FaultCreateFails, Code: "CapacityExhausted", Message: "sold out", Delay: localcloud.Duration(10 * time.Second)})
	id := b.create("a")
	b.pass(9 * time.Second)
	if got := b.state(id); got != "Pending" {
		t.Errorf("VM is %s before it fails", got)
	}
	b.pass(time.Second)
	b.restart()
	vm, err := b.Get(id)
	b.must(err)
	if vm.State != "Failed" || *vm.Error != (localcloud.VMError{Code: "CapacityExhausted", Message: "sold out"}) {
		t.Errorf("VM %+v", vm)
	}
	b.must(b.Delete(id))
	b.pass(time.Minute)
	if got := b.state(id); got != "gone" {
		t.Errorf("VM is %s", got)
	}
}

func TestAFaultHitsAsOftenAsItCounts(t *testing.T) {
	b := newBench(t)
	b.fault(localcloud.Fault{Kind: localcloud.FaultUnavailable, Count: 2, Delay: localcloud.Duration(time.Second)})
	b.fault(localcloud.Fault{Kind: localcloud.FaultNeverBoots})
	for range 2 {
		_, _, err := b.Create(request("a"))
		var e *localcloud.Error
		if !errors.As(err, &e) || e.Code != "Unavailable" || e.RetryAfter != time.Second {
			t.Errorf("error %v, want Unavailable", err)
		}
		b.restart()
	}
	id := b.create("a")
	b.pass(time.Minute)
	if b.runs(id) || len(b.Faults()) != 0 {
		t.Error("the refused creations used up the second fault")
	}
}

func TestFaultsThatActAtOnce(t *testing.T) {
	b := newBench(t)
	hit, spared := b.create("hit"), b.create("spared")
	b.pass(time.Minute)
	host := b.guests.hosts[hit]
	if f := b.fault(localcloud.Fault{Kind: localcloud.FaultKubeletStops, Match: localcloud.FaultMatch{Name: "hit"}}); f.Count != 1 {
		t.Errorf("it hit %d VMs", f.Count)
	}
	b.restart()
	if b.state(hit) != "Running" || b.runs(hit) || !b.runs(spared) {
		t.Error("the kubelet runs again, or the VM is not Running, or another's ended")
	}
	if f := b.fault(localcloud.Fault{Kind: localcloud.FaultVanish, Match: localcloud.FaultMatch{Tags: map[string]string{"k": "spared"}}}); f.Count != 1 {
		t.Errorf("it hit %d VMs", f.Count)
	}
	if b.state(spared) != "gone" || b.runs(spared) || b.state(hit) != "Running" {
		t.Error("the wrong VM vanished")
	}
	if err := host.Save(kubelet.State{Registered: true}); err == nil {
		t.Error("a kubelet that was stopped could save its state")
	}
	if len(b.Faults()) != 0 {
		t.Errorf("faults %v are left", b.Faults())
	}
	b.restart()
	if b.state(spared) != "gone" {
		t.Error("a vanished VM came back")
	}
}

func TestFaultsOfLists(t *testing.T) {
	b := newBench(t)
	near, far := request("near"), request("far")
	near.Zone, far.Zone = "zone-b", "zone-c"
	for _, r := range []localcloud.CreateVMRequest{near, far} {
		_, _, err := b.Create(r)
		b.must(err)
		b.clock.Step(time.Millisecond)
	}
	ours := localcloud.ListVMsOptions{Tags: map[string]string{"k": "far"}}
	b.fault(localcloud.Fault{Kind: localcloud.FaultListFails, Message: "broken", Match: localcloud.FaultMatch{Tags: ours.Tags}})
	b.fault(localcloud.Fault{Kind: localcloud.FaultListIncomplete, Count: 2})
	b.restart()

	if l, err := b.List(localcloud.ListVMsOptions{}); err != nil || len(l.Items) != 1 || l.Items[0].Name != "far" || fmt.Sprint(l.Unreachable) != "[zone-b]" {
		t.Errorf("a list that lacks the zone of the oldest VM has %v, error %v", l, err)
	}
	if _, err := b.List(ours); localcloud.CodeOf(err) != "Internal" || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v, want that of the fault", err)
	}
	b.create("c") // A fault of a list does not hit a creation.
	if l, err := b.List(localcloud.ListVMsOptions{Name: "none"}); err != nil || len(l.Items) != 0 || len(l.Unreachable) != 1 {
		t.Errorf("an empty list that is not complete has %v, error %v", l, err)
	}
	if l, err := b.List(localcloud.ListVMsOptions{}); err != nil || len(l.Items) != 3 || l.Unreachable != nil {
		t.Errorf("the faults are used up, but the list has %v, error %v", l, err)
	}
}

func TestQuotaCountsEveryVM(t *testing.T) {
	b := newBench(t)
	b.must(b.SetQuota(localcloud.Quota{VMs: 2}))
	a, _ := b.create("a"), b.create("b")
	if _, _, err := b.Create(request("c")); localcloud.CodeOf(err) != "QuotaExceeded" {
		t.Errorf("error %v", err)
	}
	b.must(b.Delete(a))
	if _, _, err := b.Create(request("c")); localcloud.CodeOf(err) != "QuotaExceeded" {
		t.Errorf("error %v: a Terminating VM counts", err)
	}
	b.clock.Step(3 * time.Second)
	b.create("c") // No call advanced the VMs in between.
	b.must(b.SetQuota(localcloud.Quota{VMs: 1}))
	if vms, err := b.List(localcloud.ListVMsOptions{}); err != nil || len(vms.Items) != 2 {
		t.Errorf("VMs %v, error %v: a smaller quota takes none away", vms, err)
	}
	b.must(b.SetQuota(localcloud.Quota{}))
	b.create("d")
}

func TestListSelectsByNameAndTags(t *testing.T) {
	b := newBench(t)
	ids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		ids[b.create(name)] = name
		b.clock.Step(time.Millisecond)
	}
	second := b.create("a")
	ids[second] = "a2"
	_, err := b.SetTags(second, map[string]string{"k": "b", "other": "="})
	b.must(err)
	cases := map[string]struct {
		o    localcloud.ListVMsOptions
		want string
	}{
		"All":        {localcloud.ListVMsOptions{}, "[a b c a2]"},
		"Name":       {localcloud.ListVMsOptions{Name: "a"}, "[a a2]"},
		"Tag":        {localcloud.ListVMsOptions{Tags: map[string]string{"k": "b"}}, "[b a2]"},
		"Both":       {localcloud.ListVMsOptions{Name: "a", Tags: map[string]string{"k": "b", "other": "="}}, "[a2]"},
		"NoSuchTag":  {localcloud.ListVMsOptions{Tags: map[string]string{"none": ""}}, "[]"},
		"NoSuchName": {localcloud.ListVMsOptions{Name: "none"}, "[]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vms, err := b.List(tc.o)
			b.must(err)
			got := []string{}
			for _, vm := range vms.Items {
				got = append(got, ids[vm.ID])
			}
			if fmt.Sprint(got) != tc.want {
				t.Errorf("%v, want %s", got, tc.want)
			}
		})
	}
}

func TestNoTwoVMsShareAnAddress(t *testing.T) {
	b := newBench(t)
	first := b.create("first")
	seen := map[string]bool{}
	for i := range 600 {
		b.create(fmt.Sprint("vm", i))
	}
	b.must(b.Delete(first))
	b.pass(time.Minute)
	b.create("last") // It gets the network that the first VM released.
	b.pass(time.Minute)
	for _, vm := range b.guests.running {
		for _, a := range []string{vm.Facts.IP, vm.Facts.PodCIDR} {
			if seen[a] {
				t.Errorf("%s is there twice", a)
			}
			seen[a] = true
		}
	}
	if !seen["10.200.0.10"] || !seen["10.200.2.98"] || !seen["100.66.88.0/24"] {
		t.Errorf("the address of the first or of the last is missing")
	}
}

func TestBadInputNamesTheFieldAndWhatIsAllowed(t *testing.T) {
	create := func(change func(*localcloud.CreateVMRequest)) func(*bench) error {
		return func(b *bench) error {
			r := request("a")
			change(&r)
			_, _, err := b.Create(r)
			return err
		}
	}
	fault := func(f localcloud.Fault) func(*bench) error {
		return func(b *bench) error { _, err := b.AddFault(f); return err }
	}
	set := func(change func(*localcloud.Settings)) func(*bench) error {
		return func(b *bench) error {
			s := settings
			change(&s)
			return b.SetSettings(s)
		}
	}
	long := strings.Repeat("a", 300)
	cases := map[string]struct {
		do   func(*bench) error
		want string
	}{
		"NoName":       {create(func(r *localcloud.CreateVMRequest) { r.Name = "" }), `name: invalid value "": must be a host name: 1 to 63 lowercase letters, digits, "-" and "."`},
		"BadName":      {create(func(r *localcloud.CreateVMRequest) { r.Name = "A_b" }), `name: invalid value "A_b": must be a host name: 1 to 63 lowercase letters, digits, "-" and "."`},
		"LongName":     {create(func(r *localcloud.CreateVMRequest) { r.Name = long[:64] }), `name: invalid value "` + long[:64] + `": must be a host name: 1 to 63 lowercase letters, digits, "-" and "."`},
		"Image":        {create(func(r *localcloud.CreateVMRequest) { r.Image = "dos" }), `image: invalid value "dos": must be one of debian-12, ubuntu-24.04, debian-12-real`},
		"Size":         {create(func(r *localcloud.CreateVMRequest) { r.Size = "" }), `size: invalid value "": must be one of large, medium, small, xlarge`},
		"Zone":         {create(func(r *localcloud.CreateVMRequest) { r.Zone = "a.b" }), `zone: invalid value "a.b": must be a DNS label: lowercase letters, digits and "-"`},
		"UserData":     {create(func(r *localcloud.CreateVMRequest) { r.UserData = make([]byte, 65537) }), `userData: invalid value "65537 bytes": must be at most 65536 bytes`},
		"TagKey":       {create(func(r *localcloud.CreateVMRequest) { r.Tags = map[string]string{"a=b": ""} }), `tags key: invalid value "a=b": must be 1 to 128 bytes without "="`},
		"TagValue":     {create(func(r *localcloud.CreateVMRequest) { r.Tags = map[string]string{"a": long} }), `tags.a: invalid value "` + long + `": must be at most 256 bytes`},
		"Tags":         {create(func(r *localcloud.CreateVMRequest) { r.Tags = tags(51) }), `tags: invalid value "51 tags": must be at most 50 tags`},
		"FaultKind":    {fault(localcloud.Fault{Kind: "Fire"}), `kind: invalid value "Fire": must be one of CreateAnswerLost, CreateFails, KubeletStops, ListFails, ListIncomplete, MirrorFails, NeverBoots, NoProviderID, SlowBoot, Unavailable, Vanish`},
		"FaultCode":    {fault(localcloud.Fault{Kind: localcloud.FaultCreateFails, Code: "Teapot"}), `code: invalid value "Teapot": must be one of the API's error codes, like CapacityExhausted`},
		"FaultCount":   {fault(localcloud.Fault{Kind: localcloud.FaultNeverBoots, Count: -1}), `count: invalid value "-1": must be 1 or more`},
		"FaultDelay":   {fault(localcloud.Fault{Kind: localcloud.FaultSlowBoot}), `delay: invalid value "0s": must be a duration longer than 0s`},
		"FaultPattern": {fault(localcloud.Fault{Kind: localcloud.FaultVanish, Match: localcloud.FaultMatch{Name: "["}}), `match.name: invalid value "[": must be a pattern like worker-*`},
		"Quota":        {func(b *bench) error { return b.SetQuota(localcloud.Quota{VMs: -1}) }, `vms: invalid value "-1": must be 0 (no limit) or more`},
		"BootTime":     {set(func(s *localcloud.Settings) { s.BootTime = -1 }), `bootTime: invalid value "-1ns": must be 0s or longer`},
		"RateLimit":    {set(func(s *localcloud.Settings) { s.RateLimit = -1 }), `rateLimit: invalid value "-1": must be 0 (no limit) or more`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var e *localcloud.Error
			if err := tc.do(b); !errors.As(err, &e) || e.Code != "InvalidRequest" || e.Message != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
			if vms, err := b.List(localcloud.ListVMsOptions{}); err != nil || len(vms.Items)+len(b.Faults()) != 0 || b.Settings() != settings {
				t.Error("bad input changed something")
			}
		})
	}
}

func tags(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprint(i)] = ""
	}
	return out
}

func TestTheHistoryHasEveryVMAlsoThoseThatAreGone(t *testing.T) {
	b := newBench(t)
	kinds := func() map[string][]localcloud.ChangeKind {
		t.Helper()
		changes, err := b.History()
		b.must(err)
		out := map[string][]localcloud.ChangeKind{}
		for _, c := range changes {
			if c.Name != c.Tags["k"] {
				t.Errorf("change %+v lacks the tags of its VM", c)
			}
			out[c.Name+" "+c.VM] = append(out[c.Name+" "+c.VM], c.Kind)
		}
		return out
	}
	if got := kinds(); len(got) != 0 {
		t.Errorf("a new cloud has the history %v", got)
	}
	deleted, vanished, again := b.create("deleted"), b.create("vanished"), b.create("deleted")
	b.fault(localcloud.Fault{Kind: localcloud.FaultCreateFails})
	if _, _, err := b.Create(request("refused")); err == nil {
		t.Fatal("the creation was not refused")
	}
	b.must(b.Delete(deleted))
	b.must(b.Delete(deleted))
	b.restart()
	b.pass(time.Minute)
	b.fault(localcloud.Fault{Kind: localcloud.FaultVanish, Match: localcloud.FaultMatch{Name: "vanished"}})
	want := map[string][]localcloud.ChangeKind{
		"deleted " + deleted:   {localcloud.ChangeCreated, localcloud.ChangeTerminating, localcloud.ChangeGone},
		"vanished " + vanished: {localcloud.ChangeCreated, localcloud.ChangeGone},
		"deleted " + again:     {localcloud.ChangeCreated},
	}
	if d := cmp.Diff(want, kinds()); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
}
