package jointoken

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// sweepNodes sweeps the Nodes of one cluster that joined too late: the Machine was deleted while its VM booted,
// or another VM booted with its user data.
func (p *pass) sweepNodes(ctx context.Context, c Cluster, config config) {
	nodes, err := c.Kube.CoreV1().Nodes().List(ctx, mintedThrough(c))
	if err != nil {
		return // A condition of the configuration reports it.
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if !isTooLate(n, p.alive) || !p.isDue(n.GetUID()) {
			continue
		}
		if err := p.deleteNode(ctx, c, config, n); err != nil {
			p.found[n.GetUID()] = true
			p.log.Info("Cannot delete a Node that joined too late", "error", err)
		}
	}
}

// isTooLate reports whether a Node was never used, and never will be: its Machine does not exist, its kubelet
// is not Ready, and it has the taint that Drover removes when a Machine claims its Node. Without that taint,
// pods may run on the Node, and it is never touched.
func isTooLate(n *corev1.Node, alive map[types.UID]bool) bool {
	uid := types.UID(n.GetLabels()[clusterv1alpha1.LabelJoinToken])
	return uid != "" && !alive[uid] && workernode.IsUninitialized(n) && !workernode.IsReady(n)
}

func (p *pass) deleteNode(ctx context.Context, c Cluster, config config, n *corev1.Node) error {
	alive, err := p.confirm(ctx)
	if err != nil || !isTooLate(n, alive) {
		return err
	}
	// The resourceVersion keeps a Node whose kubelet has become Ready since the list.
	err = c.Kube.CoreV1().Nodes().Delete(ctx, n.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &n.UID, ResourceVersion: &n.ResourceVersion}})
	if client.IgnoreNotFound(err) != nil {
		return c.Classify(err)
	}
	p.record.Event(config.Object, event.Normal(machinev1alpha1.EventNodeSwept, fmt.Sprintf("Deleted Node %s: its Machine no longer exists, it was never initialized, and it is not Ready", n.GetName())))
	return nil
}
