package jointoken

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// awaited is what somebody may still take for the Node of a Machine.
type awaited struct {
	// tokens are the UIDs of JoinTokens.
	tokens map[types.UID]bool
	// nodes are those of WorkerNodes, by providerID and by name.
	nodes map[string]bool
}

// sweepNodes of one cluster that joined when nobody waited for them any more: of a VM whose
// Machine went while it booted, or never knew of it. It notes in seen what the next sweep
// deletes if it is still so then.
func (s *sweeper) sweepNodes(ctx context.Context, c sweepable, config config, by awaited, seen map[types.UID]bool) {
	nodes, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha1.LabelConfig: string(c.config)}.String(),
	})
	if err != nil {
		return // The configuration tells of it.
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		switch {
		case !by.isTooLate(n):
			continue
		case s.seen[n.GetUID()]:
			err := s.deleteNode(ctx, c, config, n)
			if err == nil {
				continue
			}
			s.log.Info("Cannot delete a Node that joined too late", "error", err)
		}
		seen[n.GetUID()] = true
	}
}

// isTooLate says whether a Node is nobody's. No WorkerNode ever found it, so that no pod was
// let onto it, and its kubelet is silent: what lives is left alone, whosever it is.
func (a awaited) isTooLate(n *corev1.Node) bool {
	token := types.UID(n.GetLabels()[v1alpha1.LabelJoinToken])
	if token == "" || a.tokens[token] || a.nodes[n.Spec.ProviderID] || a.nodes[target.WithoutProviderID(n.GetName())] {
		return false
	}
	fresh := false
	for _, t := range n.Spec.Taints {
		fresh = fresh || t.Key == machinev1alpha1.TaintUninitialized
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	return fresh
}

func (s *sweeper) deleteNode(ctx context.Context, c sweepable, config config, n *corev1.Node) error {
	by, err := awaitedBy(ctx, s.live)
	if err != nil || !by.isTooLate(n) {
		return err
	}
	// As it was seen: a kubelet that speaks again changes it.
	err = c.kube.CoreV1().Nodes().Delete(ctx, n.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &n.UID, ResourceVersion: &n.ResourceVersion}})
	if client.IgnoreNotFound(err) != nil {
		return c.classify(err)
	}
	s.record.Event(config.Object, event.Normal(reasonNodeSwept, fmt.Sprintf("Deleted the Node %s, which joined for a Machine that did not wait for it any more, and is silent", n.GetName())))
	return nil
}

func awaitedBy(ctx context.Context, reader client.Reader) (awaited, error) {
	tokens, err := joinTokens(ctx, reader)
	if err != nil {
		return awaited{}, err
	}
	list := &v1alpha1.WorkerNodeList{}
	if err := reader.List(ctx, list); err != nil {
		return awaited{}, err
	}
	a := awaited{tokens: tokens, nodes: map[string]bool{}}
	for i := range list.Items {
		p := list.Items[i].Spec.ForProvider
		for _, id := range []string{p.ProviderID, target.WithoutProviderID(p.NodeName), target.WithoutProviderID(list.Items[i].Status.AtProvider.NodeName)} {
			a.nodes[id] = true
		}
	}
	// Of a WorkerNode that has none nothing is said.
	delete(a.nodes, "")
	return a, nil
}
