package machine

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// Observed is the view of the step.
type Observed struct {
	Machine *machinev1alpha1.Machine
	// Bootstrap and VM are the outputs of the earlier steps.
	Bootstrap plan.Bootstrap
	VM        plan.VM
	// WorkerNode is the observed Node, nil until parameters for it were decided.
	WorkerNode *workernode.WorkerNode
	// HealthProfiles are those of spec.health.
	HealthProfiles plan.HealthProfiles
	// Devices that the Machine's class names. They are nil if it names none or is not known, or if spec.health does not judge
	// them.
	Devices machinev1alpha1.Devices
	// CloudNamesNodes means that the cloud sets the name of the Node, so that it differs from the
	// Machine's.
	CloudNamesNodes bool
	// TargetUnreachable means that the target cluster is unreachable. The observation of the Node
	// is stale then, and no Machine fails because of it.
	TargetUnreachable bool
	// JudgeAfter is the time from which a Node may make its Machine Failed again after an outage of
	// the cluster. It is zero if there was none.
	JudgeAfter time.Time
}

// Desired is the output of the step.
type Desired struct {
	// WorkerNode is the desired state of the Node. It is nil until the VM's providerID is known.
	WorkerNode *workernode.Parameters
	// Requests to the provider of the VM.
	Requests Requests

	Status machinev1alpha1.MachineStatus
	plan.Report
}

// Requests to the provider of a VM. They are annotations of the VM resource.
type Requests struct {
	// Console means that the provider shall report the console of the VM.
	Console bool
	// Reboot is the request of a reboot: see [machinev1alpha1.RebootRequest]. It is "" if there is none.
	Reboot string
}

// A decision is made in the order of its fields. Each field depends on the facts and on the fields
// before it.
type decision struct {
	// update in place, nil if there is none.
	update *machinev1alpha1.UpdateStatus
	// unhealthy is nil for a Machine whose Node never was unhealthy. It ends when a reboot begins.
	unhealthy *machinev1alpha1.Unhealthiness
	// reboot that is requested or in progress, or was the last one. It is nil if there was none.
	reboot *machinev1alpha1.RebootStatus
	phase  machinev1alpha1.MachinePhase
	// failure is nil unless the Machine is Failed.
	failure *failure
	// preservation, possibly expired, nil if none was requested.
	preservation *machinev1alpha1.Preservation
}

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
