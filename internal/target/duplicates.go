package target

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// NodesOfVM returns the Nodes that have a providerID, from the cache of Nodes: there may be
// several, since a kubelet chooses the providerID of its Node. They must not be changed.
func (c *Conn) NodesOfVM(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	n, err := c.link.watch(c.Ref, signersOf(c.Spec.Certificates))
	if err != nil {
		return nil, err
	}
	if err := n.synced(ctx); err != nil {
		return nil, c.Classify(err)
	}
	objs, err := n.informer.GetIndexer().ByIndex(byProviderID, providerID)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Node
	for _, obj := range objs {
		if node, ok := obj.(*corev1.Node); ok {
			out = append(out, node)
		}
	}
	return out, nil
}
