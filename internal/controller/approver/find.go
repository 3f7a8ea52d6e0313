package approver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// Indexes of Machines by configuration and the name of their Node, and by configuration
// and the ID of their bootstrap token.
const (
	byNode  = "drover.approver.node"
	byToken = "drover.approver.token"
)

// Observations are what the Machine controller knows from its reconciles in this process.
type Observations interface {
	// Addresses returns the addresses of a Machine's VM, as the VM resource that the Machine
	// controls reports them, and the name of the Node that is proven to be the Machine's,
	// empty while none is. The addresses must be read only. The result is false until the
	// Machine was reconciled.
	Addresses(uid types.UID) (addresses []workernode.Address, joined string, ok bool)
}

func index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &machinev1alpha1.Machine{}, byNode, nodeKey); err != nil {
		return err
	}
	return indexer.IndexField(ctx, &machinev1alpha1.Machine{}, byToken, tokenKey)
}

func nodeKey(obj client.Object) []string {
	m, ok := obj.(*machinev1alpha1.Machine)
	if !ok {
		return nil
	}
	return []string{key(target.RefOf(m), nodeName(m))}
}

func tokenKey(obj client.Object) []string {
	m, ok := obj.(*machinev1alpha1.Machine)
	if !ok {
		return nil
	}
	return []string{key(target.RefOf(m), names.TokenID(m.GetUID()))}
}

func key(ref target.Ref, what string) string { return ref.String() + " " + what }

// nodeName is the name that the Node of a Machine may have. It has part of the Machine's
// UID in it, which no tenant can choose.
func nodeName(m *machinev1alpha1.Machine) string { return names.OfMachine(m.GetName(), m.GetUID()) }

// A found Machine, and the object that it was found by. Both are nil if there is none.
type found struct {
	*machine
	object *machinev1alpha1.Machine
}

// node finds the Machine whose Node may have a name. A Machine whose deletion has left the
// Node has none any more.
func (r *reconciler) node(ctx context.Context, ref target.Ref, name string) (found, error) {
	if name == "" {
		return found{}, nil
	}
	m, err := r.only(ctx, byNode, ref, name)
	if err != nil || m == nil || hasLeftNode(m) {
		return found{}, err
	}
	return r.found(m), nil
}

// token finds the Machine that a bootstrap token was made for. A token that Drover did not
// make is not for Drover to decide on.
func (r *reconciler) token(ctx context.Context, ref target.Ref, id string) (found, error) {
	if id == "" {
		return found{}, nil
	}
	m, err := r.only(ctx, byToken, ref, id)
	if err != nil || m == nil {
		return found{}, err
	}
	f := r.found(m)
	if f.joined == "" && m.Status.NodeRef != nil {
		// The Node may be gone since, or was proven before a restart. The token has served.
		f.joined = m.Status.NodeRef.Name
	}
	return f, nil
}

// only returns the one Machine that an index has, nil if there is none.
func (r *reconciler) only(ctx context.Context, index string, ref target.Ref, what string) (*machinev1alpha1.Machine, error) {
	list := &machinev1alpha1.MachineList{}
	if err := r.control.List(ctx, list, client.MatchingFields{index: key(ref, what)}); err != nil {
		return nil, err
	}
	switch len(list.Items) {
	case 0:
		return nil, nil
	case 1:
		return &list.Items[0], nil
	}
	return nil, fmt.Errorf("%d Machines of %s have the Node name or the bootstrap token %s: no certificate is approved for it", len(list.Items), ref, what)
}

func (r *reconciler) found(m *machinev1alpha1.Machine) found {
	addresses, joined, ok := r.observed.Addresses(m.GetUID())
	out := &machine{node: nodeName(m), deleting: m.GetDeletionTimestamp() != nil, unobserved: !ok}
	if ok {
		out.addresses, out.joined = addresses, joined
	}
	return found{object: m, machine: out}
}

// hasLeftNode reports whether the deletion of a Machine is past its Node.
func hasLeftNode(m *machinev1alpha1.Machine) bool {
	d := m.Status.Deletion
	return m.GetDeletionTimestamp() != nil && d != nil && d.Stage.IsPastNode()
}
