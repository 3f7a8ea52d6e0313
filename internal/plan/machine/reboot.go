package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/text"
	"github.com/drover-dev/drover/internal/workernode"
)

const (
	// softRebootFor is the time that a Node has to prove a soft reboot, if spec.health.reboot.timeout is not shorter, and
	// the first boot of the Machine did not take longer.
	// An operating system that hangs ignores the request: after this time the VM is reset.
	softRebootFor = 5 * time.Minute
	// rememberedReboots is the number of IDs of earlier reboots that the status keeps.
	rememberedReboots = 10
	// maxRebootMessage is the length to which the message is shortened: a provider's error may be part of it.
	maxRebootMessage = 1024
	// maxRebootCause is the length to which the condition that caused a reboot is shortened: its reason is the Node's.
	maxRebootCause = 256
	// notObserved is the message of a reboot on which nothing can be decided now.
	notObserved = "the Node cannot be observed"
)

// reboot returns the state of the reboot that the annotation or the health of the Node requests, or of the last one. It
// is nil if there was none. A request of a user takes precedence over one of health.
//
//	Waiting -> Draining -> Rebooting (Soft) -> Rebooting (Hard) -> Failed
//	                               \-> Succeeded    \-> Succeeded
//
// The proof is the Node's: another boot ID than before, and health. The answer of a provider proves nothing. A request
// to a provider is written to the status before it is made, and has the same text whenever it is repeated, so that the
// provider carries it out once.
func reboot(f facts, d decision) *machinev1alpha1.RebootStatus {
	before, id := f.before.Reboot, f.Machine.Annotations[machinev1alpha1.AnnotationReboot]
	r := rebooting{facts: f, update: d.update, requested: id}
	switch {
	case before != nil && !before.IsDone():
		r.s = *before
	case machinev1alpha1.IsRebootID(id) && !f.wasRebooted(id):
		r.s = rebootOf(f, id, f.Machine.Annotations[machinev1alpha1.AnnotationRebootDrain])
	case f.isGranted(d.unhealthy):
		r.s = rebootOf(f, d.unhealthy.RebootID, healthReboot(f.Machine).Drain)
		why, _ := f.rebootCause(*d.unhealthy)
		r.s.ByHealth = text.Shorten(describeCondition(why), maxRebootCause)
	default:
		return before
	}
	r.advance()
	if isRebootNews(before, &r.s) {
		r.s.Since = *whole(f.now)
	}
	return &r.s
}

// rebootOf returns a reboot that has not begun.
func rebootOf(f facts, id, drain string) machinev1alpha1.RebootStatus {
	s := machinev1alpha1.RebootStatus{
		ID: id, State: machinev1alpha1.RebootWaiting, StartTime: *whole(f.now), EarlierIDs: remembered(f.before.Reboot),
		SkipDrain: drain == machinev1alpha1.RebootDrainNever,
	}
	if f.before.Reboot != nil {
		s.HealthTimes = f.before.Reboot.HealthTimes
	}
	return s
}

// isRebootNews reports whether a reboot has begun, or is in another state or mode than before.
func isRebootNews(before, s *machinev1alpha1.RebootStatus) bool {
	return s != nil && (before == nil || before.ID != s.ID || before.State != s.State || before.Mode != s.Mode)
}

// remembered returns the IDs that the next reboot keeps, the last one first.
func remembered(last *machinev1alpha1.RebootStatus) []string {
	if last == nil {
		return nil
	}
	ids := slices.Concat([]string{last.ID}, last.EarlierIDs)
	return ids[:min(len(ids), rememberedReboots)]
}

// A rebooting is a reboot that has not ended.
type rebooting struct {
	facts
	s machinev1alpha1.RebootStatus
	// update in place, nil if there is none.
	update *machinev1alpha1.UpdateStatus
	// requested is the ID that the annotation has now.
	requested string
}

func (r *rebooting) advance() {
	switch r.s.State {
	case machinev1alpha1.RebootWaiting, machinev1alpha1.RebootDraining:
		if r.s.ByHealth == "" && r.requested != r.s.ID {
			r.fail("the request was withdrawn before the VM was rebooted")
			return
		}
		r.prepare()
	case machinev1alpha1.RebootRebooting:
		r.judge()
	}
}

// prepare brings the reboot to its first request.
func (r *rebooting) prepare() {
	wn := r.WorkerNode
	switch {
	case r.VM.Reboot == nil:
		r.fail("its provider cannot reboot VMs")
	case r.node.BootID == "" && r.isNodeKnown:
		r.fail("it has no Node that reports a boot ID, and nothing else proves a reboot")
	case !r.isNodeKnown || r.TargetUnreachable:
		r.s.Message = notObserved
	case begun(r.update) && r.s.State == machinev1alpha1.RebootWaiting:
		r.s.Message = "an update in place is in progress"
	case r.s.State == machinev1alpha1.RebootDraining && wn.Parameters.Drained && wn.Observation.Drained:
		r.s.State, r.s.Message = machinev1alpha1.RebootRebooting, ""
		r.s.Mode, r.s.BootID = machinev1alpha1.RebootSoft, r.node.BootID
		if r.s.ByHealth != "" {
			times := append([]metav1.Time{*whole(r.now)}, r.s.HealthTimes...)
			r.s.HealthTimes = times[:min(len(times), rememberedReboots)]
		}
	default:
		r.s.State, r.s.Message = machinev1alpha1.RebootDraining, ""
	}
}

// judge decides on a reboot that was requested from the provider. A cluster that cannot be read changes nothing.
func (r *rebooting) judge() {
	if !r.isNodeKnown || r.TargetUnreachable {
		r.s.Message = notObserved
		return
	}
	if r.s.Message == notObserved {
		r.s.Message = ""
	}
	booted := r.node.BootID != "" && r.node.BootID != r.s.BootID
	took, isSoft := r.now.Sub(r.s.Since.Time), r.s.Mode == machinev1alpha1.RebootSoft
	softFor, rebootFor := rebootTimeouts(r.facts)
	refusal, delay := "", ""
	if said, request := r.VM.Reboot, machinev1alpha1.RebootRequest(r.s.Mode, r.s.ID); said != nil {
		switch request {
		case said.Refused:
			refusal = cmp.Or(said.Message, "the provider gave no reason")
		case said.Delayed:
			delay = said.Message
		}
	}
	switch {
	case booted && r.node.healthy:
		r.s.State, r.s.Message = machinev1alpha1.RebootSucceeded, ""
	case booted && took >= rebootFor:
		r.fail(fmt.Sprintf("the VM was rebooted, and its Node was not healthy within %s: %s", rebootFor, r.node.message))
	case booted:
		r.s.Message = "the VM was rebooted: " + cmp.Or(r.node.message, "its Node is not healthy yet")
	case isSoft && (refusal != "" || took >= softFor):
		r.s.Mode = machinev1alpha1.RebootHard
		r.s.Message = "the soft reboot " + refused(refusal, delay, softFor)
	case refusal != "":
		r.fail("the reboot " + refused(refusal, "", rebootFor))
	case !isSoft && took >= rebootFor:
		r.fail("the reboot " + refused("", delay, rebootFor))
	}
}

// refused describes a request that failed, by the error of the provider, by the cause for which it repeated the request, or
// else by the time that the Node had.
func refused(refusal, delay string, within time.Duration) string {
	switch {
	case refusal != "":
		return "was refused: " + refusal
	case delay != "":
		return fmt.Sprintf("was refused for %s: %s", within, delay)
	}
	return fmt.Sprintf("was not proven: the Node reported no other boot ID within %s", within)
}

func (r *rebooting) fail(why string) {
	r.s.State, r.s.Message = machinev1alpha1.RebootFailed, text.Shorten(why, maxRebootMessage)
}

// rebootRequest returns the request to the provider, "" if there is none.
func rebootRequest(s *machinev1alpha1.RebootStatus) string {
	if s == nil || s.State != machinev1alpha1.RebootRebooting {
		return ""
	}
	return machinev1alpha1.RebootRequest(s.Mode, s.ID)
}

// rebootTimeouts returns the times in which a Node has to prove a soft reboot, and any reboot. A Machine that needs longer
// to boot, as its first boot showed, has that time.
func rebootTimeouts(f facts) (soft, reboot time.Duration) {
	reboot = plan.Timeout(healthReboot(f.Machine).Timeout, machinev1alpha1.DefaultRebootTimeout)
	soft = softRebootFor
	first := plan.FirstBoot(f.before.Join)
	// A hard reboot in the middle of the boot after a soft one would begin it again.
	soft, reboot = max(soft, first), max(reboot, first)
	return min(soft, reboot), reboot
}

// rebootDeadline returns when the state of the reboot changes although nothing is observed, zero if it does not.
func rebootDeadline(f facts, s *machinev1alpha1.RebootStatus) time.Time {
	soft, reboot := rebootTimeouts(f)
	switch {
	case s == nil || s.State != machinev1alpha1.RebootRebooting || !f.isNodeKnown:
		return time.Time{}
	case s.Mode == machinev1alpha1.RebootSoft && f.node.BootID == s.BootID:
		return s.Since.Add(soft)
	}
	return s.Since.Add(reboot)
}

// emptyForReboot cordons the Node of a reboot, and drains it unless the request excludes that. A Node that was not
// cordoned before is uncordoned at the end.
func emptyForReboot(p *workernode.Parameters, s *machinev1alpha1.RebootStatus) {
	if !s.IsInProgress() {
		return
	}
	p.Drained = true
	p.Drain.Skip = p.Drain.Skip || s.SkipDrain
}

// isReboot reports whether the Machine is out of use for a reboot: it is in progress, or it has ended and the Node is not
// uncordoned yet.
func isReboot(f facts, s *machinev1alpha1.RebootStatus) bool {
	return s.IsInProgress() || s.IsDone() && f.before.Phase == machinev1alpha1.MachineRebooting && !uncordoned(f.WorkerNode)
}

// reasonsOfReboots are the reasons of conditions and events, by the state of a reboot.
var reasonsOfReboots = map[machinev1alpha1.RebootState]string{
	machinev1alpha1.RebootWaiting:   machinev1alpha1.ReasonRebootWaiting,
	machinev1alpha1.RebootDraining:  machinev1alpha1.ReasonRebootDraining,
	machinev1alpha1.RebootRebooting: machinev1alpha1.ReasonRebooting,
	machinev1alpha1.RebootSucceeded: machinev1alpha1.ReasonRebooted,
	machinev1alpha1.RebootFailed:    machinev1alpha1.ReasonRebootFailed,
}

// rebootedCondition is nil for a Machine that never was to be rebooted.
func rebootedCondition(f facts, s *machinev1alpha1.RebootStatus) *plan.Condition {
	if s == nil {
		return nil
	}
	c := &plan.Condition{Type: machinev1alpha1.ConditionRebooted, Status: isFalse, Reason: reasonsOfReboots[s.State], Message: describeReboot(f, s)}
	if s.State == machinev1alpha1.RebootSucceeded {
		c.Status = isTrue
	}
	return c
}

// describeReboot for an event or condition.
func describeReboot(f facts, s *machinev1alpha1.RebootStatus) string {
	what, after := s.ID, ""
	if s.ByHealth != "" {
		what += ", because " + s.ByHealth + ","
	}
	if s.Message != "" {
		after = ": " + s.Message
	}
	switch s.State {
	case machinev1alpha1.RebootWaiting:
		return fmt.Sprintf("Reboot %s waits%s", what, after)
	case machinev1alpha1.RebootDraining:
		verb := "Draining"
		if s.SkipDrain {
			verb = "Cordoning"
		}
		return strings.TrimSuffix(fmt.Sprintf("%s the Node for reboot %s", verb, what), ",") + after
	case machinev1alpha1.RebootRebooting:
		soft, until := rebootTimeouts(f)
		if s.Mode == machinev1alpha1.RebootSoft {
			until = soft
		}
		return fmt.Sprintf("%s reboot %s was requested at %s, and its Node has %s to report another boot ID%s", s.Mode, what, s.Since.UTC().Format(time.RFC3339), until, after)
	case machinev1alpha1.RebootSucceeded:
		return fmt.Sprintf("Reboot %s is proven: the Node has booted again and is healthy", what)
	}
	return fmt.Sprintf("Reboot %s failed%s", what, after)
}

// rebootOperation is that of a reboot in progress, or of one that failed or succeeded.
func rebootOperation(f facts, s *machinev1alpha1.RebootStatus) machinev1alpha1.LastOperation {
	op := machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationReboot, State: machinev1alpha1.OperationProcessing, Description: describeReboot(f, s)}
	switch s.State {
	case machinev1alpha1.RebootSucceeded:
		op.State = machinev1alpha1.OperationSuccessful
	case machinev1alpha1.RebootFailed:
		op.State = machinev1alpha1.OperationFailed
	}
	return op
}
