package machine

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestItIsKnownWhoNamesANodeOnceThePipelineDecided(t *testing.T) {
	n := &Nodes{parameters: newMemory[nodekeeper.Memory]()}
	n.parameters.set("undecided", nodekeeper.Memory{})
	for uid, cloudNames := range map[string]bool{"cloud": true, "drover": false} {
		n.parameters.set(types.UID(uid), nodekeeper.Memory{Node: &workernode.WorkerNode{Parameters: workernode.Parameters{CloudNamesNodes: cloudNames}}})
	}
	for uid, want := range map[string][2]bool{"cloud": {true, true}, "drover": {false, true}, "undecided": {}, "unobserved": {}} {
		if isCloud, isKnown := n.CloudNames(types.UID(uid)); isCloud != want[0] || isKnown != want[1] {
			t.Errorf("%s: cloud %t, known %t, want %v", uid, isCloud, isKnown, want)
		}
	}
}
