package nodekeeper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/workernode"
)

// A claim decides which Node is the Machine's. Neither a providerID nor a status proves anything alone: a
// kubelet chooses the providerID of its Node, and a tenant may write a status.
type claim struct {
	// uid of the Machine. The user data that Drover made for its VM has the kubelet register
	// with it, as the identity of the join token.
	uid string
	// name that the VM was given in its user data. If the cloud names Nodes, it is the name of the Machine's Node,
	// empty while it has none.
	name string
	// cloudNames means that the cloud names Nodes: the name is no proof before a Node is
	// recorded.
	cloudNames bool
	// providerID of the VM, empty while it is not known.
	providerID string
	// recorded is the UID of the Node that the status names. It decides between proven Nodes, and proves none.
	recorded string
	// confirmed means that the VM resource, which the Machine controls, reports providerID.
	confirmed bool
	// ownUserData means that Drover did not write the user data, or did not make the VM, so that
	// the kubelet may register without the UID of the Machine.
	ownUserData bool
}

func claimOf(wn *Node) claim {
	c := claim{
		uid: string(identity.UID(wn.Machine)), providerID: wn.Parameters.ProviderID, confirmed: wn.Confirmed, ownUserData: wn.OwnUserData || identity.IsImported(wn.Machine),
		name: identity.NodeName(wn.Machine), cloudNames: wn.Parameters.CloudNamesNodes,
	}
	if c.cloudNames {
		c.name = ""
	}
	if ref := wn.Machine.Status.NodeRef; ref != nil {
		c.recorded = ref.UID
		if c.cloudNames {
			c.name = ref.Name
		}
	}
	return c
}

// isProven reports whether a Node is the Machine's. Any kubelet can put the UID of the Machine into the label
// of its own Node, so that the name must match as well: no kubelet can choose that. If the cloud names Nodes,
// the recorded Node is the Machine's, and before one is recorded, the Node with the providerID that the VM
// resource reports. A kubelet whose user data Drover did not write may register without the label: then its
// Node needs the name and the providerID, and must not have the label of another Machine.
func (c claim) isProven(node *corev1.Node) bool {
	if c.name != "" && node.GetName() != c.name {
		return false
	}
	isRecorded := c.recorded != "" && string(node.GetUID()) == c.recorded
	isOfVM := c.confirmed && c.providerID != "" && node.Spec.ProviderID == c.providerID
	if c.hasToken(node) {
		return !c.cloudNames || isRecorded || isOfVM
	}
	if c.ownUserData && !c.cloudNames && node.GetLabels()[clusterv1alpha1.LabelJoinToken] == "" {
		return isOfVM
	}
	return isRecorded && isOfVM
}

func (c claim) hasToken(node *corev1.Node) bool {
	return node.GetLabels()[clusterv1alpha1.LabelJoinToken] == c.uid
}

// isOthers reports whether a proven Node has the providerID of another VM: one of the two is wrong, and the
// Node must not be touched.
func (c claim) isOthers(node *corev1.Node) bool {
	return node.Spec.ProviderID != "" && c.providerID != "" && node.Spec.ProviderID != c.providerID
}

// candidates are the Nodes that may be the Machine's, or that claim to be.
type candidates struct {
	claim
	// proven Nodes, usually one.
	proven []*corev1.Node
	// pretenders have the token or the providerID, and are not proven.
	pretenders []*corev1.Node
	// unproven has the name of the Machine's Node, but neither its token nor its providerID. It is nil if there is
	// none.
	unproven *corev1.Node
}

// find the Nodes that are the Machine's.
func (x *Keeper) find(ctx context.Context, wn *Node) (candidates, error) {
	f := candidates{claim: claimOf(wn)}
	found, err := x.Nodes(ctx, f.uid, identity.NodeName(wn.Machine), f.recorded)
	if err == nil && x.OfVM != nil && f.confirmed {
		var ofVM []*corev1.Node
		ofVM, err = x.OfVM(ctx, f.providerID)
		found = append(found, ofVM...)
	}
	if err != nil {
		return f, err
	}
	known := map[types.UID]bool{}
	for _, n := range found {
		if known[n.GetUID()] {
			continue
		}
		known[n.GetUID()] = true
		switch {
		case f.isProven(n):
			f.proven = append(f.proven, n)
		case f.hasToken(n) || f.confirmed && n.Spec.ProviderID == f.providerID:
			f.pretenders = append(f.pretenders, n)
		}
		if !f.cloudNames && n.GetName() == f.name && !f.isProven(n) {
			f.unproven = n
		}
	}
	// Of two proven Nodes, the recorded one is the Machine's.
	if i := slices.IndexFunc(f.proven, func(n *corev1.Node) bool { return f.recorded != "" && string(n.GetUID()) == f.recorded }); i >= 0 {
		others := slices.Delete(slices.Clone(f.proven), i, i+1)
		f.proven, f.pretenders = []*corev1.Node{f.proven[i]}, append(f.pretenders, others...)
	}
	return f, nil
}

// own returns the one Node of the Machine, or nil if there is none.
func (f candidates) own() (*corev1.Node, error) {
	switch {
	case len(f.proven) == 0:
		return nil, nil
	case len(f.proven) > 1:
		return nil, f.ambiguous()
	case f.isOthers(f.proven[0]):
		return nil, fmt.Errorf("the Node %s has the providerID %s, and the VM of this Machine has %s: the Node is left alone", f.proven[0].GetName(), f.proven[0].Spec.ProviderID, f.providerID)
	}
	return f.proven[0], nil
}

func (f candidates) ambiguous() error {
	return fmt.Errorf("the Nodes %s have the join token and the providerID of this Machine, which has no Node yet: all are left alone; delete those that are not of its VM", strings.Join(NamesOf(f.proven), " and "))
}

// nodeToDrain returns the Node of a Machine that is being deleted, nil if there is none, and the name of a Node
// that is left alone because it has the providerID of another VM.
func (f candidates) nodeToDrain() (own *corev1.Node, foreign string, err error) {
	switch {
	case len(f.proven) > 1:
		return nil, "", f.ambiguous()
	case len(f.proven) == 0:
		return nil, "", nil
	case f.isOthers(f.proven[0]):
		return nil, f.proven[0].GetName(), nil
	}
	return f.proven[0], "", nil
}

func (f candidates) contest() *Contest {
	switch {
	case len(f.proven) > 1:
		return &Contest{machinev1alpha1.ReasonNodeAmbiguous, capitalized(f.ambiguous().Error())}
	case len(f.proven) == 0 && f.unproven != nil:
		return &Contest{machinev1alpha1.ReasonNodeUnproven, f.describeUnproven()}
	case len(f.pretenders) > 0:
		return &Contest{machinev1alpha1.ReasonNodeContested, fmt.Sprintf("Not this Machine's, although with its join token or the providerID of its VM: %s; Drover leaves them alone, find out how they registered", namedNodes(f.pretenders))}
	}
	return nil
}

// describeUnproven returns why a Node with the Machine's Node name is not proven to be the Machine's.
func (f candidates) describeUnproven() string {
	node := f.unproven
	ready := "is not Ready"
	if workernode.IsReady(node) {
		ready = "is Ready"
	}
	var lacks string
	switch token, own := node.GetLabels()[clusterv1alpha1.LabelJoinToken], node.Spec.ProviderID; {
	case token != "":
		lacks = fmt.Sprintf("its label %s is that of another Machine", clusterv1alpha1.LabelJoinToken)
	case own == "":
		lacks = fmt.Sprintf("it has neither the label %s nor a providerID", clusterv1alpha1.LabelJoinToken)
	case f.providerID != "" && own != f.providerID:
		lacks = fmt.Sprintf("it lacks the label %s, and has the providerID %s, while the VM has %s", clusterv1alpha1.LabelJoinToken, own, f.providerID)
	default:
		lacks = fmt.Sprintf("it lacks the label %s", clusterv1alpha1.LabelJoinToken)
	}
	return fmt.Sprintf("The Node %s has the name of this Machine's Node and %s, but %s: Drover leaves it alone", node.GetName(), ready, lacks)
}

func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// maxNamed is how many Nodes a message names.
const maxNamed = 5

func namedNodes(nodes []*corev1.Node) string {
	all := NamesOf(nodes)
	if len(all) <= maxNamed {
		return "Node " + strings.Join(all, ", ")
	}
	return fmt.Sprintf("Node %s and %d others", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}

// NamesOf objects, sorted.
func NamesOf[T metav1.Object](objs []T) []string {
	out := make([]string, 0, len(objs))
	for _, o := range objs {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return out
}
