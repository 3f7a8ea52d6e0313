package machine

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// rebootDue returns the ID of the reboot that a Node's unhealthiness makes due, "" if none is. It stays the same until the
// reboot begins, or is no longer due.
func rebootDue(f facts, sick machinev1alpha1.Unhealthiness) string {
	if !f.judgesHealth || !f.mayFail || !f.node.goneSince.IsZero() || f.noReboot() != "" || f.hasFailed() || f.isRequestedReboot() {
		return ""
	}
	if _, replaced := f.replacedFor(sick); replaced {
		return ""
	}
	if _, is := f.rebootCause(sick); !is {
		return ""
	}
	if was := f.before.Unhealthy; was != nil && was.RebootID != "" {
		return was.RebootID
	}
	id := "health-" + f.now.UTC().Format("20060102T150405Z")
	if f.wasRebooted(id) {
		return "" // In the next second.
	}
	return id
}

// rebootCause returns the condition for which a reboot is due: of those with that action whose time is over, the one whose
// time ended first. It is false if there is none.
func (f facts) rebootCause(sick machinev1alpha1.Unhealthiness) (machinev1alpha1.UnhealthyCondition, bool) {
	over := machinev1alpha1.Unhealthiness{Since: sick.Since}
	for _, c := range sick.Conditions {
		if actionOn(f.health, c) == machinev1alpha1.HealthActionReboot && f.isOver(sick, c) {
			over.Conditions = append(over.Conditions, c)
		}
	}
	_, first := failsAt(f.health, over)
	return first, len(over.Conditions) > 0
}

// hasFailed reports whether the Machine is Failed, and stays it.
func (f facts) hasFailed() bool {
	return f.before.Phase == machinev1alpha1.MachineFailed && !isTakenBack(f)
}

// isRequestedReboot reports whether a reboot that a user requested is in progress or is to begin.
func (f facts) isRequestedReboot() bool {
	if r := f.before.Reboot; r != nil && !r.IsDone() {
		return true
	}
	id := f.Machine.Annotations[machinev1alpha1.AnnotationReboot]
	return machinev1alpha1.IsRebootID(id) && !f.wasRebooted(id)
}

// replacedFor returns the condition for which the Machine fails now: its time is over, and its action is a replacement, or a
// reboot that is not possible or did not help.
func (f facts) replacedFor(sick machinev1alpha1.Unhealthiness) (machinev1alpha1.UnhealthyCondition, bool) {
	if len(sick.Conditions) == 0 {
		at, why := failsAt(f.health, sick)
		return why, !f.now.Before(at)
	}
	for _, c := range sick.Conditions {
		isReboot := actionOn(f.health, c) == machinev1alpha1.HealthActionReboot
		if f.isOver(sick, c) && (!isReboot || f.noReboot() != "") {
			return c, true
		}
	}
	return machinev1alpha1.UnhealthyCondition{}, false
}

// isOver reports whether the time of a condition is over. After a reboot that did not help, it is at once.
func (f facts) isOver(sick machinev1alpha1.Unhealthiness, c machinev1alpha1.UnhealthyCondition) bool {
	last := f.before.Reboot
	if last != nil && last.ByHealth != "" && last.State == machinev1alpha1.RebootFailed &&
		actionOn(f.health, c) == machinev1alpha1.HealthActionReboot && sick.Since.Before(&metav1.Time{Time: last.Since.Add(wellAgain)}) {
		return true
	}
	return !f.now.Before(c.Since.Add(timeoutOf(f.health, c)))
}

// noReboot returns why the health of the Node causes no reboot, or no further one, "" if it may.
func (f facts) noReboot() string {
	switch {
	case f.VM.Reboot == nil:
		return "its provider cannot reboot VMs"
	case f.isNodeKnown && f.node.BootID == "":
		return "it has no Node that reports a boot ID, and nothing else proves a reboot"
	case f.preserve == machinev1alpha1.PreserveNow || f.preserve == machinev1alpha1.PreserveWhenFailed:
		return fmt.Sprintf("it is kept for analysis, as %s requires", machinev1alpha1.AnnotationPreserve)
	}
	h := healthReboot(f.Machine)
	limit, window := cmp.Or(h.Limit, machinev1alpha1.DefaultRebootLimit), plan.Timeout(h.Window, machinev1alpha1.DefaultRebootWindow)
	if n := f.rebootsWithin(window); n >= int(limit) {
		reason := fmt.Sprintf("its health rebooted it %d times within %s", n, window)
		if r := f.before.Reboot; r.IsDone() && r.Message != "" {
			reason += "; the last reboot: " + r.Message
		}
		return reason
	}
	return ""
}

// rebootsWithin counts the reboots by health that were requested from the provider within the window.
func (f facts) rebootsWithin(window time.Duration) int {
	n := 0
	if r := f.before.Reboot; r != nil {
		for _, at := range r.HealthTimes {
			if f.now.Sub(at.Time) < window {
				n++
			}
		}
	}
	return n
}

// isGranted reports whether the reboot that is due may begin: its set allows it, or the Machine has no set.
func (f facts) isGranted(sick *machinev1alpha1.Unhealthiness) bool {
	if !isUnhealthy(sick) || sick.RebootID == "" {
		return false
	}
	by := metav1.GetControllerOfNoCopy(f.Machine)
	return by == nil || by.Kind != machinev1alpha1.MachineSetGroupVersionKind.Kind || f.Machine.Annotations[machinev1alpha1.AnnotationRebootGranted] == sick.RebootID
}

// wasRebooted reports whether a request with the ID was carried out. The VM resource knows the last one also after a
// restore, which loses the status.
func (f facts) wasRebooted(id string) bool {
	if f.before.Reboot.Has(id) {
		return true
	}
	if f.VM.Reboot == nil {
		return false
	}
	_, begun, ok := machinev1alpha1.ParseRebootRequest(f.VM.Reboot.Begun)
	return ok && begun == id
}
