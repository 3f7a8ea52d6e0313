package azure

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	fakeazure "github.com/drover-dev/drover/test/fakes/azure"
)

func TestAReboot(t *testing.T) {
	const soft, hard = machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard
	for name, tc := range map[string]struct {
		lab    func(l *lab)
		change func(*v1alpha1.VirtualMachineParameters)
		mode   machinev1alpha1.RebootMode
		// errors are parts of the error, none if there is no error.
		errors []string
		want   []string
	}{
		"OfTheGuest":                {nil, nil, soft, nil, []string{"Soft"}},
		"OfTheVM":                   {nil, nil, hard, nil, []string{"Hard"}},
		"OfAStoppedVMStartsIt":      {func(l *lab) { l.PowerOff("vm-1") }, nil, soft, nil, []string{"Hard"}},
		"ThatIsHardStartsAVM":       {func(l *lab) { l.PowerOff("vm-1") }, nil, hard, nil, []string{"Hard"}},
		"OfTheGuestOfAnEphemeralVM": {nil, ephemeral, soft, nil, []string{"Soft"}},
		"OfAnEphemeralVMIsRefused":  {nil, ephemeral, hard, []string{"InvalidRequest: a hard reboot of Azure moves the VM to another host", "ephemeral OS disk"}, nil},
		"WithoutTheRightIsRefused":  {func(l *lab) { l.deny("Microsoft.Compute/virtualMachines/restart/action") }, nil, soft, []string{"PermissionDenied: cannot reboot the VM", "restart/action"}, nil},
		"OfALostVMIsNone":           {func(l *lab) { l.Lose("vm-1") }, nil, hard, []string{"Transient: VM vm-1 does not exist"}, nil},
		"ThatIsThrottledIsLater":    {func(l *lab) { l.Throttle(time.Hour) }, nil, hard, []string{"Throttled"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, fakeazure.Options{Step: time.Minute})
				account, vm := running(t, l, tc.change)
				if tc.lab != nil {
					tc.lab(l)
				}
				err := account.Reboot(t.Context(), vm, tc.mode)
				if (err == nil) != (tc.errors == nil) {
					t.Errorf("error %v, want %q", err, tc.errors)
				}
				for _, part := range tc.errors {
					if err != nil && !strings.Contains(err.Error(), part) {
						t.Errorf("error %q, want %q", err, part)
					}
				}
				time.Sleep(2 * time.Minute)
				if got := l.reboots("vm-1"); !slices.Equal(got, tc.want) {
					t.Errorf("reboots %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func ephemeral(p *v1alpha1.VirtualMachineParameters) {
	placement := "CacheDisk"
	p.OSDisk = &v1alpha1.OSDisk{EphemeralPlacement: &placement}
}

// running returns an account with a VM that runs.
func running(t *testing.T, l *lab, change func(*v1alpha1.VirtualMachineParameters)) (native.Account[*v1alpha1.VirtualMachine], *v1alpha1.VirtualMachine) {
	t.Helper()
	c := cloudOf(l)
	account, err := c.Provider.Open(c.Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vm := newVM(l, "vm-1", nil)
	vm.SetUID("0b0e7d2c-6a52-4a0b-9b53-000000000001")
	if change != nil {
		change(&vm.Spec.ForProvider)
	}
	meta.SetExternalName(vm, string(vm.UID))
	meta.SetExternalCreatePending(vm, time.Now())
	if err := account.Create(t.Context(), vm, noUserData); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Minute) // It runs.
	if seen, err := account.Get(t.Context(), vm, time.Now()); err != nil || seen.State != native.StateRunning {
		t.Fatalf("observed %+v, %v", seen, err)
	}
	return account, vm
}
