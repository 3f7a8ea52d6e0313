package metalstack

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	fakemetal "github.com/drover-dev/drover/test/fakes/metalstack"
)

func TestAReboot(t *testing.T) {
	const soft, hard = machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard
	off := func(l *lab, id string) { l.PowerOff(id) }
	refusing := func(status int, message string) func(*lab, string) {
		return func(l *lab, _ string) {
			l.Break(fakemetal.Fault{Call: fakemetal.ResetCall, Status: status, Message: message})
		}
	}
	for name, tc := range map[string]struct {
		lab  func(l *lab, id string)
		mode machinev1alpha1.RebootMode
		// errors are parts of the error, none if there is no error.
		errors []string
		want   int
	}{
		"ThatIsHardResetsTheMachine":     {nil, hard, nil, 1},
		"ThatIsSoftIsRefused":            {nil, soft, []string{"InvalidRequest: metal-stack cannot ask the operating system"}, 0},
		"ThatIsSoftPowersOnAMachine":     {off, soft, nil, 1},
		"ThatIsHardPowersOnAMachine":     {off, hard, nil, 1},
		"OfALockedMachineResetsIt":       {func(l *lab, id string) { l.SetState(id, "LOCKED", "") }, hard, nil, 1},
		"OfAFreedMachineIsNone":          {func(l *lab, id string) { l.Free(id) }, hard, []string{"Transient: the machine is no longer allocated"}, 0},
		"OfAMachineOfAnotherOwnerIsNone": {func(l *lab, id string) { l.Free(id); l.Take(id, fakemetal.Project, "vm-1") }, hard, []string{"Transient: the machine is no longer allocated"}, 0},
		"WithTheKeyOfAViewerIsRefused":   {refusing(403, "you are not member in one of [k8s_kaas-edit]"), hard, []string{"PermissionDenied: cannot reboot machine", "not member"}, 0},
		"WithAFailingDatabaseIsUnknown":  {refusing(422, "rethinkdb: connection closed"), hard, []string{"Transient: cannot reboot machine", "rethinkdb"}, 0},
		"BehindABrokenProxyIsUnknown":    {refusing(http.StatusBadGateway, "Bad Gateway"), hard, []string{"Transient: cannot reboot machine", "status 502"}, 0},
		"OfAMachineThatCannotBeReadIsLater": {func(l *lab, _ string) {
			l.Break(fakemetal.Fault{Call: "GET /metal/v1/machine/{id}", Status: 500, Message: "deadline exceeded"})
		}, hard, []string{"Transient: cannot read machine"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakemetal.Options{})
			a := openOf(t, l)
			id, allocation := l.TakeAny(fakemetal.Project, "vm-1")
			if tc.lab != nil {
				tc.lab(l, id)
			}
			vm := newVM("vm-1", nil)
			meta.SetExternalName(vm, id+"/"+allocation)
			err := a.Reboot(t.Context(), vm, tc.mode)
			if (err == nil) != (tc.errors == nil) {
				t.Errorf("error %v, want %q", err, tc.errors)
			}
			for _, part := range tc.errors {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q", err, part)
				}
			}
			if got := l.reboots("vm-1"); !slices.Equal(got, slices.Repeat([]string{"Hard"}, tc.want)) {
				t.Errorf("reboots %q, want %d", got, tc.want)
			}
		})
	}
}
