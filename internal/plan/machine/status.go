package machine

import (
	"fmt"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// status returns the new status. Observations of VM and Node are kept when they can no longer be
// observed.
func status(f facts, d decision) machinev1alpha1.MachineStatus {
	s := machinev1alpha1.MachineStatus{
		Phase:        d.phase,
		ProviderID:   f.providerID,
		NodeRef:      f.before.NodeRef,
		NodeInfo:     f.before.NodeInfo,
		Addresses:    addresses(f),
		Update:       d.update,
		Reboot:       d.reboot,
		Preserve:     f.preserve,
		RefusedUntil: f.refusedUntil,
		InstanceType: instanceType(f),

		ExhaustedSince: f.exhaustedSince,
		Join:           withConsole(joinStatus(f), keptConsole(f, d)),
		ResourceRefs:   f.before.ResourceRefs,
		Unhealthy:      d.unhealthy,

		ReplaceRequested:         f.replaceRequested,
		NodeRequestedReplacement: f.nodeRequestedReplacement,
		Preservation:             d.preservation,
		Drain:                    f.node.Drain,
		Drained:                  f.node.Drained,
		ObservedGeneration:       f.Machine.Generation,
	}
	switch {
	case !f.node.goneSince.IsZero():
		s.NodeGoneSince = whole(f.node.goneSince)
	case !f.isNodeKnown && !f.node.Present:
		// An outage does not restore the Node: nodeGoneGrace must not restart after it.
		s.NodeGoneSince = f.before.NodeGoneSince
	}
	if f.node.joined {
		s.NodeRef = &machinev1alpha1.NodeReference{APIVersion: "v1", Kind: "Node", Name: f.node.NodeName, UID: string(f.node.NodeUID)}
	}
	if f.node.NodeInfo != nil {
		info := machinev1alpha1.NodeInfo(*f.node.NodeInfo)
		s.NodeInfo = &info
	}
	if f.node.healthy {
		s.ReadySince = f.node.since
		// The Node was Ready before, but another condition made it unhealthy.
		if sick := d.unhealthy; sick != nil && sick.Until != nil && f.node.since.Before(sick.Until) {
			s.ReadySince = sick.Until
		}
	}
	switch {
	case f.node.ready:
	case f.isNodeKnown && f.node.Present:
		s.NotReadySince = f.node.since
	case !f.isNodeKnown && f.node.Present:
		// An outage does not make the Node Ready: deadAfter must not restart after it.
		s.NotReadySince = f.before.NotReadySince
	}
	if d.failure != nil {
		s.FailureReason = d.failure.reason
		s.LossConfirmed = f.isLossConfirmed()
		// The cluster-autoscaler deletes each Machine with the root field. It must not see the
		// field on a preserved Machine.
		if !lasts(f.now, d.preservation) {
			s.FailureMessage = d.failure.message
		}
	}
	s.LastOperation = lastOperation(f.now, f.before.LastOperation, operation(f, d))
	return s
}

// instanceType that the VM has or is requested with, nil if the class lists none.
func instanceType(f facts) *machinev1alpha1.InstanceTypeStatus {
	switch t := f.VM.InstanceType; {
	case t == nil:
		return f.before.InstanceType
	case t.Round == 0:
		return nil
	default:
		return t
	}
}

// addresses of the VM or, at clouds that report none, of the Node.
func addresses(f facts) []machinev1alpha1.Address {
	known := f.addresses
	if len(known) == 0 {
		known = f.node.Addresses
	}
	var out []machinev1alpha1.Address
	for _, a := range known {
		out = append(out, machinev1alpha1.Address{Type: machinev1alpha1.AddressType(a.Type), Address: a.Address})
	}
	if len(out) > 0 {
		return out
	}
	return f.before.Addresses
}

// operation that is in progress, or was the last.
func operation(f facts, d decision) machinev1alpha1.LastOperation {
	if d.reboot.IsInProgress() {
		return rebootOperation(f, d.reboot)
	}
	if op := f.before.LastOperation; op != nil && f.before.Phase == machinev1alpha1.MachineFailed && d.failure != nil {
		return *op
	}
	if begun(d.update) {
		return updateOperation(f, d.update)
	}
	if op := f.before.LastOperation; op != nil && op.Type == machinev1alpha1.OperationReboot && d.reboot.IsDone() {
		return rebootOperation(f, d.reboot)
	}
	if op := f.before.LastOperation; op != nil && op.Type == machinev1alpha1.OperationUpdate && op.State == machinev1alpha1.OperationSuccessful {
		return *op
	}
	op := machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing}
	if f.providerID != "" && d.phase != machinev1alpha1.MachineProvisioning {
		op.Type = machinev1alpha1.OperationJoin
	}
	switch {
	case f.everJoined && d.phase != machinev1alpha1.MachineJoining && (d.failure == nil || f.hasRun):
		// The join succeeded. A later failure of VM or Node does not change that.
		op.Type, op.State = machinev1alpha1.OperationJoin, machinev1alpha1.OperationSuccessful
		op.Description = fmt.Sprintf("Node %s joined", nodeName(f))
	case d.failure != nil:
		op.State, op.ErrorCode, op.Description = machinev1alpha1.OperationFailed, d.failure.code, d.failure.message
	default:
		op.ErrorCode, op.Description = f.VM.ErrorCode, f.waitsFor
	}
	return op
}

func updateOperation(f facts, u *machinev1alpha1.UpdateStatus) machinev1alpha1.LastOperation {
	op := machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationUpdate, State: machinev1alpha1.OperationProcessing}
	switch u.State {
	case machinev1alpha1.UpdateSucceeded:
		op.State = machinev1alpha1.OperationSuccessful
	case machinev1alpha1.UpdateFailed:
		op.State = machinev1alpha1.OperationFailed
	}
	op.Description = describe(f.Machine, u)
	return op
}

// lastOperation keeps the time of an unchanged operation, so that the status does not change
// without need.
func lastOperation(now time.Time, before *machinev1alpha1.LastOperation, op machinev1alpha1.LastOperation) *machinev1alpha1.LastOperation {
	if before != nil && before.LastUpdateTime != nil {
		op.LastUpdateTime = before.LastUpdateTime
		if *before == op {
			return before
		}
	}
	op.LastUpdateTime = whole(now)
	return &op
}

func nodeName(f facts) string {
	if !f.node.joined && f.before.NodeRef != nil {
		return f.before.NodeRef.Name
	}
	return f.node.NodeName
}
