package hcloud

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheServerIsAllThatIsLifted(t *testing.T) {
	pc, err := Provider()
	if err != nil {
		t.Fatal(err)
	}
	if len(pc.Resources) != 1 || pc.Resources[Server] == nil {
		t.Fatalf("resources %v", pc.Resources)
	}
	r := pc.Resources[Server]
	if r.Kind != "VirtualMachine" || r.Version != "v1alpha1" || r.ShortGroup != "" || r.UseAsync || !r.ShouldUseTerraformPluginSDKClient() {
		t.Errorf("configured as %s %s, group %q", r.Version, r.Kind, r.ShortGroup)
	}
	for field, s := range r.TerraformResource.Schema {
		if (s.Optional || s.Required) && s.Description == "" {
			t.Errorf("%s can be set, and nothing says what it is", field)
		}
	}
	for _, field := range []string{"delete_protection", "datacenter", "shutdown_before_deletion"} {
		if s := r.TerraformResource.Schema[field]; s.Optional || s.Required {
			t.Errorf("%s can be set", field)
		}
	}
}

func TestReady(t *testing.T) {
	cases := map[string]struct {
		status any
		want   xpv2.Condition
	}{
		"RunningIsReady":            {"running", xpv2.Available()},
		"StartingIsBeingCreated":    {"starting", xpv2.Creating().WithMessage("status: starting")},
		"InitializingToo":           {"initializing", xpv2.Creating().WithMessage("status: initializing")},
		"OffDoesNotComeBack":        {"off", xpv2.Unavailable().WithMessage("status: off")},
		"NorDoesOneThatMigrates":    {"migrating", xpv2.Unavailable().WithMessage("status: migrating")},
		"DeletingIsBeingDeleted":    {"deleting", xpv2.Deleting()},
		"AnUnknownStatusIsNotReady": {"dreaming", xpv2.Creating().WithMessage("status: dreaming")},
		"WithoutStatusItIsNotReady": {nil, xpv2.Creating().WithMessage("status: ")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Ready(map[string]any{"status": tc.status}), cmpopts.IgnoreFields(xpv2.Condition{}, "LastTransitionTime")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
