package machine

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// facts of a Machine follow only from the observed state, never from a decision. They are computed
// once, and no stage changes them.
type facts struct {
	Observed
	now time.Time
	// before is the observed status.
	before machinev1alpha1.MachineStatus
	// hasRun means that the Machine had a healthy Node.
	hasRun bool
	// health has the conditions of spec.health and of its profiles.
	health machinev1alpha1.Health
	node   node
	// isNodeKnown means that the Node can be observed now.
	isNodeKnown bool
	// everJoined means that the Machine had a Node at any time.
	everJoined bool
	// providerID of the Machine's VM. The status keeps it for the time when the VM can no longer be
	// observed. It identifies the VM to users and to the cluster-autoscaler, and proves nothing: a
	// Node is claimed by the token that it joined with.
	providerID string
	// addresses that the cloud reports or last reported for the VM. The Node's own report is never
	// used.
	addresses []workernode.Address
	// problem that a user can fix, nil if there is none.
	problem *plan.Problem
	// isRefused means that the provider cannot create the VM and reports an error.
	isRefused bool
	// exhaustedSince is the time since which the cloud refuses the VM for lack of room, nil if it
	// does not.
	exhaustedSince *metav1.Time
	// isInvalid means that there is no VM, and that a user must fix a problem first.
	isInvalid bool
	// refusedUntil is the time at which the last reason not to create the VM ended: now, if there
	// was a reason before.
	refusedUntil *metav1.Time
	// waitsFor describes in one line the condition that the Machine waits for.
	waitsFor string
	// mayFail means that the state or absence of the Node may make the Machine Failed.
	mayFail bool
	// skipsRemediation means that the Machine or the Node has the annotation.
	skipsRemediation bool
	// replaceRequested means that the Machine shall be replaced, and nodeRequestedReplacement that
	// its Node requested that. A request of the Node stays in force after the annotation is
	// removed: otherwise a kubelet could cause an endless series of replacements that are created
	// and deleted. The value "false" on the Machine cancels it.
	replaceRequested, nodeRequestedReplacement bool
	// untilNodeMayRequest is the time until a request of the Node counts, 0 if there is none to
	// wait for.
	untilNodeMayRequest time.Duration
	// preserve is the value of the annotation that is in force.
	preserve string
	// judgesHealth means that an unhealthy Node may make the Machine Failed. A stale observation
	// must not.
	judgesHealth bool
	// creationTimeout of the Machine, and the deadline of one that has not run. The deadline is
	// zero while the VM is refused with any error code, and while the input is invalid. A
	// replacement would request the same VM, and this Machine continues once the cloud recovers or
	// a user fixes the input.
	creationTimeout time.Duration
	deadline        time.Time
}

func factsOf(now time.Time, o Observed) facts {
	m := o.Machine
	before := *m.Status.DeepCopy()
	plan.SettleStatus(now, &before)
	f := facts{Observed: o, now: now, before: before, hasRun: plan.HasRun(before), providerID: o.VM.ProviderID, problem: o.Bootstrap.Problem}
	f.health = health(o)
	f.node = nodeOf(now, f.health, o.Devices, before.NodeGoneSince, o.WorkerNode, f.hasRun)
	if o.VM.AwaitsCompanion {
		// Without its disk or its place behind a load balancer, the VM is not complete.
		f.node.healthy = false
	}
	f.isNodeKnown = o.WorkerNode != nil && f.node.Error == ""
	f.everJoined = f.node.joined || f.before.NodeRef != nil
	f.skipsRemediation = f.asksFor(machinev1alpha1.AnnotationSkipRemediation)
	f.takeVerdict()
	if f.providerID == "" {
		f.providerID = f.before.ProviderID
	}
	if f.addresses = o.VM.Addresses; len(f.addresses) == 0 && o.WorkerNode != nil {
		f.addresses = o.WorkerNode.Parameters.Addresses
	}
	if f.problem == nil {
		f.problem = o.VM.Problem
	}
	f.isRefused = o.VM.State == plan.VMCreating && o.VM.ErrorCode != "" && f.providerID == ""
	f.exhaustedSince = f.beginOfExhaustion()
	f.isInvalid = f.problem != nil && o.VM.State == plan.VMAbsent && f.providerID == ""
	f.refusedUntil = f.endOfRefusal()
	if text := f.describeConsole(); text != "" && f.node.message != "" {
		f.node.message += "; " + text
	}
	f.waitsFor = f.describeWait()
	f.mayFail = !o.TargetUnreachable && !now.Before(o.JudgeAfter)
	f.requestReplacement()
	f.preserve = preserve(f)
	f.judgesHealth = !m.Spec.Health.Disabled && !f.skipsRemediation && f.isNodeKnown
	f.creationTimeout = plan.CreationTimeout(m)
	if !f.node.healthy && !f.isRefused && !f.isInvalid && !f.skipsRemediation {
		f.deadline = plan.StartsSince(m, f.refusedUntil).Add(f.creationTimeout)
		if at := f.devicesUntil(); at.After(f.deadline) {
			f.deadline = at
		}
	}
	return f
}

// takeVerdict applies the verdict of the cloud's inventory unless the Node is Ready or cannot be
// observed: a wrong list must not fail a working Machine. A VM that reboots may be listed as stopped.
func (f *facts) takeVerdict() {
	v := f.VM.Verdict
	if v == nil || !f.isNodeKnown || f.node.ready || f.skipsRemediation || f.before.Reboot.IsInProgress() && v.State == plan.VMFailed || f.TargetUnreachable || f.now.Before(f.JudgeAfter) {
		return
	}
	f.VM.State, f.VM.ErrorCode, f.VM.Message = v.State, "", v.Message
}

func (f facts) asksFor(annotation string) bool {
	return f.Machine.Annotations[annotation] == "true" || f.node.Annotations[annotation] == "true"
}

// nodeMayRequestAfter is the age from which a request of its Node replaces a Machine. A kubelet
// writes the annotations of its Node: without this limit, each replacement could request the next
// one at once.
const nodeMayRequestAfter = 5 * time.Minute

func (f *facts) requestReplacement() {
	value := f.Machine.Annotations[machinev1alpha1.AnnotationReplace]
	asks := f.node.Annotations[machinev1alpha1.AnnotationReplace] == "true"
	if asks {
		f.untilNodeMayRequest = max(0, f.Machine.CreationTimestamp.Add(nodeMayRequestAfter).Sub(f.now))
	}
	f.nodeRequestedReplacement = value != "false" && (f.before.NodeRequestedReplacement || asks && f.untilNodeMayRequest == 0)
	f.replaceRequested = value == "true" || f.nodeRequestedReplacement
}

func (f facts) beginOfExhaustion() *metav1.Time {
	switch {
	case !f.isRefused || !fn.ErrorCode(f.VM.ErrorCode).IsExhausted():
		return nil
	case f.before.ExhaustedSince != nil:
		return f.before.ExhaustedSince
	}
	return whole(f.now)
}

// capacityDeadline returns the time at which the Machine fails if the cloud still has no room. It
// is zero if the Machine has no capacityTimeout or is not refused for lack of room.
func (f facts) capacityDeadline() time.Time {
	if f.exhaustedSince == nil || f.Machine.Spec.CapacityTimeout == nil {
		return time.Time{}
	}
	return f.exhaustedSince.Add(f.Machine.Spec.CapacityTimeout.Duration)
}

func (f facts) endOfRefusal() *metav1.Time {
	op := f.before.LastOperation
	isReported := f.before.ProviderID == "" && op != nil && op.Type == machinev1alpha1.OperationCreate &&
		(op.State == machinev1alpha1.OperationProcessing || f.before.FailureReason == machinev1alpha1.FailureCapacityTimeout)
	had := isReported && (op.ErrorCode != "" || meta.IsStatusConditionFalse(f.before.Conditions, machinev1alpha1.ConditionValid))
	if f.isRefused || f.isInvalid || !had {
		return f.before.RefusedUntil
	}
	return whole(f.now)
}

func (f facts) describeWait() string {
	switch {
	case f.problem != nil:
		return f.problem.Message
	case f.VM.State == plan.VMAbsent && f.Bootstrap.Waiting != "":
		return f.Bootstrap.Waiting
	case f.VM.State == plan.VMAbsent:
		return "waiting for user data"
	case f.VM.State == plan.VMCreating && f.Bootstrap.Waiting != "":
		return f.Bootstrap.Waiting
	case f.VM.State == plan.VMCreating && f.VM.Message != "":
		return f.VM.Message
	case f.VM.State == plan.VMCreating && f.VM.Unidentified:
		return fmt.Sprintf("VM %s is Ready, and the expression status.providerID of its Composition yields nothing", f.VM.Name)
	case f.VM.State == plan.VMCreating:
		return fmt.Sprintf("waiting for VM %s to run", f.VM.Name)
	case f.node.message != "":
		return f.node.message
	}
	return fmt.Sprintf("waiting for the Node of VM %s", f.VM.ProviderID)
}

// untilFailed returns the time until a Machine that misses the deadline fails.
func (f facts) untilFailed(deadline time.Time) time.Duration {
	if f.TargetUnreachable {
		return plan.InFlight
	}
	if deadline.Before(f.JudgeAfter) {
		deadline = f.JudgeAfter
	}
	return deadline.Sub(f.now)
}

// isUnhealthy reports whether the Node is unhealthy now.
func isUnhealthy(u *machinev1alpha1.Unhealthiness) bool { return u != nil && u.Until == nil }

// whole truncates a time to whole seconds, as a status stores it.
func whole(t time.Time) *metav1.Time {
	w := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &w
}
