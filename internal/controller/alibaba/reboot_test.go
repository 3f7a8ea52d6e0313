package alibaba

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	fakealibaba "github.com/drover-dev/drover/test/fakes/alibaba"
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
		"OfTheGuest":                   {nil, soft, nil, []string{"Soft"}},
		"OfTheInstance":                {nil, hard, nil, []string{"Hard"}},
		"OfAStoppedInstanceStartsIt":   {func(l *lab, id string) { l.PowerOff(id) }, soft, nil, []string{"Hard"}},
		"ThatIsHardStartsAnInstance":   {func(l *lab, id string) { l.PowerOff(id) }, hard, nil, []string{"Hard"}},
		"WithoutTheRightIsRefused":     {func(l *lab, _ string) { l.deny("RebootInstance") }, soft, []string{"PermissionDenied: cannot reboot instance", "Forbidden.RAM"}, nil},
		"OfALockedInstanceIsRefused":   {func(l *lab, id string) { l.Lock(id, "security") }, hard, []string{"cannot reboot instance", "InstanceLockedForSecurity"}, nil},
		"OfALostInstanceIsNone":        {func(l *lab, id string) { l.Lose(id) }, hard, []string{"Transient", "is not listed"}, nil},
		"OfAChangingInstanceIsRefused": {refusing("IncorrectInstanceStatus"), soft, []string{"Transient: cannot reboot instance", "IncorrectInstanceStatus"}, nil},
		"ThatIsThrottledIsLater":       {func(l *lab, _ string) { l.Throttle(time.Hour) }, soft, []string{"Throttled"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(fakealibaba.Options{})
				id := l.Create(accountID, "vm-1", nil)
				if tc.lab != nil {
					tc.lab(l, id)
				}
				c := cloudOf(l)
				account, err := open(fakes.InMemory(l), time.Now)(c.Config, l.credentials())
				if err != nil {
					t.Fatal(err)
				}
				vm := newVM("vm-1", nil)
				meta.SetExternalName(vm, id)
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
			})
		})
	}
}

// TestAnInstanceThatRestartsIsNotReadyForAMoment follows the states that ECS reports.
func TestAnInstanceThatRestartsIsNotReadyForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rebooted []string
		l := newLab(fakealibaba.Options{Step: time.Minute, Reboot: func(b fakealibaba.Booted) { rebooted = append(rebooted, b.ID) }})
		id := l.Create(accountID, "vm-1", nil)
		account, err := open(fakes.InMemory(l), time.Now)(cloudOf(l).Config, l.credentials())
		if err != nil {
			t.Fatal(err)
		}
		vm := newVM("vm-1", nil)
		meta.SetExternalName(vm, id)
		if err := account.Reboot(t.Context(), vm, machinev1alpha1.RebootSoft); err != nil {
			t.Fatal(err)
		}
		var states []string
		for range 2 {
			seen, err := account.Get(t.Context(), vm, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, string(seen.State)+" "+seen.Text)
			if err := account.Reboot(t.Context(), vm, machinev1alpha1.RebootHard); seen.Text == "Starting" && (err == nil || !strings.HasPrefix(err.Error(), "Transient")) {
				t.Errorf("a reset of an instance that starts: %v", err)
			}
			time.Sleep(2 * time.Minute)
		}
		if want := []string{"Creating Starting", "Running Running"}; !slices.Equal(states, want) {
			t.Errorf("states %q, want %q", states, want)
		}
		if l.Instances(); len(rebooted) != 2 {
			t.Errorf("reboots %q, want two of %s", rebooted, id)
		}
	})
}

func refusing(code string) func(*lab, string) {
	return func(l *lab, _ string) {
		l.Break(fakealibaba.Fault{Call: "RebootInstance", Status: 403, Code: code, Message: "The current status of the resource does not support this operation."})
	}
}
