package workernode

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// IsUninitialized reports whether a Node has a taint that Drover removes when a Machine claims
// the Node.
func IsUninitialized(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, IsUninitializedTaint)
}

// IsUninitializedTaint reports whether a kubelet registers with a taint until a Machine claims its Node.
func IsUninitializedTaint(t corev1.Taint) bool {
	return t.Key == machinev1alpha1.TaintUninitialized || t.Key == machinev1alpha1.TaintUninitializedByClusterAPI
}

// Ready returns the observed condition Ready of the Node, nil if there is none.
func (o Observation) Ready() *Condition {
	for i := range o.Conditions {
		if o.Conditions[i].Type == string(corev1.NodeReady) {
			return &o.Conditions[i]
		}
	}
	return nil
}

// NotReadySince returns when Drover first observed that the Node is not Ready, nil if the Node is Ready, or if that is
// not known.
func (o Observation) NotReadySince() *metav1.Time {
	if c := o.Ready(); c != nil && c.Status != string(corev1.ConditionTrue) {
		return c.Since
	}
	return nil
}
