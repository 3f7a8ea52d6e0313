package bootstrap

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/osprofile"
	"github.com/drover-dev/drover/internal/plan"
)

func composition(input map[string]any) plan.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pipeline": []any{map[string]any{"step": "a", "input": input}}}}}
	o.SetName("machine-a")
	return plan.Object{Unstructured: o}
}

func TestCheck(t *testing.T) {
	bootstrap := func(fields map[string]any) map[string]any {
		in := map[string]any{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Bootstrap"}
		for k, v := range fields {
			in[k] = v
		}
		return in
	}
	cases := map[string]struct {
		reason       string
		input        map[string]any
		profile      string
		provisioning machinev1alpha1.ProvisioningFormat
		parameters   map[string]string
		want         string
	}{
		"Fits":               {"the class can be used", bootstrap(map[string]any{"maxUserDataBytes": int64(65536)}), "debian-12-v1", "", nil, ""},
		"NoStep":             {"nothing is known of the user data", map[string]any{"kind": "Other"}, "", "", nil, ""},
		"TooLarge":           {"the cloud would refuse the VM", bootstrap(map[string]any{"maxUserDataBytes": int64(2048)}), "debian-12-v1", "", nil, `UserDataTooLarge: class "small": the user data has `},
		"WrongFormat":        {"the image would not read it", bootstrap(nil), "debian-12-v1", machinev1alpha1.Ignition, nil, `UserDataInvalid: class "small": class.spec.operatingSystem.provisioning: Unsupported value: "Ignition": supported values: "CloudInit"`},
		"FormatOfTheProfile": {"the class need not name it", bootstrap(nil), "flatcar-v1", "", nil, ""},
		"Parameter":          {"a step would fail", bootstrap(nil), "debian-12-v1", "", map[string]string{"extraPackages": "a; reboot"}, `UserDataInvalid: class "small": class.spec.operatingSystem.parameters[extraPackages]: Invalid value: "a; reboot"`},
		"BrokenInput":        {"no Machine would be created", bootstrap(map[string]any{"maxUserDataBytes": "many"}), "", "", nil, `BindingInvalid: Composition "machine-a", input Bootstrap: `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := class("")
			c.Spec.OperatingSystem = machinev1alpha1.OperatingSystem{Provisioning: tc.provisioning, Parameters: tc.parameters}
			p := Check(composition(tc.input), Observed{Machine: machine(""), Class: c, Profile: osprofile.BuiltIn(tc.profile)})
			got := ""
			if p != nil {
				got = p.Reason + ": " + p.Message
			}
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
