package openstack

import (
	"slices"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLiftedResources(t *testing.T) {
	pc, err := Provider()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		kind string
		// hidden fields cannot be set.
		hidden []string
		// required fields beside those of Terraform.
		required []string
	}{
		Instance:   {"VirtualMachine", []string{"admin_pass", "power_state", "personality"}, nil},
		Port:       {"Port", []string{"device_id", "device_owner", "tenant_id", "value_specs"}, []string{"name", "description"}},
		FloatingIP: {"FloatingIP", []string{"tenant_id", "value_specs"}, []string{"description", "port_id"}},
	}
	if len(pc.Resources) != len(cases) {
		t.Errorf("%d resources, want %d", len(pc.Resources), len(cases))
	}
	for name, tc := range cases {
		t.Run(tc.kind, func(t *testing.T) {
			r := pc.Resources[name]
			if r == nil {
				t.Fatalf("resources %v", pc.Resources)
			}
			if r.Kind != tc.kind || r.Version != "v1alpha1" || r.ShortGroup != "" || r.UseAsync || !r.ShouldUseTerraformPluginSDKClient() {
				t.Errorf("configured as %s %s, group %q", r.Version, r.Kind, r.ShortGroup)
			}
			for field, s := range r.TerraformResource.Schema {
				if (s.Optional || s.Required) && s.Description == "" {
					t.Errorf("%s can be set, and has no description", field)
				}
			}
			for _, field := range tc.hidden {
				if s := r.TerraformResource.Schema[field]; s.Optional || s.Required {
					t.Errorf("%s can be set", field)
				}
			}
			for _, field := range tc.required {
				if !slices.Contains(r.RequiredFields(), field) {
					t.Errorf("%s is not required", field)
				}
			}
		})
	}
}

func TestPortReady(t *testing.T) {
	if c := PortReady(map[string]any{"id": "p"}); !c.Equal(xpv2.Available()) {
		t.Errorf("a port that exists is %+v", c)
	}
	if c := PortReady(map[string]any{}); !c.Equal(xpv2.Creating()) {
		t.Errorf("a port without an ID is %+v", c)
	}
}

func TestFloatingIPReady(t *testing.T) {
	cases := map[string]struct {
		state map[string]any
		want  xpv2.Condition
	}{
		"WithAPort":      {map[string]any{"address": "203.0.113.7", "port_id": "p"}, xpv2.Available()},
		"WithoutAPort":   {map[string]any{"address": "203.0.113.7", "port_id": ""}, xpv2.Unavailable().WithMessage("the floating IP leads to no port")},
		"WithoutAddress": {map[string]any{}, xpv2.Creating()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FloatingIPReady(tc.state); !got.Equal(tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
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
