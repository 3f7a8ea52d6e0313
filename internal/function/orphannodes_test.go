package function

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/names"
)

func TestANodeDecidesAboutItsVM(t *testing.T) {
	const answer = `{"externalName": "vm-1", "node": "web-0-x", "cluster": "ClusterProviderConfig eu", "ready": %t, "problem": %q}`
	for name, tc := range map[string]struct {
		nodes  string
		spared bool
	}{
		"NobodyWasAsked":               {"", true},
		"NobodyAnswered":               {fmt.Sprintf(nodesJSON, 0, ""), true},
		"TheAnswerIsToAnOlderQuestion": {fmt.Sprintf(nodesJSON, 1, fmt.Sprintf(answer, false, "")), true},
		"TheAnswerIsAboutAnotherVM":    {fmt.Sprintf(nodesJSON, 2, `{"externalName": "vm-2"}`), true},
		"TheNodeIsReady":               {fmt.Sprintf(nodesJSON, 2, fmt.Sprintf(answer, true, "")), true},
		"NobodyCouldLook":              {fmt.Sprintf(nodesJSON, 2, fmt.Sprintf(answer, false, "it does not answer")), true},
		"TheNodeIsNotReady":            {fmt.Sprintf(nodesJSON, 2, fmt.Sprintf(answer, false, "")), false},
		"ThereIsNoNode":                {noNode, false},
	} {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{"inventory": fmt.Sprintf(inventoryJSON, "True", 2, "fleet", "web-0", "u-1")}
			if tc.nodes != "" {
				observed["nodes"] = tc.nodes
			}
			if got := servers(callOrphans(t, observed, nil)); (got == "") != tc.spared {
				t.Errorf("desires %q, to be spared: %v", got, tc.spared)
			}
		})
	}
}

func TestNodesAreLookedForByAllThatIsKnown(t *testing.T) {
	rsp := callOrphans(t, map[string]string{"inventory": fmt.Sprintf(inventoryJSON, "True", 2, "fleet", "web-0", "u-1")}, nil)
	nodes := rsp.GetDesired().GetResources()["nodes"].GetResource().AsMap()
	want := map[string]any{
		"apiVersion": "cluster.drover.dev/v1alpha1", "kind": "NodeInventory",
		"metadata": map[string]any{"namespace": "ns", "name": names.Inventory("local", "uid-of-collector"), "labels": map[string]any{"machine.drover.dev/orphan-collector": names.Inventory("local", "uid-of-collector")}},
		"spec": map[string]any{"virtualMachines": []any{map[string]any{
			"externalName": "vm-1", "stage": "Found", "cluster": "eu", "namespace": "fleet", "machineUID": "u-1",
			"nodeName": names.OfMachine("web-0", "u-1"), "providerID": "cloud://vm-1",
		}}},
	}
	if d := cmp.Diff(want, nodes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestNoNodeIsLookedForWithoutAnOrphan(t *testing.T) {
	there := map[string]string{"Machine web-0": `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine", "metadata": {"namespace": "fleet", "name": "web-0", "uid": "u-1"}}`}
	rsp := callOrphans(t, map[string]string{"inventory": fmt.Sprintf(inventoryJSON, "True", 2, "fleet", "web-0", "u-1")}, there)
	if rsp.GetDesired().GetResources()["nodes"] != nil {
		t.Error("it looks for Nodes")
	}
}
