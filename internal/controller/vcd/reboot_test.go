package vcd

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	fakevcd "github.com/drover-dev/drover/test/fakes/vcd"
)

func TestAReboot(t *testing.T) {
	const soft, hard = machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard
	for name, tc := range map[string]struct {
		lab  func(l *lab, id string)
		mode machinev1alpha1.RebootMode
		// errors are parts of the error, none if there is no error.
		errors []string
		want   []string
	}{
		"OfTheGuest":                  {nil, soft, nil, []string{"Soft"}},
		"OfTheVM":                     {nil, hard, nil, []string{"Hard"}},
		"OfAVMThatIsOffPowersItOn":    {func(l *lab, id string) { l.PowerOff(id) }, soft, nil, []string{"Hard"}},
		"ThatIsHardPowersOnAVM":       {func(l *lab, id string) { l.PowerOff(id) }, hard, nil, []string{"Hard"}},
		"WithoutVMwareToolsHasNoEnd":  {func(l *lab, id string) { l.StopTools(id) }, soft, nil, nil},
		"ThatIsHardNeedsNoTools":      {func(l *lab, id string) { l.StopTools(id) }, hard, nil, []string{"Hard"}},
		"OfABusyVMIsRefused":          {refusing(fakevcd.RebootCall, 400, "BUSY_ENTITY", "The entity vm is busy completing an operation."), soft, []string{"Transient: cannot reboot the VM", "BUSY_ENTITY"}, nil},
		"WithoutTheRightIsRefused":    {refusing(fakevcd.ResetCall, 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN", "You need some or all of the following rights"), hard, []string{"PermissionDenied: cannot reboot the VM", "following rights"}, nil},
		"AboveTheLimitOfTasksIsLater": {refusing(fakevcd.ResetCall, 400, "OPERATION_LIMITS_EXCEEDED", "The maximum number of simultaneous operations has been reached."), hard, []string{"Throttled: cannot reboot the VM"}, nil},
		"BehindABrokenProxyIsUnknown": {refusing(fakevcd.RebootCall, http.StatusBadGateway, "", "Bad Gateway"), soft, []string{"Transient: cannot reboot the VM", "status 502"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakevcd.Options{})
			id := l.Create(organization, username, "vm-1", "Drover VM", nil)
			if tc.lab != nil {
				tc.lab(l, id)
			}
			account, err := open(fakes.InMemory(l), time.Now)(configuration(), l.credentials())
			if err != nil {
				t.Fatal(err)
			}
			vm := newVM("vm-1", nil)
			meta.SetExternalName(vm, id)
			if _, err := account.Get(t.Context(), vm, time.Time{}); err != nil {
				t.Fatal(err)
			}
			err = account.Reboot(t.Context(), vm, tc.mode)
			if (err == nil) != (tc.errors == nil) {
				t.Errorf("error %v, want %q", err, tc.errors)
			}
			for _, part := range tc.errors {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q", err, part)
				}
			}
			if got := l.reboots("vm-1"); !slices.Equal(got, tc.want) {
				t.Errorf("reboots %q, want %q", got, tc.want)
			}
			if vm.Status.AtProvider.Task != "" {
				t.Errorf("the task %s is recorded: the VM counts as busy", vm.Status.AtProvider.Task)
			}
		})
	}
}

func refusing(call string, status int, code, message string) func(*lab, string) {
	return func(l *lab, _ string) {
		l.Break(fakevcd.Fault{Call: call, Status: status, Code: code, Message: message})
	}
}

func TestAVMThatDoesNotRunIsPoweredOn(t *testing.T) {
	for status, want := range map[int]string{statusPoweredOn: powerReset, statusSuspended: powerOn, statusPoweredOff: powerOn, statusPartlyOff: powerOn} {
		if got := rebootOf(machine{Status: status}, machinev1alpha1.RebootHard); got != want {
			t.Errorf("%s: %s, want %s", textOf(status), got, want)
		}
	}
}

func TestAVMThatWasNotReadIsNotRebooted(t *testing.T) {
	l := newLab(fakevcd.Options{})
	id := l.Create(organization, username, "vm-1", "Drover VM", nil)
	account, err := open(fakes.InMemory(l), time.Now)(configuration(), l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vm := newVM("vm-1", nil)
	meta.SetExternalName(vm, id)
	if err := account.Reboot(t.Context(), vm, machinev1alpha1.RebootHard); err == nil || !strings.Contains(err.Error(), "was not read") {
		t.Errorf("error %v", err)
	}
	if calls, n := l.Calls(); n != 0 {
		t.Errorf("calls %v", calls)
	}
}
