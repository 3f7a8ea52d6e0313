package approver

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// Indexes of Machines by configuration and the name of their Node, by configuration and the
// ID of their bootstrap token, and by configuration alone.
const (
	byNode    = "drover.approver.node"
	byToken   = "drover.approver.token"
	byCluster = "drover.approver.cluster"
)

// Observations are the results of the Machine controller's reconciles in this process.
type Observations interface {
	// Addresses returns the addresses of a Machine's VM, as the VM resource that the Machine controls
	// reports them. It also returns the name of the Node that is proven to be the Machine's, empty if
	// there is none. The addresses must not be changed. The result is false until the Machine was
	// reconciled.
	Addresses(uid types.UID) (addresses []workernode.Address, joined string, ok bool)
	// CloudNames reports whether the cloud decides on the name of a Machine's Node, and
	// whether that is known.
	CloudNames(uid types.UID) (isCloud, isKnown bool)
	// Identity returns the identity of a VM that a Machine took over, nil if the VM is its own. The
	// result is false until the Machine was reconciled.
	Identity(uid types.UID) (*machinev1alpha1.MachineIdentity, bool)
}

var keysOf = map[string]client.IndexerFunc{byNode: nodeKey, byToken: tokenKey, byCluster: clusterKey}

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for name, key := range keysOf {
		if err := indexer.IndexField(ctx, &machinev1alpha1.Machine{}, name, key); err != nil {
			return err
		}
	}
	return nil
}

// Index keys of Machines.
var (
	nodeKey    = keyOf(func(m *machinev1alpha1.Machine) string { return key(target.RefOf(m), identity.NodeName(m)) })
	tokenKey   = keyOf(func(m *machinev1alpha1.Machine) string { return key(target.RefOf(m), identity.TokenID(m)) })
	clusterKey = keyOf(func(m *machinev1alpha1.Machine) string { return target.RefOf(m).String() })
)

// keyOf returns the keys of a Machine: that of its own UID, and that of the identity that its status
// claims. See only.
func keyOf(of func(*machinev1alpha1.Machine) string) client.IndexerFunc {
	return func(obj client.Object) []string {
		m, ok := obj.(*machinev1alpha1.Machine)
		if !ok {
			return nil
		}
		keys := []string{of(identity.Without(m))}
		if claimed := of(m); claimed != keys[0] {
			keys = append(keys, claimed)
		}
		return keys
	}
}

func key(ref target.Ref, what string) string { return ref.String() + " " + what }

// verified returns a Machine with the identity of its VM resource, whatever its status claims.
// Nothing is approved until the Machine was reconciled, so the claim may stand until then.
func (r *reconciler) verified(m *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	id, ok := r.observed.Identity(m.GetUID())
	if !ok {
		return m
	}
	out := *m
	out.Status.Identity = id
	return &out
}

// A found is a Machine and its object. Both are nil if there is none.
type found struct {
	*machine
	object *machinev1alpha1.Machine
}

// node finds the Machine whose Node may have a name. A Machine whose deletion is past its Node has
// none any more.
func (r *reconciler) node(ctx context.Context, c cluster, ref target.Ref, name string) (found, error) {
	if name == "" {
		return found{}, nil
	}
	m, err := r.only(ctx, byNode, ref, name)
	switch {
	case err != nil:
		return found{}, err
	case m == nil:
		return r.cloudNode(ctx, c, ref, name)
	case hasLeftNode(m):
		return found{}, nil
	}
	f := r.found(m)
	f.cloudNamed = false // Drover chose the name, which contains a part of the UID.
	return f, nil
}

// cloudNode finds the Machine whose Node has a name that the cloud decided on, by the label that the
// Node registered with. A kubelet can write that label, so it only selects the Machine to check. The
// Node counts if the Machine controller has proven it, and its name if the cloud reports it for the
// VM.
func (r *reconciler) cloudNode(ctx context.Context, c cluster, ref target.Ref, name string) (found, error) {
	uid, err := c.token(ctx, name)
	if err != nil || uid == "" {
		return found{}, err
	}
	m, err := r.only(ctx, byToken, ref, names.TokenID(uid))
	if err != nil || m == nil || identity.UID(m) != uid || hasLeftNode(m) {
		return found{}, err
	}
	f := r.found(m)
	if !f.unobserved && !f.cloudNamed {
		return found{}, nil // Drover named the Machine's Node, and the name differs.
	}
	f.node, f.cloudNamed = name, true
	return f, nil
}

// token finds the Machine that a bootstrap token was made for. Drover does not decide on tokens that
// it did not make.
func (r *reconciler) token(ctx context.Context, c cluster, ref target.Ref, id string) (found, error) {
	if id == "" {
		return found{}, nil
	}
	m, err := r.only(ctx, byToken, ref, id)
	if err != nil || m == nil {
		return found{}, err
	}
	f := r.found(m)
	if f.joined == "" && m.Status.NodeRef != nil {
		// The Node may be gone since, or was proven before a restart. The token has been used.
		f.joined = m.Status.NodeRef.Name
	}
	if f.joined == "" {
		// A VM may have joined that this Machine is not known to have.
		uid, err := c.token(ctx, f.node)
		if err != nil {
			return found{}, err
		}
		f.taken = uid == identity.UID(m)
	}
	return f, nil
}

// only returns the single Machine in an index, nil if there is none. It ignores a Machine whose
// status claims an identity that its VM resource does not have.
func (r *reconciler) only(ctx context.Context, index string, ref target.Ref, what string) (*machinev1alpha1.Machine, error) {
	list := &machinev1alpha1.MachineList{}
	if err := r.control.List(ctx, list, client.MatchingFields{index: key(ref, what)}); err != nil {
		return nil, err
	}
	var all []*machinev1alpha1.Machine
	for i := range list.Items {
		if m := r.verified(&list.Items[i]); slices.Contains(keysOf[index](m), key(ref, what)) {
			all = append(all, m)
		}
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return nil, fmt.Errorf("%d Machines of %s have the Node name or the bootstrap token %s: no certificate is approved for it", len(all), ref, what)
}

func (r *reconciler) found(m *machinev1alpha1.Machine) found {
	addresses, joined, ok := r.observed.Addresses(m.GetUID())
	out := &machine{node: identity.NodeName(m), deleting: m.GetDeletionTimestamp() != nil, unobserved: !ok}
	if ok {
		out.addresses, out.joined = addresses, joined
		isCloud, isKnown := r.observed.CloudNames(m.GetUID())
		out.cloudNamed, out.unnamed = isCloud, !isKnown
	}
	return found{object: m, machine: out}
}

// claims returns the claims of other Machines of a target cluster on the requested names. A Machine
// that is being deleted has its addresses until it is gone. If this process has not reconciled a
// Machine yet, only its status is known. That may be forged, so it counts like the report of a guest.
func (r *reconciler) claims(ctx context.Context, refs []target.Ref, of *machinev1alpha1.Machine, wanted []string) (map[string]claim, error) {
	out := map[string]claim{}
	for _, ref := range refs {
		list := &machinev1alpha1.MachineList{}
		if err := r.control.List(ctx, list, client.MatchingFields{byCluster: ref.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if m := &list.Items[i]; m.GetUID() != of.GetUID() {
				r.claim(out, m, of, wanted)
			}
		}
	}
	return out, nil
}

// claim adds the claims of one Machine. The report of a cloud replaces the report of a guest.
func (r *reconciler) claim(out map[string]claim, m, of *machinev1alpha1.Machine, wanted []string) {
	add := func(name string, guest bool) {
		name = normalized(name)
		if before, ok := out[name]; slices.Contains(wanted, name) && (!ok || before.guest && !guest) {
			out[name] = claim{guest: guest, by: describe(m, of)}
		}
	}
	addresses, joined, ok := r.observed.Addresses(m.GetUID())
	for _, a := range addresses {
		add(a.Address, a.Guest)
	}
	add(joined, false)
	if ok {
		return
	}
	for _, a := range m.Status.Addresses {
		add(a.Address, true)
	}
}

// describe returns a description of a Machine for an event of another one, without names of another
// namespace.
func describe(m, to *machinev1alpha1.Machine) string {
	if m.GetNamespace() != to.GetNamespace() {
		return "a Machine of another namespace"
	}
	return "the Machine " + m.GetName()
}

// hasLeftNode reports whether the deletion of a Machine is past its Node.
func hasLeftNode(m *machinev1alpha1.Machine) bool {
	d := m.Status.Deletion
	return m.GetDeletionTimestamp() != nil && d != nil && d.Stage.IsPastNode()
}
