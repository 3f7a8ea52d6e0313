package lifecycle

import (
	"fmt"
	"strings"
	"time"

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
	// starting means that it is Ready, and has startup taints.
	starting bool
	// goneSince is since when the Node is known to have been deleted.
	goneSince time.Time
	// status of the Node's own Ready condition, "" when there is none.
	status string
	// message says why the Node is not Ready, or not there.
	message string

	clusterv1alpha1.WorkerNodeObservation
}

// nodeOf reads a WorkerNode. A Node with startup taints counts as Ready only for a
// Machine that has run before: what comes back is not started anew.
func nodeOf(wn *clusterv1alpha1.WorkerNode, ran bool) node {
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
	if n.ready && (ran || len(n.StartupTaints) == 0) {
		return n
	}
	if n.ready {
		n.ready, n.starting = false, true
		n.message = fmt.Sprintf("The Node %s still has the startup taints %s", n.NodeName, strings.Join(n.StartupTaints, ", "))
		return n
	}
	n.message = reported.Message
	// A WorkerNode that was deleted, and its Node with it, comes back without one.
	gone := reported.Reason == clusterv1alpha1.ReasonNodeGone || ran && reported.Reason == clusterv1alpha1.ReasonNodeJoining
	if gone && wn.Status.GetCondition(xpv1.TypeSynced).Status != corev1.ConditionFalse {
		n.goneSince = reported.LastTransitionTime.Time
	}
	// An unreachable cluster, or wrong credentials, say more than what was seen last.
	if synced := wn.Status.GetCondition(xpv1.TypeSynced); synced.Status == corev1.ConditionFalse {
		n.message = synced.Message
	}
	return n
}
