package machine

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

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
	f.isRefused = o.VM.State == plan.VMCreating && o.VM.ErrorCode != "" && f.providerID == "" && !f.isTried()
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

func (f *facts) requestReplacement() {
	value := f.Machine.Annotations[machinev1alpha1.AnnotationReplace]
	asks := f.node.Annotations[machinev1alpha1.AnnotationReplace] == "true"
	if asks {
		f.untilNodeMayRequest = max(0, f.Machine.CreationTimestamp.Add(nodeMayRequestAfter).Sub(f.now))
	}
	f.nodeRequestedReplacement = value != "false" && (f.before.NodeRequestedReplacement || asks && f.untilNodeMayRequest == 0)
	f.replaceRequested = value == "true" || f.nodeRequestedReplacement
}

// nodeMayRequestAfter is the age from which a request of its Node replaces a Machine. A kubelet
// writes the annotations of its Node: without this limit, each replacement could request the next
// one at once.
const nodeMayRequestAfter = 5 * time.Minute

func (f facts) beginOfExhaustion() *metav1.Time {
	switch {
	case f.providerID != "" || f.VM.Exhausted == "" && (!f.isRefused || !fn.ErrorCode(f.VM.ErrorCode).IsExhausted()):
		return nil
	case f.before.ExhaustedSince != nil:
		return f.before.ExhaustedSince
	}
	return whole(f.now)
}

func (f facts) endOfRefusal() *metav1.Time {
	switch before := f.before.InstanceType; {
	case len(f.newRefusals()) > 0, before != nil && before.Name == "" && f.isTried():
		return whole(f.now) // The next instance type has the whole creationTimeout.
	case f.isTried():
		return f.before.RefusedUntil
	}
	op := f.before.LastOperation
	isReported := f.before.ProviderID == "" && op != nil && op.Type == machinev1alpha1.OperationCreate &&
		(op.State == machinev1alpha1.OperationProcessing || f.before.FailureReason == machinev1alpha1.FailureCapacityTimeout)
	had := isReported && (op.ErrorCode != "" || meta.IsStatusConditionFalse(f.before.Conditions, machinev1alpha1.ConditionValid))
	if f.isRefused || f.isInvalid || !had {
		return f.before.RefusedUntil
	}
	return whole(f.now)
}

// isTried reports whether one of the instance types of the class is tried, or the VM resource of a refused one is deleted. The
// error is that of earlier ones then, and the Machine waits no longer than its creationTimeout.
func (f facts) isTried() bool {
	t := f.VM.InstanceType
	return f.VM.Exhausted != "" && t != nil && t.Name != ""
}

// newRefusals returns the refusals of instance types that are not recorded yet.
func (f facts) newRefusals() []machinev1alpha1.RefusedInstanceType {
	if f.VM.InstanceType == nil {
		return nil
	}
	var out []machinev1alpha1.RefusedInstanceType
	for _, r := range f.VM.InstanceType.Refused {
		isRecorded := func(b machinev1alpha1.RefusedInstanceType) bool { return b.VMUID == r.VMUID }
		if before := f.before.InstanceType; before == nil || !slices.ContainsFunc(before.Refused, isRecorded) {
			out = append(out, r)
		}
	}
	return out
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

func (f facts) asksFor(annotation string) bool {
	return f.Machine.Annotations[annotation] == "true" || f.node.Annotations[annotation] == "true"
}
