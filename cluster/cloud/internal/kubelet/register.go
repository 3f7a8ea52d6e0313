package kubelet

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// register creates the Node, Ready from the start. If a Node of this name exists already, it
// becomes this VM's. A kubelet may not change the Node's provider ID, labels and taints, so they
// stay.
func (k *kubelet) register(ctx context.Context) error {
	node := k.node(k.clock.Now())
	_, err := k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := k.takeOver(ctx, node.Status); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		k.host.Console("kubelet: registered Node %s with provider ID %s", k.NodeName, k.ProviderID)
	}
	return k.save(func(s *State) { s.Registered = true })
}

func (k *kubelet) takeOver(ctx context.Context, status corev1.NodeStatus) error {
	old, err := k.client.CoreV1().Nodes().Get(ctx, k.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if old.Spec.ProviderID != k.ProviderID {
		k.host.Console("kubelet: Node %s exists with provider ID %q, this VM has %q", k.NodeName, old.Spec.ProviderID, k.ProviderID)
	} else {
		k.host.Console("kubelet: Node %s is registered already", k.NodeName)
	}
	return k.patchStatus(ctx, status)
}

// patchStatus merges the fields of status into the Node's status.
func (k *kubelet) patchStatus(ctx context.Context, status any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	_, err = k.client.CoreV1().Nodes().PatchStatus(ctx, k.NodeName, patch)
	return err
}
