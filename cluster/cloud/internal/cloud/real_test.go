package cloud

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/real"
)

// bootReal creates a VM of the real image and lets it boot.
func (b *bench) bootReal(name string) string {
	b.t.Helper()
	req := request(name)
	req.Image = localcloud.ImageDebian12Real
	vm, _, err := b.Create(req)
	b.must(err)
	b.pass(3 * time.Second)
	return vm.ID
}

func TestARealVMIsStartedStoppedAndDeleted(t *testing.T) {
	b := newBench(t)
	id := b.bootReal("a")
	want := real.VM{ID: id, Name: "a", Image: "debian-12-real", IP: "10.200.0.10", CPUs: 2, MemoryMiB: 4096,
		UserData: []byte("data"), ProviderID: "local:///zone-a/" + id}
	if d := cmp.Diff(want, b.machines.running[id]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if b.runs(id) {
		t.Error("a real VM is simulated too")
	}

	b.restart()
	if _, runs := b.machines.running[id]; !runs || !slices.Equal(b.machines.kept, []string{id}) {
		t.Errorf("after a restart the VM runs: %v, kept: %q", runs, b.machines.kept)
	}

	b.must(b.Delete(id))
	if _, runs := b.machines.running[id]; runs || len(b.machines.deleted) > 0 {
		t.Errorf("a VM that shuts down runs: %v, deleted: %q", runs, b.machines.deleted)
	}
	b.pass(3 * time.Second)
	if b.state(id) != "gone" || !slices.Equal(b.machines.deleted, []string{id}) {
		t.Errorf("the VM is %s, deleted: %q", b.state(id), b.machines.deleted)
	}
}

func TestARealVMThatEndsIsFailed(t *testing.T) {
	b := newBench(t)
	id := b.bootReal("a")
	host := b.machines.hosts[id]
	host.Console("%s", "Kernel panic")
	host.Fail("the VM ended by itself: exit status 1")
	vm, err := b.Get(id)
	b.must(err)
	if vm.State != localcloud.StateFailed || *vm.Error != (localcloud.VMError{Code: "Internal", Message: "the VM ended by itself: exit status 1"}) {
		t.Errorf("VM is %s: %v", vm.State, vm.Error)
	}
	if text, _ := b.Console(id); !strings.Contains(text, "Kernel panic") || !strings.Contains(text, "failed: the VM ended by itself") {
		t.Errorf("console: %s", text)
	}
	b.restart()
	if _, runs := b.machines.running[id]; runs {
		t.Error("a Failed VM is started again")
	}
	host.Fail("late") // The cloud has the VM as Failed already.
	b.must(b.Delete(id))
	b.pass(3 * time.Second)
	host.Fail("later") // The VM is deleted.
	if b.state(id) != "gone" {
		t.Error("the VM is not gone")
	}
}

func TestARealVMWithoutAProviderIDHasNoneInItsMetadata(t *testing.T) {
	b := newBench(t)
	b.fault(localcloud.Fault{Kind: localcloud.FaultNoProviderID})
	if got := b.machines.running[b.bootReal("a")].ProviderID; got != "" {
		t.Errorf("got %q", got)
	}
}

func TestARealVMIsRebootedWithItsDisk(t *testing.T) {
	b := newBench(t)
	id := b.bootReal("a")
	was := b.machines.running[id]
	b.must(b.Reboot(id))
	if d := cmp.Diff(was, b.machines.running[id]); d != "" || b.machines.stops != 1 || len(b.machines.deleted) > 0 {
		t.Errorf("stopped %d times, deleted %q (-want +got):\n%s", b.machines.stops, b.machines.deleted, d)
	}
}

func TestTheMirrorFailsUntilTheFaultIsDeleted(t *testing.T) {
	b := newBench(t)
	hit, other := b.bootReal("a"), b.bootReal("b")
	f := b.fault(localcloud.Fault{Kind: localcloud.FaultMirrorFails, Match: localcloud.FaultMatch{Name: "a"}})
	b.must(b.SetQuota(localcloud.Quota{}))
	late := b.bootReal("a") // A creation does not use up this fault.
	for range 2 {
		for id, want := range map[string]bool{hit: true, late: true, other: false} {
			if got := b.machines.hosts[id].MirrorFails(); got != want {
				t.Errorf("the mirror fails for VM %s: %t, want %t", id, got, want)
			}
		}
		b.restart()
	}
	if got := b.Faults(); len(got) != 1 || got[0].Count != 0 {
		t.Errorf("faults: %+v", got)
	}
	b.must(b.DeleteFault(f.ID))
	if b.machines.hosts[hit].MirrorFails() {
		t.Error("the mirror fails without a fault")
	}
	if _, err := b.AddFault(localcloud.Fault{Kind: localcloud.FaultMirrorFails, Count: 2}); localcloud.CodeOf(err) != localcloud.CodeInvalidRequest {
		t.Errorf("a count of a fault that lasts: %v", err)
	}
}

func TestImagesHaveAKind(t *testing.T) {
	images, err := newBench(t).Images()
	if err != nil {
		t.Fatal(err)
	}
	want := []localcloud.Image{{Name: "debian-12", Kind: "Simulated"}, {Name: "ubuntu-24.04", Kind: "Simulated"}, {Name: "debian-12-real", Kind: "Real"}}
	if d := cmp.Diff(want, images); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestALongConsoleIsCut(t *testing.T) {
	b := newBench(t)
	id := b.bootReal("a")
	line := strings.Repeat("x", 64<<10)
	for range 40 {
		b.machines.hosts[id].Console("%s", line)
	}
	b.machines.hosts[id].Console("last")
	text, err := b.Console(id)
	b.must(err)
	if len(text) > maxConsole || !strings.HasSuffix(text, " last\n") {
		t.Errorf("%d bytes, which end with %q", len(text), text[len(text)-10:])
	}
	info, err := os.Stat(b.consoles.file(id))
	b.must(err)
	if info.Size() > maxConsoleFile {
		t.Errorf("the file has %d bytes", info.Size())
	}
}
