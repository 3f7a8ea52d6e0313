package nutanix

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/uuid"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/test/fakes"
	fakenutanix "github.com/drover-dev/drover/test/fakes/nutanix"
)

const rebootedVM = "0b0e7d2c-6a52-4a0b-9b53-000000000001"

// rebootable returns an account and a VM of it that runs, with its UUID. The calls of the account use the transport.
func rebootable(t *testing.T, l *lab, next http.RoundTripper) (native.Account[*v1alpha1.VirtualMachine], *v1alpha1.VirtualMachine, string) {
	t.Helper()
	id := l.Create("vm-1", "", native.WriteNotes(rebootedVM, nil))
	a, err := open(next, time.Now)(cloudOf(l).Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vm := newVM("vm-1", nil)
	meta.SetExternalName(vm, rebootedVM)
	vm.Status.AtProvider.ProviderID = providerID(id)
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

// A recorder records the request ID of each call that changes something.
type recorder struct {
	http.RoundTripper
	ids []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		r.ids = append(r.ids, req.Header.Get("NTNX-Request-Id"))
	}
	return r.RoundTripper.RoundTrip(req)
}

func TestAReboot(t *testing.T) {
	const soft, hard = machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard
	const actions = "POST /api/vmm/v4.1/ahv/config/vms/{id}/$actions/"
	for name, tc := range map[string]struct {
		// before happens before the observation, and after between it and the request.
		before, after func(l *lab, id string)
		mode          machinev1alpha1.RebootMode
		action        string
		// errors are parts of the error, none if there is no error. isRepeated means that it has no effect, and that the
		// request is repeated.
		errors     []string
		isRepeated bool
		want       []string
	}{
		"OfTheGuest":              {mode: soft, action: "reboot", want: []string{"Soft"}},
		"OfTheVM":                 {mode: hard, action: "reset", want: []string{"Hard"}},
		"OfAVMThatIsOffStartsIt":  {before: func(l *lab, id string) { l.PowerOff(id) }, mode: soft, action: "power-on", want: []string{"Hard"}},
		"OfAPausedVMIsANewStart":  {before: func(l *lab, id string) { l.Pause(id) }, mode: soft, action: "power-cycle", want: []string{"Hard"}},
		"OfAVMThatHasChangedWait": {after: func(l *lab, id string) { l.Describe(id, "of a user") }, mode: hard, action: "reset", errors: []string{"Transient: cannot reboot the VM", "VM_ETAG_MISMATCH"}, isRepeated: true},
		"WithoutTheRightIsRefused": {after: func(l *lab, _ string) {
			l.SetUser(username, fakenutanix.User{Password: l.password, ReadOnly: true})
		}, mode: soft, action: "reboot", errors: []string{"PermissionDenied: cannot reboot the VM", "ACCESS_DENIED"}},
		"WhoseResponseIsLostIsNotRepeated": {after: func(l *lab, _ string) {
			l.Break(fakenutanix.Fault{Call: actions + "reset", Lost: true})
		}, mode: hard, action: "reset", errors: []string{"Transient: cannot reboot the VM"}, want: []string{"Hard"}},
		"BehindABrokenProxyIsNotRepeated": {after: func(l *lab, _ string) {
			l.Break(fakenutanix.Fault{Call: actions + "reboot", Status: http.StatusBadGateway, Message: "Bad Gateway"})
		}, mode: soft, action: "reboot", errors: []string{"Transient: cannot reboot the VM", "status 502"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakenutanix.Options{})
			record := &recorder{RoundTripper: fakes.InMemory(l)}
			a, vm, id := rebootable(t, l, record)
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
			if calls, _ := l.Calls(); calls[actions+tc.action] != 1 || len(record.ids) != 1 || uuid.Validate(record.ids[0]) != nil {
				t.Errorf("calls %v with the request IDs %q, want one with a UUID", calls, record.ids)
			}
			if got := l.Reboots(id); !slices.Equal(got, tc.want) {
				t.Errorf("reboots %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAVMRunsWhileATaskRebootsIt follows a VM whose guest ignores a request by ACPI, and which is reset before the task of
// that request ends.
func TestAVMRunsWhileATaskRebootsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(fakenutanix.Options{QueuedFor: time.Minute})
		a, vm, id := rebootable(t, l, fakes.InMemory(l))
		l.Hang(id)
		look(t, a, vm)
		for _, mode := range []machinev1alpha1.RebootMode{machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard} {
			if err := a.Reboot(t.Context(), vm, mode); err != nil {
				t.Fatal(err)
			}
			if seen := look(t, a, vm); seen.State != native.StateRunning || vm.Status.AtProvider.Task == "" {
				t.Errorf("%s: %+v, task %q", mode, seen, vm.Status.AtProvider.Task)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		if seen := look(t, a, vm); seen.State != native.StateRunning || seen.Problem != nil || vm.Status.AtProvider.Task != "" {
			t.Errorf("at the end: %+v, task %q", seen, vm.Status.AtProvider.Task)
		}
		if got := l.Reboots(id); !slices.Equal(got, []string{"Soft", "Hard"}) {
			t.Errorf("reboots %q", got)
		}
	})
}

func TestARebootWhoseTaskFailsIsReported(t *testing.T) {
	l := newLab(fakenutanix.Options{})
	failing("VmReset", "VMM-30128", "INSUFFICIENT_RESOURCES_ERROR", "no host has enough resources")(l)
	a, vm, _ := rebootable(t, l, fakes.InMemory(l))
	look(t, a, vm)
	if err := a.Reboot(t.Context(), vm, machinev1alpha1.RebootHard); err != nil {
		t.Fatal(err)
	}
	const want = "CapacityExhausted: the task VmReset failed: no host has enough resources (VMM-30128, INSUFFICIENT_RESOURCES_ERROR)"
	if seen := look(t, a, vm); seen.Problem == nil || seen.Problem.Error() != want {
		t.Errorf("%+v, want the problem %q", seen, want)
	}
}
