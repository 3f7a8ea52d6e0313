package workernode

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// IsReady reports whether the condition Ready of a Node is True.
func IsReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// HasTaint reports whether a Node has a taint with the key.
func HasTaint(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// IsUninitialized reports whether a Node has the taint that Drover removes when a Machine claims
// the Node.
func IsUninitialized(n *corev1.Node) bool {
	return HasTaint(n, machinev1alpha1.TaintUninitialized)
}
