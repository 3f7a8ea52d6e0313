package lifecycle

import (
	"fmt"
	"strings"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A node is what the WorkerNode says of a Machine's Node.
type node struct {
	// joined means that the Node is there, or was.
	joined bool
	// ready means that the Node is Ready, as far as is known.
	ready bool
	// since when it is Ready.
	since *metav1.Time
	// bad are the conditions for which the Node is unhealthy.
	bad []clusterv1alpha1.NodeCondition
	// starting means that it has startup taints.
	starting bool
	// healthy means that it is Ready, and neither unhealthy nor starting.
	healthy bool
	// goneSince is since when the Node is known to have been deleted.
	goneSince time.Time
	// status of the Node's own Ready condition, "" when there is none.
	status string
	// message says why the Node is not Ready, or not there.
	message string

	clusterv1alpha1.WorkerNodeObservation
}

// nodeOf a Machine. Startup taints count only for a Machine that has not run before:
// what comes back is not started anew.
func nodeOf(m *machinev1alpha1.Machine, wn *clusterv1alpha1.WorkerNode) node {
	if wn == nil {
		return node{}
	}
	ran := hasRun(m.Status)
	n := node{WorkerNodeObservation: wn.Status.AtProvider}
	n.joined = n.NodeName != ""
	reason := ""
	for _, c := range n.Conditions {
		if c.Type == string(corev1.NodeReady) {
			n.status, n.since, reason = c.Status, c.LastTransitionTime, c.Reason
		}
	}
	reported := wn.Status.GetCondition(xpv1.TypeReady)
	n.ready = n.joined && n.status == isTrue && reported.Status == corev1.ConditionTrue
	n.bad = unhealthy(n.Conditions, m.Spec.Health)
	if !n.ready {
		status := isUnknown
		if n.status == isFalse {
			status = isFalse
		}
		n.bad = append([]clusterv1alpha1.NodeCondition{{Type: string(corev1.NodeReady), Status: status, Reason: reason}}, n.bad...)
	}
	n.starting = n.ready && !ran && len(n.StartupTaints) > 0
	n.healthy = len(n.bad) == 0 && !n.starting
	switch {
	case n.starting:
		n.message = fmt.Sprintf("The Node %s still has the startup taints %s", n.NodeName, strings.Join(n.StartupTaints, ", "))
		return n
	case n.ready && len(n.bad) > 0:
		n.message = fmt.Sprintf("The Node %s has the condition %s with the status %s", n.NodeName, n.bad[0].Type, n.bad[0].Status)
		return n
	case n.ready:
		return n
	}
	n.message = reported.Message
	// A WorkerNode that was deleted, and its Node with it, comes back without one.
	gone := reported.Reason == clusterv1alpha1.ReasonNodeGone || ran && reported.Reason == clusterv1alpha1.ReasonNodeJoining
	if gone && isKnown(wn) {
		n.goneSince = reported.LastTransitionTime.Time
	}
	// An unreachable cluster, or wrong credentials, say more than what was seen last.
	if !isKnown(wn) {
		n.message = wn.Status.GetCondition(xpv1.TypeSynced).Message
	}
	return n
}
