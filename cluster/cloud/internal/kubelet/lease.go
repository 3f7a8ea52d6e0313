package kubelet

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/apimachinery/lease"
)

// renewLease is a kubelet's heartbeat: four writes per lease duration.
func (k *kubelet) renewLease(ctx context.Context) {
	lease.NewController(k.clock, k.client, k.NodeName, int32(k.LeaseDuration/time.Second), nil, k.LeaseDuration/4,
		k.NodeName, corev1.NamespaceNodeLease, k.ownLease).Run(ctx)
}

// ownLease makes the Node the owner of the lease, so that both are deleted together. It fails
// without a Node, so that a kubelet whose Node was deleted does not create a lease.
func (k *kubelet) ownLease(l *coordinationv1.Lease) error {
	node, ok := k.nodes.current()
	if !ok {
		return errors.NewNotFound(schema.GroupResource{Resource: "nodes"}, k.NodeName)
	}
	l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	return nil
}
