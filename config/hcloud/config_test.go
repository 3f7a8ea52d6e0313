package hcloud

import (
	"testing"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
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
		want   xpv1.Condition
	}{
		"RunningIsReady":            {"running", xpv1.Available()},
		"StartingIsBeingCreated":    {"starting", xpv1.Creating().WithMessage("status: starting")},
		"InitializingToo":           {"initializing", xpv1.Creating().WithMessage("status: initializing")},
		"OffDoesNotComeBack":        {"off", xpv1.Unavailable().WithMessage("status: off")},
		"NorDoesOneThatMigrates":    {"migrating", xpv1.Unavailable().WithMessage("status: migrating")},
		"DeletingIsBeingDeleted":    {"deleting", xpv1.Deleting()},
		"AnUnknownStatusIsNotReady": {"dreaming", xpv1.Creating().WithMessage("status: dreaming")},
		"WithoutStatusItIsNotReady": {nil, xpv1.Creating().WithMessage("status: ")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Ready(map[string]any{"status": tc.status}), cmpopts.IgnoreFields(xpv1.Condition{}, "LastTransitionTime")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
