package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// A node is the observed state of a Machine's Node.
type node struct {
	// joined means that the Node exists or existed.
	joined bool
	// ready means that the Node was last observed as Ready.
	ready bool
	// since is when Drover first observed that the Node is Ready, or that it is not.
	since *metav1.Time
	// bad are the conditions that make the Node unhealthy.
	bad []workernode.Condition
	// reported are the conditions that spec.health only reports.
	reported []workernode.Condition
	// starting means that it is Ready and still has startup taints.
	starting bool
	// healthy means that it is Ready, and neither unhealthy nor starting, and that its VM does not
	// await a companion.
	healthy bool
	// goneSince is the time since which the Node is known to be deleted.
	goneSince time.Time
	// status of the Node's own Ready condition, "" if there is none.
	status string
	// message explains why the Node is not healthy or does not exist.
	message string

	workernode.Observation
}

// nodeOf returns the observed Node of a Machine. Startup taints count only for a Machine that has
// never run: a Node that recovers is not starting.
func nodeOf(now time.Time, h machinev1alpha1.Health, devices machinev1alpha1.Devices, goneSince *metav1.Time, wn *workernode.WorkerNode, hasRun bool) node {
	if wn == nil {
		return node{}
	}
	n := node{Observation: wn.Observation}
	n.joined = n.NodeName != ""
	reason, cause := "", ""
	for _, c := range n.Conditions {
		if c.Type == string(corev1.NodeReady) {
			n.status, n.since, cause = c.Status, c.Since, causeOf(c)
			reason = c.Reason
		}
	}
	n.ready = n.joined && n.status == isTrue
	n.bad, n.reported = unhealthy(withDevices(n.Observation, devices), h)
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
	case n.ready && len(n.bad) > 0 && n.bad[0].Type == machinev1alpha1.NodeDevicesMissing:
		n.message = fmt.Sprintf("The Node %s lacks devices that its class names: %s", n.NodeName, n.bad[0].Reason)
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
		if goneSince != nil {
			n.goneSince = goneSince.Time
		}
	}
	return n
}

// isGone reports whether the Node existed and is known to be deleted.
func (n node) isGone(hasRun bool) bool {
	return n.Error == "" && !n.Present && (n.joined || hasRun)
}

// causeOf returns the reason and the message of a condition, or one of them, for the end of a
// message.
func causeOf(c workernode.Condition) string {
	switch {
	case c.Reason == "" && c.Message == "":
		return ""
	case c.Reason == "" || c.Message == "":
		return ": " + c.Reason + c.Message
	}
	return ": " + c.Reason + ": " + c.Message
}

// notReady explains why the Node is not Ready.
func (n node) notReady(providerID, cause string) string {
	switch {
	// An unreachable cluster, or wrong credentials, explain more than the last observation.
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

// withDevices returns the conditions of a Node, with DevicesMissing if it lacks devices of its class. A Node that lost
// sight of its devices, or whose device plugins have not registered yet, lacks them, whether it is Ready or not. Before the
// Node was read in this process, the condition that was recorded last stands for its devices.
func withDevices(o workernode.Observation, wanted machinev1alpha1.Devices) []workernode.Condition {
	if o.Devices == nil && len(wanted) > 0 {
		return o.Conditions
	}
	out := slices.DeleteFunc(slices.Clone(o.Conditions), func(c workernode.Condition) bool { return c.Type == machinev1alpha1.NodeDevicesMissing })
	if missing := plan.MissingDevices(wanted, o.Devices); missing != "" && o.Present {
		out = append(out, workernode.Condition{Type: machinev1alpha1.NodeDevicesMissing, Status: isTrue, Reason: missing})
	}
	return out
}
