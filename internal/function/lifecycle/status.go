package lifecycle

import (
	"fmt"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// status says what is known. What once was known of VM and Node stays when they can
// no longer be asked.
func status(now time.Time, o Observed, n node, phase machinev1alpha1.MachinePhase, f *failure, sick *machinev1alpha1.Unhealthiness, u *machinev1alpha1.UpdateStatus) machinev1alpha1.MachineStatus {
	before := o.Machine.Status
	s := machinev1alpha1.MachineStatus{
		Phase:        phase,
		ProviderID:   providerID(o),
		NodeRef:      before.NodeRef,
		NodeInfo:     before.NodeInfo,
		Addresses:    addresses(o, n),
		Update:       u,
		Preserve:     preserve(o, n),
		RefusedUntil: refusedUntil(now, o),
		ResourceRefs: before.ResourceRefs,
		Unhealthy:    sick,
	}
	s.ReplaceRequested = replaceRequested(o, n)
	s.Preservation = preservation(now, o, phase, s.Preserve)
	s.Drain, s.Drained = n.Drain, n.Drained
	switch {
	case !n.goneSince.IsZero():
		s.NodeGoneSince = whole(n.goneSince)
	case !isKnown(o.WorkerNode) && !n.Present:
		// An outage does not bring the Node back: nodeGoneGrace must not begin again after it.
		s.NodeGoneSince = before.NodeGoneSince
	}
	if n.joined {
		s.NodeRef = &machinev1alpha1.NodeReference{APIVersion: "v1", Kind: "Node", Name: n.NodeName, UID: string(n.NodeUID)}
	}
	if n.NodeInfo != nil {
		info := machinev1alpha1.NodeInfo(*n.NodeInfo)
		s.NodeInfo = &info
	}
	if n.healthy {
		s.ReadySince = n.since
		// Ready was not all that it lacked.
		if sick != nil && sick.Until != nil && n.since.Before(sick.Until) {
			s.ReadySince = sick.Until
		}
	}
	if f != nil {
		s.FailureReason, s.FailureMessage = f.reason, f.message
	}
	s.LastOperation = lastOperation(now, before.LastOperation, operation(o, n, phase, f, u))
	s.ObservedGeneration = o.Machine.Generation
	return s
}

// addresses of the VM or, at clouds that do not tell, of the Node.
func addresses(o Observed, n node) []machinev1alpha1.Address {
	var out []machinev1alpha1.Address
	for _, a := range vmAddresses(o) {
		out = append(out, machinev1alpha1.Address{Type: machinev1alpha1.AddressType(a.Type), Address: a.Address})
	}
	if len(out) > 0 {
		return out
	}
	for _, a := range n.Addresses {
		out = append(out, machinev1alpha1.Address{Type: machinev1alpha1.AddressType(a.Type), Address: a.Address})
	}
	if len(out) > 0 {
		return out
	}
	return o.Machine.Status.Addresses
}

// operation that is under way, or was the last.
func operation(o Observed, n node, phase machinev1alpha1.MachinePhase, f *failure, u *machinev1alpha1.UpdateStatus) machinev1alpha1.LastOperation {
	before := o.Machine.Status
	if op := before.LastOperation; op != nil && before.Phase == machinev1alpha1.MachineFailed && f != nil {
		return *op
	}
	if begun(u) {
		return updateOperation(o, u)
	}
	if op := before.LastOperation; op != nil && op.Type == machinev1alpha1.OperationUpdate && op.State == machinev1alpha1.OperationSuccessful {
		return *op
	}
	op := machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing}
	if providerID(o) != "" && phase != machinev1alpha1.MachineProvisioning {
		op.Type = machinev1alpha1.OperationJoin
	}
	switch {
	case everJoined(o, n) && phase != machinev1alpha1.MachineJoining && (f == nil || hasRun(before)):
		// It was ended well, whatever became of VM and Node afterwards.
		op.Type, op.State = machinev1alpha1.OperationJoin, machinev1alpha1.OperationSuccessful
		op.Description = fmt.Sprintf("Node %s joined", nodeName(o, n))
	case f != nil:
		op.State, op.ErrorCode, op.Description = machinev1alpha1.OperationFailed, f.code, f.message
	default:
		op.ErrorCode, op.Description = o.VM.ErrorCode, waitsFor(o, n)
	}
	return op
}

func updateOperation(o Observed, u *machinev1alpha1.UpdateStatus) machinev1alpha1.LastOperation {
	op := machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationUpdate, State: machinev1alpha1.OperationProcessing}
	switch u.State {
	case machinev1alpha1.UpdateSucceeded:
		op.State = machinev1alpha1.OperationSuccessful
	case machinev1alpha1.UpdateFailed:
		op.State = machinev1alpha1.OperationFailed
	}
	op.Description = describe(o.Machine, u)
	return op
}

// lastOperation has the time of the last change, so that it is written only then.
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

func nodeName(o Observed, n node) string {
	if !n.joined && o.Machine.Status.NodeRef != nil {
		return o.Machine.Status.NodeRef.Name
	}
	return n.NodeName
}
