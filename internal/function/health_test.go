package function

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
)

// TestTheHealthOfATemplate shows that a profile of a user is required by its name, and that the Composition decides whether
// Machines can be rebooted.
func TestTheHealthOfATemplate(t *testing.T) {
	class := &machinev1alpha1.MachineClass{Spec: machinev1alpha1.MachineClassSpec{Provider: "test"}}
	next := &machinev1alpha1.Machine{}
	next.Spec.Health = machinev1alpha1.Health{Profiles: []string{"acme-v1", "kubelet-v1"}}
	acme := resource.MustStructJSON(`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "HealthProfile", "metadata": {"name": "acme-v1"},
		"spec": {"conditions": [{"type": "FabricDown", "status": "True", "action": "Reboot"}]}}`)
	required := func(items ...*fnv1.Resource) *fnv1.RunFunctionRequest {
		return &fnv1.RunFunctionRequest{RequiredResources: map[string]*fnv1.Resources{"health-profile-acme-v1": {Items: items}}}
	}
	rsp := step.NewResponse(&fnv1.RunFunctionRequest{})
	if _, looked := observeHealthOf(&fnv1.RunFunctionRequest{}, rsp, next, class, composition(t, nil)); looked {
		t.Error("Crossplane has not looked for the profile")
	}
	if got := rsp.GetRequirements().GetResources(); len(got) != 1 || got["health-profile-acme-v1"].GetKind() != "HealthProfile" || got["health-profile-acme-v1"].GetMatchName() != "acme-v1" {
		t.Errorf("required: %v", got)
	}
	reboots := composition(t, func(in map[string]any) { in["virtualMachine"].(map[string]any)["reboot"] = true })
	for name, tc := range map[string]struct {
		req         *fnv1.RunFunctionRequest
		composition plan.Object
		want        []string
	}{
		"AProviderThatCannotReboot": {required(&fnv1.Resource{Resource: acme}), composition(t, nil), []string{machinev1alpha1.ReasonRebootNotSupported}},
		"AProviderThatCan":          {required(&fnv1.Resource{Resource: acme}), reboots, nil},
		"AProfileThatIsNotThere":    {required(), reboots, []string{machinev1alpha1.ReasonHealthProfileNotFound}},
		"ACompositionOfAnotherKind": {required(&fnv1.Resource{Resource: acme}), plan.Object{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			problems, looked := observeHealthOf(tc.req, step.NewResponse(tc.req), next, class, tc.composition)
			if !looked || len(problems) != len(tc.want) || len(tc.want) > 0 && problems[0].Reason != tc.want[0] {
				t.Errorf("problems %+v, want %q", problems, tc.want)
			}
		})
	}
}
