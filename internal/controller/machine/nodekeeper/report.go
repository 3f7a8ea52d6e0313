package nodekeeper

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/nodekeys"
	"github.com/drover-dev/drover/internal/text"
	"github.com/drover-dev/drover/internal/workernode"
)

// observeNode writes the Node, as it is now, into the observation. A nil Node does not exist yet, or not any more.
func observeNode(wn *Node, node *corev1.Node, now time.Time) {
	was := wn.Observation
	if node == nil {
		// The rest stays as observed last: it helps to find the Node.
		wn.Observation.Present, wn.Observation.Synced = false, false
		wn.Observation.Conditions, wn.Observation.Drain, wn.Observation.Drained = nil, nil, false
		return
	}
	wn.Observation = observation(node)
	wn.Observation.Conditions = conditionsIn(node, was, now)
	wn.Observation.HasProviderID = node.Spec.ProviderID != "" && node.Spec.ProviderID == wn.Parameters.ProviderID
	wn.Observation.Labels, wn.Observation.Annotations = nodekeys.Foreign(node, wn.Parameters, wn.Status.AppliedToNode)
	wn.Observation.StartupTaints = startupTaints(node, wn.Parameters)
	if wn.Parameters.Drained && was.NodeUID == node.GetUID() {
		wn.Observation.Drain = was.Drain
		wn.Observation.Drained = was.Drained && node.Spec.Unschedulable
	}
}

// observation has facts only. A heartbeat in it would be a write every time.
func observation(node *corev1.Node) workernode.Observation {
	info := node.Status.NodeInfo
	o := workernode.Observation{
		NodeName: node.GetName(),
		NodeUID:  node.GetUID(),
		Created:  node.CreationTimestamp.DeepCopy(),
		Present:  true,
		BootID:   info.BootID,
		Devices:  machinev1alpha1.DevicesIn(node.Status.Allocatable),
		NodeInfo: &workernode.Info{
			KubeletVersion:          info.KubeletVersion,
			OSImage:                 info.OSImage,
			KernelVersion:           info.KernelVersion,
			ContainerRuntimeVersion: info.ContainerRuntimeVersion,
			Architecture:            info.Architecture,
			OperatingSystem:         info.OperatingSystem,
		},
	}
	for _, a := range node.Status.Addresses {
		o.Addresses = append(o.Addresses, workernode.Address{Type: string(a.Type), Address: a.Address})
	}
	return o
}

// conditionsIn returns the conditions of a Node. Each has a status since Drover observed it: the times in a Node are
// those of its kubelet.
func conditionsIn(node *corev1.Node, was workernode.Observation, now time.Time) []workernode.Condition {
	var out []workernode.Condition
	for _, c := range node.Status.Conditions {
		nc := workernode.Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason}
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			nc.Message = steady(c.Message)
		}
		at := metav1.NewTime(now.UTC().Truncate(time.Second))
		nc.Since = &at
		for _, before := range was.Conditions {
			if was.NodeUID == node.GetUID() && hasLasted(before, nc) && before.Since.Before(&at) {
				nc.Since = before.Since
			}
		}
		out = append(out, nc)
	}
	return out
}

// hasLasted reports whether a condition has the status that it had before, at a known time. A Node that stops reporting
// was not Ready before either.
func hasLasted(was, is workernode.Condition) bool {
	isReady := func(c workernode.Condition) bool { return c.Status == string(corev1.ConditionTrue) }
	return was.Type == is.Type && was.Since != nil &&
		(was.Status == is.Status || is.Type == string(corev1.NodeReady) && isReady(was) == isReady(is))
}

// maxKubeletMessage bounds how much of a kubelet's message is shown to users.
const maxKubeletMessage = 512

// passing matches times and durations in a message: they change with each heartbeat.
var passing = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}[^\s,;)\]]*|\b(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\b`)

// steady returns a message of a kubelet without the parts that change with time. The kubelet chooses the text,
// so that it is shortened and put on one line.
func steady(message string) string {
	message = passing.ReplaceAllString(message, "...")
	message = strings.Join(strings.FieldsFunc(message, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	return text.Shorten(message, maxKubeletMessage)
}

// startupTaints returns the startup taints that are still there. Those that Drover itself removes come first.
func startupTaints(node *corev1.Node, want workernode.Parameters) []string {
	var out []string
	for _, t := range node.Spec.Taints {
		if workernode.IsUninitializedTaint(t) {
			out = append(out, nodekeys.TaintID(t))
		}
	}
	for _, s := range want.StartupTaints {
		for _, t := range node.Spec.Taints {
			if t.Key == s.Key && string(t.Effect) == s.Effect {
				out = append(out, nodekeys.TaintID(t))
			}
		}
	}
	return out
}

func nodeReady(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}
