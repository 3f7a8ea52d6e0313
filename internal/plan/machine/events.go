package machine

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// events reports the changes since the observed status.
func events(f facts, d Desired) []plan.Event {
	var out []plan.Event
	before := f.before
	if p := f.problem; p != nil {
		c := meta.FindStatusCondition(before.Conditions, machinev1alpha1.ConditionValid)
		if c == nil || string(c.Status) != isFalse || c.Reason != p.Reason || c.Message != p.Message {
			out = append(out, plan.Event{Warning: true, Reason: p.Reason, Message: p.Message})
		}
	}
	if code := f.VM.ErrorCode; code != "" && d.Status.Phase != machinev1alpha1.MachineFailed &&
		(before.LastOperation == nil || before.LastOperation.ErrorCode != code) && d.Status.LastOperation.ErrorCode == code {
		out = append(out, plan.Event{Warning: true, Reason: code, Message: f.VM.Message})
	}
	for _, r := range f.newRefusals() {
		out = append(out, plan.Event{Warning: true, Reason: machinev1alpha1.EventInstanceTypeRefused, Message: fmt.Sprintf("The cloud has no room for instance type %s (%s): %s", r.Name, r.ErrorCode, r.Message)})
	}
	if u := d.Status.Update; begun(u) && (before.Update == nil || before.Update.ID != u.ID || before.Update.State != u.State) {
		out = append(out, plan.Event{
			Warning: u.State == machinev1alpha1.UpdateFailed,
			Reason:  reasonsOfUpdates[u.State],
			Message: describe(f.Machine, u),
		})
	}
	if r := d.Status.Reboot; isRebootNews(before.Reboot, r) {
		out = append(out, plan.Event{
			Warning: r.State == machinev1alpha1.RebootFailed,
			Reason:  reasonsOfReboots[r.State],
			Message: describeReboot(f, r),
		})
	}
	if d.Status.ReplaceRequested && !before.ReplaceRequested {
		out = append(out, plan.Event{Reason: machinev1alpha1.EventReplaceRequested, Message: machinev1alpha1.AnnotationReplace + " asks for another Machine in place of this one"})
	}
	if e, ok := ofPhase(f, d); ok && d.Status.Phase != before.Phase {
		out = append(out, e)
	}
	for _, c := range d.Conditions {
		earlier := meta.FindStatusCondition(before.Conditions, c.Type)
		switch {
		case c.Reason == machinev1alpha1.ReasonBootstrapFailing || c.Reason == machinev1alpha1.ReasonUserDataRefused:
			// The guest writes the message, so a new message alone causes no event.
			if earlier == nil || earlier.Reason != c.Reason {
				out = append(out, plan.Event{Warning: true, Reason: c.Reason, Message: c.Message})
			}
		case c.Type == machinev1alpha1.ConditionAnnotationsValid && c.Status == isFalse && c.IsNew(before.Conditions):
			out = append(out, plan.Event{Warning: true, Reason: c.Reason, Message: c.Message})
		case c.Type == machinev1alpha1.ConditionPreserved && (c.Status == isTrue) != (earlier != nil && string(earlier.Status) == isTrue):
			out = append(out, plan.Event{Reason: c.Reason, Message: cmp.Or(c.Message, "It is kept no longer")})
		}
	}
	return out
}

// ofPhase returns the event of a phase that begins.
func ofPhase(f facts, d Desired) (plan.Event, bool) {
	switch s := d.Status; s.Phase {
	case machinev1alpha1.MachineProvisioning:
		return plan.Event{Reason: machinev1alpha1.EventVMRequested, Message: fmt.Sprintf("Asked the provider for VM %s", f.VM.Name)}, true
	case machinev1alpha1.MachineJoining:
		return plan.Event{Reason: machinev1alpha1.ReasonVMRunning, Message: fmt.Sprintf("VM %s runs, its Node is awaited", s.ProviderID)}, true
	case machinev1alpha1.MachineRunning:
		return plan.Event{Reason: machinev1alpha1.ReasonNodeReady, Message: fmt.Sprintf("Node %s is Ready", s.NodeRef.Name)}, true
	case machinev1alpha1.MachineUnknown:
		for _, c := range d.Conditions {
			// The first of them is NodeReady.
			if (c.Type == machinev1alpha1.ConditionNodeReady || c.Type == machinev1alpha1.ConditionNodeHealthy) && c.Status != isTrue {
				return plan.Event{Warning: true, Reason: c.Reason, Message: cmp.Or(c.Message, "The Node is not Ready")}, true
			}
		}
	case machinev1alpha1.MachineFailed:
		return plan.Event{Warning: true, Reason: string(s.FailureReason), Message: s.Failure()}, true
	}
	return plan.Event{}, false
}
