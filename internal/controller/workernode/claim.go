package workernode

import (
	"cmp"
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// find returns the Nodes that are the WorkerNode's. It has none that an older
// WorkerNode has: two Machines cannot share a Node, and the deletion of one must not
// empty that of the other.
func (x *external) find(ctx context.Context, wn *v1alpha1.WorkerNode) ([]*corev1.Node, error) {
	p := wn.Spec.ForProvider
	rivals, err := x.rivals(ctx, wn)
	if err != nil {
		return nil, err
	}
	owner := wn
	for i := range rivals {
		if older(&rivals[i], owner) {
			owner = &rivals[i]
		}
	}
	switch {
	case owner.GetUID() == wn.GetUID():
	case meta.WasDeleted(wn):
		return nil, nil
	default:
		return nil, fmt.Errorf("the Node with the providerID %s is that of WorkerNode %s/%s, which is older", p.ProviderID, owner.GetNamespace(), owner.GetName())
	}
	found, err := x.nodes(ctx, p.ProviderID)
	if err != nil || p.NodeName == "" {
		return found, err
	}
	named, err := x.nodes(ctx, target.WithoutProviderID(p.NodeName))
	return append(found, named...), err
}

// older orders WorkerNodes in a way that does not change.
func older(a, b *v1alpha1.WorkerNode) bool {
	if a.GetUID() == b.GetUID() {
		return false
	}
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(at.Compare(bt.Time), cmp.Compare(a.GetUID(), b.GetUID())) < 0
}
