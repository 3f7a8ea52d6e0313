package set

import (
	"time"

	"k8s.io/utils/ptr"

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

// untilAvailable is how long a ready Machine must still stay ready until it counts as available, and 0 or
// less if it does already.
func (f *fleet) untilAvailable(m Machine) time.Duration {
	return m.Status.ReadySince.Add(time.Duration(f.Set.Spec.MinReadySeconds) * time.Second).Sub(f.now)
}

func (p *plan) isAvailable(m Machine) bool {
	return isReady(m) && p.untilAvailable(m) <= 0 && !p.isUpdating(m)
}
