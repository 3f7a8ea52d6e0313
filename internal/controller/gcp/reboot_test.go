package gcp

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	fakegcp "github.com/drover-dev/drover/test/fakes/gcp"
)

func TestAReboot(t *testing.T) {
	const soft, hard = machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard
	for name, tc := range map[string]struct {
		lab  func(l *lab)
		mode machinev1alpha1.RebootMode
		// errors are parts of the error, none if there is no error.
		errors []string
		want   []string
	}{
		"OfTheGuestDoesNotExist":       {nil, soft, []string{"InvalidRequest: the operating system of an instance of Compute Engine cannot be asked to restart"}, nil},
		"OfTheInstance":                {nil, hard, nil, []string{"Hard"}},
		"OfAStoppedInstanceStartsIt":   {func(l *lab) { l.PowerOff("vm-1") }, soft, nil, []string{"Hard"}},
		"ThatIsHardStartsAnInstance":   {func(l *lab) { l.PowerOff("vm-1") }, hard, nil, []string{"Hard"}},
		"WithoutTheRightIsRefused":     {func(l *lab) { l.deny("compute.instances.reset") }, hard, []string{"PermissionDenied: cannot reboot the instance", "compute.instances.reset"}, nil},
		"OfALostInstanceIsNone":        {func(l *lab) { l.Lose("vm-1") }, hard, []string{"Transient: instance vm-1 does not exist"}, nil},
		"OfAChangingInstanceIsRefused": {func(l *lab) { l.Preempt("vm-1") }, hard, []string{"Transient: instance vm-1 has the status STOPPING"}, nil},
		"ThatIsThrottledIsLater":       {func(l *lab) { l.Throttle(time.Hour) }, hard, []string{"Throttled"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, fakegcp.Options{Step: time.Minute})
				id := l.Create("vm-1", zone, nil)
				if tc.lab != nil {
					tc.lab(l)
				}
				account, err := open(fakes.InMemory(l), time.Now)(cloudOf(l).Config, l.credentials())
				if err != nil {
					t.Fatal(err)
				}
				vm := newVM("vm-1", nil)
				vm.SetUID("0b0e7d2c-6a52-4a0b-9b53-000000000001")
				meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationReboot: machinev1alpha1.RebootRequest(tc.mode, "one")})
				at := &vm.Status.AtProvider
				at.InstanceID, at.InstanceName, at.Zone = id, "vm-1", zone
				// The second call has the same request ID, and must have no effect.
				for range 2 {
					err = account.Reboot(t.Context(), vm, tc.mode)
					if (err == nil) != (tc.errors == nil) {
						t.Errorf("error %v, want %q", err, tc.errors)
					}
					for _, part := range tc.errors {
						if err != nil && !strings.Contains(err.Error(), part) {
							t.Errorf("error %q, want %q", err, part)
						}
					}
					if tc.errors == nil && len(l.reboots("vm-1")) == 0 {
						time.Sleep(2 * time.Minute) // It starts.
						break
					}
				}
				if got := l.reboots("vm-1"); !slices.Equal(got, tc.want) {
					t.Errorf("reboots %q, want %q", got, tc.want)
				}
			})
		})
	}
}
