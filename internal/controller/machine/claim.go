package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// A claim decides which Node is the Machine's. Neither a providerID nor a status proves
// anything: a Node chooses its providerID itself, and a tenant may write a status.
type claim struct {
	// uid of the Machine. The user data that Drover made for its VM has the kubelet register
	// with it, as the identity of the join token.
	uid string
	// name that the VM was given in its user data, empty if the cloud names Nodes.
	name string
	// providerID of the VM, empty while it is not known.
	providerID string
	// claimed is the UID of the Node that the Machine had before. It counts only together
	// with the providerID that the VM resource itself reports.
	claimed string
	// confirmed means that the VM resource, which the Machine controls, reports providerID.
	confirmed bool
}

func claimOf(wn *machineNode) claim {
	c := claim{uid: string(wn.GetUID()), providerID: wn.Parameters.ProviderID, confirmed: wn.confirmed}
	if !wn.Parameters.CloudNamesNodes {
		c.name = names.OfMachine(wn.GetName(), wn.GetUID())
	}
	if ref := wn.Machine.Status.NodeRef; ref != nil {
		c.claimed = ref.UID
	}
	return c
}

// isProven reports whether a Node is that of the Machine.
func (c claim) isProven(node *corev1.Node) bool {
	if c.name != "" && node.GetName() != c.name {
		return false
	}
	if node.GetLabels()[clusterv1alpha1.LabelJoinToken] == c.uid {
		return true
	}
	return c.confirmed && c.claimed != "" && string(node.GetUID()) == c.claimed && node.Spec.ProviderID == c.providerID
}

// isOthers reports whether a Node that is proven has the providerID of another VM: then
// one of the two is wrong, and nothing is done to the Node.
func (c claim) isOthers(node *corev1.Node) bool {
	return node.Spec.ProviderID != "" && c.providerID != "" && node.Spec.ProviderID != c.providerID
}

// find returns the Nodes that are the Machine's: one, as a rule.
func (x *nodeKeeper) find(ctx context.Context, wn *machineNode) ([]*corev1.Node, error) {
	c := claimOf(wn)
	candidates, err := x.nodes(ctx, c.uid, names.OfMachine(wn.GetName(), wn.GetUID()), c.claimed)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(candidates, func(n *corev1.Node) bool { return !c.isProven(n) }), nil
}

// only returns the one Node of the Machine, or nil if there is none.
func only(c claim, nodes []*corev1.Node) (*corev1.Node, error) {
	switch {
	case len(nodes) == 0:
		return nil, nil
	case len(nodes) > 1:
		return nil, fmt.Errorf("the Nodes %s joined with the token of this Machine: delete those that are not of its VM", strings.Join(namesOf(nodes), " and "))
	case c.isOthers(nodes[0]):
		return nil, fmt.Errorf("the Node %s has the providerID %s, and the VM of this Machine has %s: the Node is left alone", nodes[0].GetName(), nodes[0].Spec.ProviderID, c.providerID)
	}
	return nodes[0], nil
}

// withoutOthers separates Nodes from those that have the providerID of another VM.
func withoutOthers(c claim, nodes []*corev1.Node) (own, foreign []*corev1.Node) {
	for _, n := range nodes {
		if c.isOthers(n) {
			foreign = append(foreign, n)
			continue
		}
		own = append(own, n)
	}
	return own, foreign
}

func namesOf(nodes []*corev1.Node) []string {
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, n.GetName())
	}
	slices.Sort(out)
	return out
}
