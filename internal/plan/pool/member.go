package pool

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// A member of a pool is one of its MachineDeployments, and the failure domain of it.
type member struct {
	// is nil for a MachineDeployment that does not exist.
	is *Deployment
	// domain is empty where the class decides.
	domain string
	name   string
	// wanted is false for a failure domain that the pool leaves.
	wanted bool
	// desired is the MachineDeployment as it shall be, without its replicas. One that is not wanted,
	// or that is of a pool that is not valid, stays as it is.
	desired *machinev1alpha1.MachineDeployment

	// isRecorded means that a decision about the member was read back.
	isRecorded bool
	decided    machinev1alpha1.PoolDomain
}

func (m *member) status() machinev1alpha1.MachineDeploymentStatus {
	if m.is == nil {
		return machinev1alpha1.MachineDeploymentStatus{}
	}
	return m.is.Status
}

// replicas that the MachineDeployment has been told.
func (m *member) replicas() int32 {
	if m.is == nil {
		return 0
	}
	return m.is.Spec.Replicas
}

// existing Machines, with those that are terminating.
func (m *member) existing() int32 {
	s := m.status()
	return s.Replicas + s.TerminatingReplicas
}

// available Machines that the decisions leave.
func (m *member) available() int32 {
	if m.is == nil || m.is.Terminating {
		return 0
	}
	n := min(m.status().AvailableReplicas, m.decided.DesiredReplicas)
	if !m.hasActed() {
		n = min(n, ptr.Deref(m.decided.Least, n))
	}
	return n
}

// isTold reports whether the MachineDeployment, as it is seen, is as was decided. The same numbers
// may be those of an earlier decision.
func (m *member) isTold() bool {
	return m.is != nil && !m.is.Terminating && m.decisionSeen() == m.decided.Decision
}

// decisionSeen is the number of the decision that the MachineDeployment follows, 0 for none.
func (m *member) decisionSeen() int64 {
	if m.is == nil {
		return 0
	}
	n, err := strconv.ParseInt(m.is.Annotations[machinev1alpha1.AnnotationPoolDecision], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// hasActed reports whether the MachineDeployment has acted on the number that was decided.
func (m *member) hasActed() bool {
	return m.isTold() && m.replicas() == m.decided.DesiredReplicas &&
		m.status().ObservedGeneration == m.is.Generation && ptr.Deref(m.status().DesiredReplicas, -1) == m.replicas()
}

// isApplied reports whether the MachineDeployment is as it is desired, replicas apart.
func (m *member) isApplied() bool {
	return m.is != nil && m.is.Annotations[machinev1alpha1.AnnotationAppliedHash] == m.desired.Annotations[machinev1alpha1.AnnotationAppliedHash]
}

// isComplete reports whether all of the MachineDeployment is as its spec says.
func (m *member) isComplete() bool {
	return m.isApplied() && m.isTold() && m.replicas() == m.decided.DesiredReplicas &&
		shared.IsReadyFor(m.is.Generation, m.is.Status.Conditions)
}

// isGone reports whether nothing is left of a member that is not wanted. A MachineDeployment that is
// not observed has to be composed again before it can be deleted. While the status remembers that it
// may have Machines, it would count as one that is not seen yet when it is deleted.
func (m *member) isGone() bool {
	return !m.wanted && m.is != nil && m.is.Observed && m.hasActed() && m.existing() == 0 && remembered(m.decided) == 0
}

// isLetGo reports whether a MachineDeployment that is not wanted is being deleted. Composed again, it
// would be made anew when it is gone.
func (m *member) isLetGo() bool { return !m.wanted && m.is != nil && m.is.Terminating }

// isForgotten reports whether the status has nothing to remember of a member.
func (m *member) isForgotten() bool {
	return m.isGone() || m.isLetGo() && m.most() == 0
}

// exhausted is nil if the cloud has room in the failure domain.
func (m *member) exhausted() *machinev1alpha1.Exhaustion {
	all := m.status().Exhausted
	i := slices.IndexFunc(all, func(e machinev1alpha1.Exhaustion) bool { return e.FailureDomain == m.domain })
	if i < 0 {
		return nil
	}
	return all[i].DeepCopy()
}

// offered is the maximum that the cluster-autoscaler reads from the MachineDeployment.
func (m *member) offered() int32 {
	if m.is == nil {
		return 0
	}
	n, err := strconv.ParseInt(m.is.Annotations[machinev1alpha1.AnnotationNodeGroupMaxSize], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// autoscalerDelay is how long the cluster-autoscaler may act on what it read before: it looks at
// its groups every ten seconds.
const autoscalerDelay = 30 * time.Second

// isLowered reports whether the autoscaler must have seen the maximum that was decided, or that there
// is none any more.
func (m *member) isLowered(now time.Time) bool {
	isOffered := m.decided.MaxSize == nil || m.offered() == *m.decided.MaxSize
	return m.isTold() && isOffered && (m.decided.LoweredTime == nil || now.Sub(m.decided.LoweredTime.Time) >= autoscalerDelay)
}
