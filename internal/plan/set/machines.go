package set

import (
	"cmp"
	"strconv"

	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func isFailed(m Machine) bool { return m.Status.Phase == machinev1alpha1.MachineFailed }

// isInFlight reports whether the Machine is starting, and the provider has not accepted the request for its
// VM yet.
func isInFlight(m Machine) bool { return m.Status.Phase.IsOnItsWay() && !hasVM(m) }

func hasVM(m Machine) bool { return m.Status.ProviderID != "" || m.Spec.ProviderID != nil }

func hadNode(m Machine) bool { return m.Status.NodeRef != nil }

// inError reports whether the provider's last operation failed. It may succeed later.
func inError(m Machine) bool {
	return m.Status.LastOperation != nil && m.Status.LastOperation.ErrorCode != ""
}

// differs reports whether the Machine was made from fields that differ from the template.
func differs(m Machine, t machinev1alpha1.MachineSpec) bool {
	return !m.Spec.ClassRef.Equal(t.ClassRef) || m.Spec.Version != t.Version || m.Spec.ClusterRef != t.ClusterRef ||
		!ptr.Equal(m.Spec.FailureDomain, t.FailureDomain)
}

func isReady(m Machine) bool {
	return m.Status.Phase == machinev1alpha1.MachineRunning && m.Status.ReadySince != nil
}

func isMarked(m Machine) bool {
	_, ok := m.Annotations[machinev1alpha1.AnnotationDeleteMachine]
	return ok
}

// isRebooting reports whether the Machine is out of use for a reboot, requested by a user or by its health.
func isRebooting(m Machine) bool { return m.Status.Phase == machinev1alpha1.MachineRebooting }

// isRebootedByHealth reports whether a reboot that its health caused is in progress.
func isRebootedByHealth(m Machine) bool {
	r := m.Status.Reboot
	return r.IsInProgress() && r.ByHealth != ""
}

func isConfirmedLost(m Machine) bool {
	return isFailed(m) && m.Status.LossConfirmed
}

// asksForAnother reports whether a replacement of this Machine was requested.
func asksForAnother(m Machine) bool {
	return m.Status.ReplaceRequested || m.Annotations[machinev1alpha1.AnnotationReplace] == "true"
}

// errorCode returns the provider's error code of the failure, or the failure reason if there is none.
func errorCode(m Machine) string {
	code := ""
	if op := m.Status.LastOperation; op != nil {
		code = op.ErrorCode
	}
	return cmp.Or(code, string(m.Status.FailureReason))
}

func failedWithoutVM(r machinev1alpha1.FailureReason) bool {
	return r == machinev1alpha1.FailureCreateFailed || r == machinev1alpha1.FailureCreateUnknown || r == machinev1alpha1.FailureCapacityTimeout
}

// failedForRoom reports whether the Machine is Failed because the cloud had no room for it, in a set that
// reports this to an autoscaler.
func failedForRoom(m Machine) bool {
	return isFailed(m) && !hadNode(m) && m.Spec.CapacityTimeout != nil && fn.ErrorCode(errorCode(m)).IsExhausted()
}

// isSelected reports whether the Machine's spec requests its update now.
func isSelected(m Machine) bool {
	return m.Spec.InPlaceUpdate != nil && m.Spec.InPlaceUpdate.Selected
}

func updateFailed(m Machine) bool {
	return m.Status.Update != nil && m.Status.Update.State == machinev1alpha1.UpdateFailed
}

// hadUpdate is the ID under which a Machine was created or last updated. Without a label of the set, it is
// the hash of the template that the MachineDeployment made the set for.
func hadUpdate(m Machine) string {
	if id := m.Labels[machinev1alpha1.LabelUpdatedTo]; id != "" {
		return id
	}
	return m.Labels[machinev1alpha1.LabelTemplateHash]
}

func createdAt(m Machine) int64 { return m.CreationTimestamp.Unix() }

// deletionCost returns 0 for a value that is no number: the Machine's own conditions report that.
func deletionCost(m Machine) int64 {
	n, err := strconv.ParseInt(m.Annotations[machinev1alpha1.AnnotationDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return n
}

func preserveOf(m Machine) string { return m.Annotations[machinev1alpha1.AnnotationPreserve] }

// isAuto reports whether the set has preserved the Machine, and no user has overridden that.
func isAuto(m Machine) bool {
	return isFailed(m) && preserveOf(m) == machinev1alpha1.PreserveAuto &&
		(m.Status.Preserve == "" || m.Status.Preserve == machinev1alpha1.PreserveAuto)
}

// mayPreserve reports whether the set may preserve a Failed Machine: its VM exists, and no preserve
// annotation is set.
func mayPreserve(m Machine) bool {
	return isFailed(m) && hasVM(m) && m.Status.FailureReason != machinev1alpha1.FailureVMLost &&
		preserveOf(m) == "" && m.Status.Preserve == "" && m.Status.Preservation == nil
}

// causeOf the replacement of a Machine.
func causeOf(m Machine) machinev1alpha1.ReplacementReason {
	switch {
	case isFailed(m):
		return machinev1alpha1.ReplacedFailed
	case asksForAnother(m):
		return machinev1alpha1.ReplacedRequested
	}
	return machinev1alpha1.ReplacedAged
}

// isTraced reports whether a Machine was read with a CRD of this release. That CRD defaults the kind of the
// class, and came with the field for references.
func isTraced(m Machine) bool { return m.Spec.ClassRef.Kind != "" }

func namesOf(ms []Machine) []string {
	var names []string
	for _, m := range ms {
		names = append(names, m.Name)
	}
	return names
}
