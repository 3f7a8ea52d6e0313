package machine

import (
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/workernode"
)

// Nodes are the Nodes of Machines as this process knows them.
type Nodes struct{ parameters *memory[nodekeeper.Memory] }

// Identity returns the identity of a VM that a Machine took over, nil if the VM is its own. It returns false if
// this process has not reconciled the Machine yet.
func (n *Nodes) Identity(uid types.UID) (*machinev1alpha1.MachineIdentity, bool) {
	m, ok := n.parameters.get(uid)
	return m.Identity, ok
}

// Addresses returns the addresses of a Machine's VM, as its cloud reports them, and the name of the Node that
// was proven to be the Machine's, empty if none was. It returns false if this process has not reconciled the
// Machine yet. Neither comes from a status, nor from the Node itself.
func (n *Nodes) Addresses(uid types.UID) (addresses []workernode.Address, joined string, ok bool) {
	m, ok := n.parameters.get(uid)
	if m.Node != nil {
		addresses = m.Node.Parameters.Addresses
	}
	return addresses, m.Proven, ok
}
