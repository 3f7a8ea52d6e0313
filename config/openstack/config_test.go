package openstack

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheInstanceIsAllThatIsLifted(t *testing.T) {
	pc, err := Provider()
	if err != nil {
		t.Fatal(err)
	}
	if len(pc.Resources) != 1 || pc.Resources[Instance] == nil {
		t.Fatalf("resources %v", pc.Resources)
	}
	r := pc.Resources[Instance]
	if r.Kind != "VirtualMachine" || r.Version != "v1alpha1" || r.ShortGroup != "" || r.UseAsync || !r.ShouldUseTerraformPluginSDKClient() {
		t.Errorf("configured as %s %s, group %q", r.Version, r.Kind, r.ShortGroup)
	}
	for field, s := range r.TerraformResource.Schema {
		if (s.Optional || s.Required) && s.Description == "" {
			t.Errorf("%s can be set, and nothing says what it is", field)
		}
	}
	for _, field := range []string{"admin_pass", "power_state", "personality"} {
		if s := r.TerraformResource.Schema[field]; s.Optional || s.Required {
			t.Errorf("%s can be set", field)
		}
	}
}

func TestReady(t *testing.T) {
	cases := map[string]struct {
		state any
		want  xpv2.Condition
	}{
		"ActiveIsReady":          {"active", xpv2.Available()},
		"BuildIsBeingCreated":    {"build", xpv2.Creating().WithMessage("power state: build")},
		"ErrorDoesNotComeBack":   {"error", xpv2.Unavailable().WithMessage("power state: error")},
		"NorDoesWhatIsShutOff":   {"shutoff", xpv2.Unavailable().WithMessage("power state: shutoff")},
		"WithoutOneItIsNotReady": {nil, xpv2.Creating().WithMessage("power state: ")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Ready(map[string]any{"power_state": tc.state}), cmpopts.IgnoreFields(xpv2.Condition{}, "LastTransitionTime")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
