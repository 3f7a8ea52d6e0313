package machine

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// Plan decides the status of a Machine and the parameters of its Node.
func Plan(now time.Time, o Observed) Desired {
	f := factsOf(now, o)
	d := decision{update: update(f)}
	d.unhealthy = unhealthiness(f, beingUpdated(d.update) || f.before.Reboot.IsInProgress())
	d.reboot = reboot(f, d)
	if d.reboot.IsInProgress() {
		d.unhealthy = unhealthiness(f, true)
	}
	d.phase, d.failure = decide(f, d)
	d.preservation = preservation(f, d)

	out := Desired{WorkerNode: workerNode(f, d), Status: status(f, d)}
	out.Ready, out.Conditions, out.CallAgain = d.phase == machinev1alpha1.MachineRunning, conditions(f, d), callAgain(f, d)
	if lasts(now, d.preservation) {
		out.CallAgain = min(out.CallAgain, d.preservation.Until.Sub(now))
	}
	if at := f.capacityDeadline(); !at.IsZero() && d.phase != machinev1alpha1.MachineFailed {
		out.CallAgain = min(out.CallAgain, at.Sub(now))
	}
	out.Requests = Requests{Console: f.readsConsole(d), Reboot: rebootRequest(d.reboot)}
	if at := rebootDeadline(f, d.reboot); !at.IsZero() {
		out.CallAgain = min(out.CallAgain, max(at.Sub(now), time.Second))
	}
	if after := f.untilLate(); after > 0 && d.phase != machinev1alpha1.MachineFailed {
		out.CallAgain = min(out.CallAgain, after)
	}
	if f.VM.LookAgain > 0 && d.phase != machinev1alpha1.MachineFailed {
		out.CallAgain = min(out.CallAgain, f.VM.LookAgain)
	}
	if len(o.HealthProfiles.Missing) > 0 {
		out.CallAgain = min(out.CallAgain, plan.InFlight) // Nothing reports that a profile was created.
	}
	if f.untilNodeMayRequest > 0 {
		out.CallAgain = min(out.CallAgain, f.untilNodeMayRequest)
	}
	out.Events = events(f, out)
	return out
}

func callAgain(f facts, d decision) time.Duration {
	switch d.phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineFailed:
		return plan.AtRest
	case machinev1alpha1.MachineUpdating:
		want := f.Machine.Spec.InPlaceUpdate
		switch {
		case d.update.State == machinev1alpha1.UpdateFailed && want != nil:
			return plan.AtRest
		case d.update.State == machinev1alpha1.UpdateUpdating && want != nil:
			return min(plan.InFlight, updateDeadline(*d.update, want).Sub(f.now))
		}
	case machinev1alpha1.MachineRebooting:
		return plan.InFlight
	case machinev1alpha1.MachineUnknown:
		if gone := f.goneUntil(); !gone.IsZero() {
			return min(plan.InFlight, f.untilFailed(gone))
		}
		if at, _ := failsAt(f.health, *d.unhealthy); f.judgesHealth && d.unhealthy.RebootID == "" {
			return min(plan.InFlight, f.untilFailed(at))
		}
	default:
		if !f.deadline.IsZero() {
			return min(plan.InFlight, f.untilFailed(f.deadline))
		}
	}
	return plan.InFlight
}
