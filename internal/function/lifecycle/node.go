package lifecycle

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A node is what the WorkerNode says of a Machine's Node.
type node struct {
	// joined means that the Node is there, or was.
	joined bool
	// ready means that the Node is Ready, as far as is known.
	ready bool
	// since when it is Ready.
	since *metav1.Time
	// status of the Node's own Ready condition, "" when there is none.
	status string
	// message says why the Node is not Ready, or not there.
	message string

	clusterv1alpha1.WorkerNodeObservation
}

func nodeOf(wn *clusterv1alpha1.WorkerNode) node {
	if wn == nil {
		return node{}
	}
	n := node{WorkerNodeObservation: wn.Status.AtProvider}
	n.joined = n.NodeName != ""
	for _, c := range n.Conditions {
		if c.Type == string(corev1.NodeReady) {
			n.status, n.since = c.Status, c.LastTransitionTime
		}
	}
	reported := wn.Status.GetCondition(xpv1.TypeReady)
	n.ready = n.joined && n.status == string(corev1.ConditionTrue) && reported.Status == corev1.ConditionTrue
	if n.ready {
		return n
	}
	n.message = reported.Message
	// An unreachable cluster, or wrong credentials, say more than what was seen last.
	if synced := wn.Status.GetCondition(xpv1.TypeSynced); synced.Status == corev1.ConditionFalse {
		n.message = synced.Message
	}
	return n
}
