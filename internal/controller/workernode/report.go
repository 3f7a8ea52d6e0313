package workernode

import (
	"fmt"
	"slices"
	"strings"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// report puts what is known of the Node into the status. There is no Node yet, or
// none any more, if it is nil.
func report(wn *v1alpha1.WorkerNode, node *corev1.Node) {
	was := wn.Status.AtProvider
	switch {
	case node == nil:
		// The rest stays as last seen: it helps those who look for the Node.
		wn.Status.AtProvider.Conditions, wn.Status.AtProvider.Drain, wn.Status.AtProvider.Drained = nil, nil, false
	default:
		wn.Status.AtProvider = observation(node)
		wn.Status.AtProvider.Labels, wn.Status.AtProvider.Annotations = said(node, wn.Spec.ForProvider)
		wn.Status.AtProvider.StartupTaints = startupTaints(node, wn.Spec.ForProvider)
		if wn.Spec.ForProvider.Drained && was.NodeUID == string(node.GetUID()) {
			wn.Status.AtProvider.Drain = was.Drain
			wn.Status.AtProvider.Drained = was.Drained && node.Spec.Unschedulable
		}
	}
	wn.SetConditions(ready(wn.Status.AtProvider, wn.Spec.ForProvider.ProviderID, node))
}

// observation has facts only. A heartbeat in it would be a write every time.
func observation(node *corev1.Node) v1alpha1.WorkerNodeObservation {
	info := node.Status.NodeInfo
	o := v1alpha1.WorkerNodeObservation{
		NodeName: node.GetName(),
		NodeUID:  string(node.GetUID()),
		NodeInfo: &v1alpha1.WorkerNodeInfo{
			KubeletVersion:          info.KubeletVersion,
			OSImage:                 info.OSImage,
			KernelVersion:           info.KernelVersion,
			ContainerRuntimeVersion: info.ContainerRuntimeVersion,
			Architecture:            info.Architecture,
			OperatingSystem:         info.OperatingSystem,
		},
	}
	for _, a := range node.Status.Addresses {
		o.Addresses = append(o.Addresses, v1alpha1.NodeAddress{Type: string(a.Type), Address: a.Address})
	}
	for _, c := range node.Status.Conditions {
		nc := v1alpha1.NodeCondition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason}
		if !c.LastTransitionTime.IsZero() {
			nc.LastTransitionTime = c.LastTransitionTime.DeepCopy()
		}
		o.Conditions = append(o.Conditions, nc)
	}
	return o
}

// startupTaints that are still there, those first that we take off ourselves.
func startupTaints(node *corev1.Node, want v1alpha1.WorkerNodeParameters) []string {
	var out []string
	for _, t := range node.Spec.Taints {
		if t.Key == machinev1alpha1.TaintUninitialized {
			out = append(out, taintID(t))
		}
	}
	for _, s := range want.StartupTaints {
		for _, t := range node.Spec.Taints {
			if t.Key == s.Key && string(t.Effect) == s.Effect {
				out = append(out, taintID(t))
			}
		}
	}
	return out
}

// said returns the labels and annotations of the Node that are meant for Drover,
// but not those that a WorkerNode put there.
func said(node *corev1.Node, want v1alpha1.WorkerNodeParameters) (labels, annotations map[string]string) {
	was := readApplied(node)
	return others(node.GetLabels(), want.Labels, was.Labels), others(node.GetAnnotations(), want.Annotations, was.Annotations)
}

func others(have, want map[string]string, was []string) map[string]string {
	var out map[string]string
	for k, v := range have {
		domain, _, _ := strings.Cut(k, "/")
		if _, ours := want[k]; ours || slices.Contains(was, k) || domain != machinev1alpha1.Group && domain != machinev1alpha1.Domain {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out
}

// ready returns the Ready condition. A kubelet's messages may hold times, so that
// only its reasons are passed on.
func ready(o v1alpha1.WorkerNodeObservation, providerID string, node *corev1.Node) xpv1.Condition {
	condition := func(status corev1.ConditionStatus, reason xpv1.ConditionReason, format string, args ...any) xpv1.Condition {
		return xpv1.Condition{
			Type: xpv1.TypeReady, Status: status, Reason: reason,
			Message: fmt.Sprintf(format, args...), LastTransitionTime: metav1.Now(),
		}
	}
	switch {
	case node == nil && o.NodeName == "":
		return condition(corev1.ConditionFalse, v1alpha1.ReasonNodeJoining, "No Node with the providerID %s has joined yet", providerID)
	case node == nil:
		return condition(corev1.ConditionFalse, v1alpha1.ReasonNodeGone, "The Node %s is gone from the target cluster", o.NodeName)
	}
	c := nodeReady(node)
	switch c.Status {
	case corev1.ConditionTrue:
		return condition(corev1.ConditionTrue, v1alpha1.ReasonNodeReady, "")
	case corev1.ConditionUnknown:
		return condition(corev1.ConditionFalse, v1alpha1.ReasonNodeUnknown, "The Node %s stopped reporting: %s", node.GetName(), c.Reason)
	case corev1.ConditionFalse:
		return condition(corev1.ConditionFalse, v1alpha1.ReasonNodeNotReady, "The Node %s is not Ready: %s", node.GetName(), c.Reason)
	}
	return condition(corev1.ConditionFalse, v1alpha1.ReasonNodeNotReady, "The Node %s has not reported yet", node.GetName())
}

func nodeReady(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}
