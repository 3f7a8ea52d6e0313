package machine

import "k8s.io/apimachinery/pkg/types"

// CloudNames reports whether the cloud names the Node of a Machine, by the Composition that the Machine
// followed last in this process. It is unknown until the pipeline has decided on a Node.
func (n *Nodes) CloudNames(uid types.UID) (isCloud, isKnown bool) {
	m, ok := n.parameters.get(uid)
	if !ok || m.Node == nil {
		return false, false
	}
	return m.Node.Parameters.CloudNamesNodes, true
}
