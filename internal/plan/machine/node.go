package machine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// A node is what is known of a Machine's Node.
type node struct {
	// joined means that the Node is there, or was.
	joined bool
	// ready means that the Node is Ready, as far as is known.
	ready bool
	// since when it is Ready.
	since *metav1.Time
	// bad are the conditions for which the Node is unhealthy.
	bad []workernode.Condition
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

	workernode.Observation
}

// nodeOf a Machine. Startup taints count only for a Machine that has not run before:
// what comes back is not started anew.
func nodeOf(now time.Time, m *machinev1alpha1.Machine, wn *workernode.WorkerNode, hasRun bool) node {
	if wn == nil {
		return node{}
	}
	n := node{Observation: wn.Observation}
	n.joined = n.NodeName != ""
	reason, cause := "", ""
	for _, c := range n.Conditions {
		if c.Type == string(corev1.NodeReady) {
			n.status, n.since, cause = c.Status, c.LastTransitionTime, causeOf(c)
			reason = c.Reason
		}
	}
	n.ready = n.joined && n.status == isTrue
	n.bad = unhealthy(n.Conditions, m.Spec.Health)
	if !n.ready {
		status := isUnknown
		if n.status == isFalse {
			status = isFalse
		}
		n.bad = append([]workernode.Condition{{Type: string(corev1.NodeReady), Status: status, Reason: reason}}, n.bad...)
	}
	n.starting = n.ready && !hasRun && len(n.StartupTaints) > 0
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
	n.message = n.notReady(wn.Parameters.ProviderID, cause)
	if n.isGone(hasRun) {
		n.goneSince = whole(now).Time
		if before := m.Status.NodeGoneSince; before != nil {
			n.goneSince = before.Time
		}
	}
	return n
}

// isGone reports whether the Node was there, and is known not to be there any more.
func (n node) isGone(hasRun bool) bool {
	return n.Error == "" && !n.Present && (n.joined || hasRun)
}

// causeOf a condition is what its reporter says: a reason, a message, or both.
func causeOf(c workernode.Condition) string {
	switch {
	case c.Reason == "" && c.Message == "":
		return ""
	case c.Reason == "" || c.Message == "":
		return ": " + c.Reason + c.Message
	}
	return ": " + c.Reason + ": " + c.Message
}

// notReady says why the Node is not Ready.
func (n node) notReady(providerID, cause string) string {
	switch {
	// An unreachable cluster, or wrong credentials, say more than what was seen last.
	case n.Error != "":
		return n.Error
	case !n.Present && n.Join.Unproven != "":
		return n.Join.Unproven
	case !n.Present && !n.joined:
		return fmt.Sprintf("No Node of the VM %s has joined yet", providerID)
	case !n.Present:
		return fmt.Sprintf("The Node %s is gone from the target cluster", n.NodeName)
	}
	switch n.status {
	case isUnknown:
		return fmt.Sprintf("The Node %s stopped reporting%s", n.NodeName, cause)
	case isFalse:
		return fmt.Sprintf("The Node %s is not Ready%s", n.NodeName, cause)
	}
	return fmt.Sprintf("The Node %s has not reported yet", n.NodeName)
}
