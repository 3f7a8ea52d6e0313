package vm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/plan"
)

func TestVerdictOfAnInventory(t *testing.T) {
	report := func(name, state, text string) *plan.InventoryReport {
		return &plan.InventoryReport{Inventory: "VirtualMachineInventory ns/aws", ExternalName: name, State: state, Text: text, Since: "2030-01-01T12:00:00Z"}
	}
	named := map[string]string{"crossplane.io/external-name": "i-1"}
	cases := map[string]struct {
		report *plan.InventoryReport
		vm     plan.Object
		want   *plan.Verdict
	}{
		"NoReport":   {nil, vm(named, nil), nil},
		"MissingVM":  {report("i-1", plan.InventoryMissing, ""), vm(named, nil), &plan.Verdict{State: plan.VMLost, Message: "the cloud has not listed VM i-1 since 2030-01-01T12:00:00Z (VirtualMachineInventory ns/aws)"}},
		"StoppedVM":  {report("i-1", plan.InventoryStopped, "deallocated"), vm(named, nil), &plan.Verdict{State: plan.VMFailed, Message: "VM i-1 has been stopped since 2030-01-01T12:00:00Z (deallocated) (VirtualMachineInventory ns/aws)"}},
		"FailedVM":   {report("i-1", plan.InventoryFailed, "AllocationFailed"), vm(named, nil), &plan.Verdict{State: plan.VMFailed, Message: "the cloud could not create VM i-1 (AllocationFailed) (VirtualMachineInventory ns/aws)"}},
		"AnotherVM":  {report("i-2", plan.InventoryMissing, ""), vm(named, nil), nil},
		"UnnamedVM":  {report("", plan.InventoryMissing, ""), vm(nil, nil), nil},
		"OtherState": {report("i-1", "Running", ""), vm(named, nil), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdictOf(tc.report, tc.vm)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
