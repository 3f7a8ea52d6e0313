package proxmox

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	fakeproxmox "github.com/drover-dev/drover/test/fakes/proxmox"
)

const rebootedUUID = "0b0e7d2c-6a52-4a0b-9b53-000000000001"

// rebootable returns an account and a VM of it that runs, with its VMID.
func rebootable(t *testing.T, l *lab) (native.Account[*v1alpha1.VirtualMachine], *v1alpha1.VirtualMachine, int) {
	t.Helper()
	id := l.Create("vm-1", "pve1", "k8s", rebootedUUID, tagsOf(rebootedUUID, nil, nil), notesOf(rebootedUUID, nil))
	a, err := open(l, time.Now)(cloudOf(l).Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vm := newVM("vm-1", nil)
	meta.SetExternalName(vm, rebootedUUID)
	vm.Status.AtProvider.ProviderID = providerID(rebootedUUID)
	return a, vm, id
}

func look(t *testing.T, a native.Account[*v1alpha1.VirtualMachine], vm *v1alpha1.VirtualMachine) native.VM {
	t.Helper()
	seen, err := a.Get(t.Context(), vm, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestAReboot(t *testing.T) {
	const soft, hard = machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard
	for name, tc := range map[string]struct {
		// before happens before the observation, and after between it and the request.
		before, after func(l *lab, id int)
		mode          machinev1alpha1.RebootMode
		// errors are parts of the error, none if there is no error. isRepeated means that it has no effect, and that the
		// request is repeated.
		errors     []string
		isRepeated bool
		want       []string
	}{
		"OfTheGuest":                {mode: soft, want: []string{"Soft"}},
		"OfTheVM":                   {mode: hard, want: []string{"Hard"}},
		"OfAStoppedVMStartsIt":      {before: func(l *lab, id int) { l.PowerOff(id) }, mode: soft, want: []string{"Hard"}},
		"OfAVMThatHasJustStopped":   {after: func(l *lab, id int) { l.PowerOff(id) }, mode: hard, want: []string{"Hard"}},
		"OfAHibernatedVMResumesIt":  {before: func(l *lab, id int) { l.PowerOff(id); l.Set(id, "lock", "suspended") }, mode: soft, want: []string{"Hard"}},
		"WaitsForTheEndOfABackup":   {before: func(l *lab, id int) { l.Set(id, "lock", "backup") }, mode: hard, errors: []string{"Transient", "VM is locked (backup)"}, isRepeated: true},
		"WaitsForTheEndOfMigration": {after: func(l *lab, id int) { l.Migrate(id, "pve2") }, mode: hard, errors: []string{"Transient", "no longer on node pve1"}, isRepeated: true},
		"WaitsForAVMThatStops": {after: func(l *lab, _ int) {
			l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/qemu/{id}/status/reset", Status: 500, Message: "VM 100 not running"})
		}, mode: hard, errors: []string{"Transient: cannot reboot the VM", "VM 100 not running"}, isRepeated: true},
		"OfAPausedVMIsRefused": {after: func(l *lab, _ int) {
			l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/qemu/{id}/status/reboot", Status: 500, Message: "VM is paused - cannot shutdown"})
		}, mode: soft, errors: []string{"InvalidRequest: cannot reboot the VM", "VM is paused"}},
		"WithoutThePrivilegeIsRefused": {after: func(l *lab, _ int) {
			l.SetToken(tokenID, fakeproxmox.Token{Secret: l.credentials().Secret, ReadOnly: true, Audit: true})
		}, mode: soft, errors: []string{"PermissionDenied: cannot reboot the VM", "VM.PowerMgmt"}},
		"WhoseResponseIsLostIsNotRepeated": {after: func(l *lab, _ int) {
			l.Break(fakeproxmox.Fault{Call: "POST /nodes/{node}/qemu/{id}/status/reset", Lost: true})
		}, mode: hard, errors: []string{"Transient: cannot reboot the VM"}, want: []string{"Hard"}},
		// A user cloned the VM with its tags, deleted it, and gave its VMID to the clone.
		"OfAVMThatOnlyHasTheTagIsRefused": {before: func(l *lab, id int) {
			l.Set(id, "smbios1", "uuid=0b0e7d2c-6a52-4a0b-9b53-000000000002")
			l.Set(id, "description", "")
		}, mode: hard, errors: []string{"InvalidRequest", "another UUID"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakeproxmox.Options{})
			a, vm, id := rebootable(t, l)
			if tc.before != nil {
				tc.before(l, id)
			}
			look(t, a, vm)
			if tc.after != nil {
				tc.after(l, id)
			}
			err := a.Reboot(t.Context(), vm, tc.mode)
			if (err == nil) != (tc.errors == nil) {
				t.Errorf("error %v, want %q", err, tc.errors)
			}
			for _, part := range tc.errors {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q", err, part)
				}
			}
			if e := (&native.Error{}); errors.As(err, &e) && (e.Class == fn.ErrorTransient && e.Refused) != tc.isRepeated {
				t.Errorf("%q is repeated: %t, want %t", err, !tc.isRepeated, tc.isRepeated)
			}
			if got := l.Reboots(id); !slices.Equal(got, tc.want) {
				t.Errorf("reboots %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAGuestThatHangsIsResetAfterItsShutdown: the task of the soft reboot locks the configuration of the VM until it ends.
func TestAGuestThatHangsIsResetAfterItsShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(fakeproxmox.Options{Step: 2 * time.Second})
		a, vm, id := rebootable(t, l)
		l.Hang(id)
		look(t, a, vm)
		if err := a.Reboot(t.Context(), vm, machinev1alpha1.RebootSoft); err != nil {
			t.Fatal(err)
		}
		time.Sleep(shutdownFor - time.Second)
		if seen := look(t, a, vm); seen.State != native.StateCreating || seen.Text != "busy with the task qmreboot" {
			t.Errorf("before the end: %+v", seen)
		}
		time.Sleep(2 * time.Second)
		const want = "Transient: the task qmreboot failed: VM quit/powerdown failed - got timeout"
		if seen := look(t, a, vm); seen.State != native.StateRunning || seen.Problem == nil || seen.Problem.Error() != want {
			t.Errorf("after the end: %+v, want the problem %q", seen, want)
		}
		if err := a.Reboot(t.Context(), vm, machinev1alpha1.RebootHard); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if seen := look(t, a, vm); seen.State != native.StateRunning || seen.Problem != nil || !slices.Equal(l.Reboots(id), []string{"Soft", "Hard"}) {
			t.Errorf("after the reset: %+v, reboots %q", seen, l.Reboots(id))
		}
	})
}

func TestADeletionDoesNotWaitForAGuestThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(fakeproxmox.Options{Step: 2 * time.Second})
		a, vm, id := rebootable(t, l)
		l.Hang(id)
		look(t, a, vm)
		if err := a.Reboot(t.Context(), vm, machinev1alpha1.RebootSoft); err != nil {
			t.Fatal(err)
		}
		vm.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		for began := time.Now(); ; time.Sleep(time.Second) {
			seen := look(t, a, vm)
			switch {
			case seen.Problem != nil || time.Since(began) > shutdownFor/2:
				t.Fatalf("after %s: %+v", time.Since(began), seen)
			case seen.State == native.StateNone:
				return
			case seen.State == native.StateDeleting:
				continue
			}
			if err := a.Delete(t.Context(), vm); err != nil {
				t.Fatal(err)
			}
		}
	})
}
