package machine

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/plan"
)

// A Machine is late to join if its Node does not exist at lateAfter, counted from the start of its
// VM. It is also late if the Node is not healthy at lateWithNode: a network plugin may take some
// minutes. Only the console of a late VM is read, because most clouds count that as an API call.
const (
	lateAfter    = time.Minute
	lateWithNode = 5 * time.Minute
)

// lateAt returns the time from which the Machine is late to join, zero if it cannot be late.
func (f facts) lateAt() time.Time {
	if f.hasRun || f.node.healthy || f.VM.State != plan.VMRunning {
		return time.Time{}
	}
	running := cmp.Or(f.before.Join.At(machinev1alpha1.JoinVMRunning), whole(f.now))
	if f.node.Present {
		return running.Add(lateWithNode)
	}
	return running.Add(lateAfter)
}

func (f facts) isLate() bool {
	at := f.lateAt()
	return !at.IsZero() && !f.now.Before(at)
}

// hasToExplain reports whether the console may explain why the VM does not join: it is late, or it
// failed before it ever ran.
func (f facts) hasToExplain() bool {
	return f.isLate() || f.VM.State == plan.VMFailed && !f.hasRun
}

// untilLate returns the time until the Machine is late. It is 0 if the Machine is late, or if its
// console is not reported.
func (f facts) untilLate() time.Duration {
	if at := f.lateAt(); f.VM.Console != nil && !at.IsZero() {
		return max(0, at.Sub(f.now))
	}
	return 0
}

// readsConsole reports whether the provider shall report the console of the VM.
func (f facts) readsConsole(d decision) bool {
	return f.VM.Console != nil && f.isLate() && d.phase != machinev1alpha1.MachineFailed
}

// bootstrapProgress returns the last bootstrap step that the console reports while it has to
// explain why the VM does not join. Otherwise it returns the recorded step.
func (f facts) bootstrapProgress() *machinev1alpha1.BootstrapProgress {
	if f.hasRun || f.node.healthy {
		return nil
	}
	var before *machinev1alpha1.BootstrapProgress
	if f.before.Join != nil {
		before = f.before.Join.Bootstrap
	}
	if f.VM.Console == nil || f.VM.Console.Step == nil || !f.hasToExplain() {
		return before
	}
	step := f.VM.Console.Step
	out := &machinev1alpha1.BootstrapProgress{Step: step.Name, State: machinev1alpha1.BootstrapState(step.State), Since: *whole(f.now)}
	if step.State == console.Failed {
		out.ExitCode = ptr.To(int32(step.ExitCode))
	}
	if before != nil && before.Step == out.Step && before.State == out.State && ptr.Deref(before.ExitCode, 0) == ptr.Deref(out.ExitCode, 0) {
		return before
	}
	return out
}

// notJoinedReason returns the reason of the condition NodeReady of a Machine whose Node has not
// joined.
func (f facts) notJoinedReason() string {
	c := f.VM.Console
	switch {
	case c == nil || f.node.Present || f.node.Error != "" || !f.hasToExplain():
	case c.Step != nil && c.Step.State == console.Failed:
		return machinev1alpha1.ReasonBootstrapFailing
	case c.Refusal != "":
		return machinev1alpha1.ReasonUserDataRefused
	}
	return machinev1alpha1.ReasonNodeNotJoined
}

// describeConsole explains from the console why the VM does not join. It returns the bootstrap
// step, or else the refusal of the user data, or else the last lines. It is empty if there is a
// Node.
func (f facts) describeConsole() string {
	// An unreachable cluster is the better explanation: the Node may exist.
	if f.node.Present || f.node.Error != "" || !f.hasToExplain() || f.VM.Console == nil {
		return ""
	}
	c := f.VM.Console
	if p := f.bootstrapProgress(); p != nil {
		text := describeProgress(p, f.VM.State == plan.VMFailed)
		if c.Step != nil && c.Step.Output != "" {
			text += ": " + c.Step.Output
		}
		return text
	}
	if c.Refusal != "" {
		return "the operating system refused its user data: " + c.Refusal
	}
	if last := console.LastLines(c.Excerpt); last != "" {
		return "its console ends with: " + last
	}
	return ""
}

// describeProgress describes a bootstrap step. A VM that ended does not try a step again.
func describeProgress(p *machinev1alpha1.BootstrapProgress, ended bool) string {
	switch {
	case p.State == machinev1alpha1.BootstrapFailed && ended:
		return fmt.Sprintf("bootstrap step %s failed with exit code %d", p.Step, ptr.Deref(p.ExitCode, 0))
	case p.State == machinev1alpha1.BootstrapFailed:
		return fmt.Sprintf("bootstrap step %s failed with exit code %d and is tried again", p.Step, ptr.Deref(p.ExitCode, 0))
	case p.Step == "":
		return "all its bootstrap steps are done"
	case p.State == machinev1alpha1.BootstrapDone:
		return fmt.Sprintf("bootstrap step %s is done", p.Step)
	case ended:
		return fmt.Sprintf("bootstrap step %s was running", p.Step)
	}
	return fmt.Sprintf("bootstrap step %s is running", p.Step)
}

// keptConsole returns the end of the console of a Machine that failed before it ran. It is kept
// after the VM is deleted.
func keptConsole(f facts, d decision) string {
	if d.failure == nil || f.hasRun {
		return ""
	}
	if before := f.before.Join; before != nil && before.Console != "" {
		return before.Console
	}
	if f.VM.Console == nil {
		return ""
	}
	return f.VM.Console.Excerpt
}
