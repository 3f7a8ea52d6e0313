package terraform

import (
	"testing"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
)

func TestAVMRunsUnlessItsStateShowsOtherwise(t *testing.T) {
	cases := map[string]struct {
		reason  string
		running string
		state   map[string]any
		want    bool
	}{
		"NoExpression": {"a VM that exists runs", "", map[string]any{}, true},
		"Null":         {"a state that does not show it is no sign that the VM is off", `state.power`, map[string]any{"power": nil}, true},
		"Off":          {"the state shows that the VM is off", `state.power == "on"`, map[string]any{"power": "off"}, false},
		"On":           {"the state shows that the VM is on", `state.power == "on"`, map[string]any{"power": "on"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := bind(0, v1alpha1.VirtualMachineType{Outputs: v1alpha1.Outputs{ProviderID: `"id"`, Running: tc.running}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.read("vm-1", tc.state)
			if err != nil || got.running != tc.want {
				t.Errorf("%s: running is %t, want %t: %v", tc.reason, got.running, tc.want, err)
			}
		})
	}
}
