package pool

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// A member of a pool is a failure domain with its MachineDeployment.
type member struct {
	// is the observed MachineDeployment, nil if it does not exist.
	is *Deployment
	// domain is empty if the class decides.
	domain string
	name   string
	// wanted is false for a failure domain that the pool leaves.
	wanted bool
	// desired is the desired MachineDeployment, without its replicas. If the member is not wanted,
	// or the pool is invalid, it equals the observed one.
	desired *machinev1alpha1.MachineDeployment

	// target identifies the template of the pool, and isWaiting means that another member gets it first.
	target    string
	isWaiting bool

	// isRecorded means that a decision about the member was read back.
	isRecorded bool
	decided    machinev1alpha1.PoolDomain
	// isUnlisted means that the recorded status of the pool lacks replacements of the MachineDeployment, or a part
	// of one. Crossplane deletes a MachineDeployment before it writes the status.
	isUnlisted bool
}

func (m *member) status() machinev1alpha1.MachineDeploymentStatus {
	if m.is == nil {
		return machinev1alpha1.MachineDeploymentStatus{}
	}
	return m.is.Status
}

// replicas in the spec of the MachineDeployment.
func (m *member) replicas() int32 {
	if m.is == nil {
		return 0
	}
	return m.is.Spec.Replicas
}

// existing Machines, including terminating ones.
func (m *member) existing() int32 {
	s := m.status()
	return s.Replicas + s.TerminatingReplicas
}

// available Machines that the recorded decision does not delete.
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

// isNotified reports whether the observed MachineDeployment carries the recorded decision. Equal
// numbers alone prove nothing: they may come from an earlier decision.
func (m *member) isNotified() bool {
	return m.is != nil && !m.is.Terminating && m.decisionSeen() == m.decided.Decision
}

// decisionSeen is the number of the decision that the MachineDeployment carries, 0 for none.
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

// hasActed reports whether the MachineDeployment has acted on the number of the recorded decision.
func (m *member) hasActed() bool {
	return m.isNotified() && m.replicas() == m.decided.DesiredReplicas &&
		m.status().ObservedGeneration == m.is.Generation && ptr.Deref(m.status().DesiredReplicas, -1) == m.replicas()
}

// isApplied reports whether the MachineDeployment equals the desired one, except for replicas.
func (m *member) isApplied() bool {
	return m.is != nil && m.is.Annotations[machinev1alpha1.AnnotationAppliedHash] == m.desired.Annotations[machinev1alpha1.AnnotationAppliedHash]
}

// isComplete reports whether the MachineDeployment fully matches its spec.
func (m *member) isComplete() bool {
	return m.isApplied() && m.isNotified() && m.replicas() == m.decided.DesiredReplicas &&
		shared.IsReadyFor(m.is.Generation, m.is.Status.Conditions)
}

// isGone reports whether an unwanted member has nothing left, so that it can be deleted. A
// MachineDeployment that is not observed must be composed again before it can be deleted. If the
// status still recorded Machines, the deleted member would count as unseen.
func (m *member) isGone() bool {
	return !m.wanted && m.is != nil && m.is.Observed && m.hasActed() && m.existing() == 0 && remembered(m.decided) == 0 && !m.isUnlisted
}

// isLetGo reports whether an unwanted MachineDeployment is being deleted. It must not be composed
// again, because Crossplane would create it again after the deletion.
func (m *member) isLetGo() bool { return !m.wanted && m.is != nil && m.is.Terminating }

// isForgotten reports whether the status need not record the member any more.
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

// autoscalerDelay is the time for which the cluster-autoscaler may act on an old maximum: it reads
// its groups every ten seconds.
const autoscalerDelay = 30 * time.Second

// isLowered reports whether the autoscaler must have read the recorded maximum, or that there is no
// maximum any more.
func (m *member) isLowered(now time.Time) bool {
	isOffered := m.decided.MaxSize == nil || m.offered() == *m.decided.MaxSize
	return m.isNotified() && isOffered && (m.decided.LoweredTime == nil || now.Sub(m.decided.LoweredTime.Time) >= autoscalerDelay)
}

// template identifies the template that the pool composed last. The spec has defaults of the API server, so it does not tell.
func (m *member) template() string {
	if m.is == nil {
		return ""
	}
	return m.is.Annotations[machinev1alpha1.AnnotationPoolTemplate]
}

// isRolledOut reports whether the rollout of the pool's template was complete in a member. It may scale, or replace Machines
// that failed, since then.
func (m *member) isRolledOut() bool {
	return !m.isWaiting && m.template() == m.target && deployment.IsRolledOut(m.is.MachineDeployment)
}

// isRolling reports whether a member has a rollout that is not complete, of whatever template. The conditions are written after
// the rest of the status, and may be those of an earlier template.
func (m *member) isRolling() bool {
	n := len(m.status().Revisions)
	return n == 0 || m.status().Revisions[n-1].Outcome != machinev1alpha1.RevisionComplete
}

// isOutOfCapacity reports whether the rollout of a member waits for the cloud, and misses no Machine meanwhile.
func (m *member) isOutOfCapacity() bool {
	return m.exhausted() != nil && m.status().AvailableReplicas >= m.decided.DesiredReplicas
}

// isScaledByOthers reports whether another client, such as the autoscaler, decides the number of
// Machines. If autoscaling is removed from a pool, that is so until the pool has recorded the
// number.
func (m *member) isScaledByOthers() bool {
	return m.decided.MaxSize != nil && m.is != nil && m.is.ScaledByOthers
}

// remembered returns the number of Machines that a failure domain may have by recorded decisions,
// or by a decision that the autoscaler may still make.
func remembered(d machinev1alpha1.PoolDomain) int32 {
	return max(d.DesiredReplicas, d.Most, ptr.Deref(d.MaxSize, 0), d.PreviousMaxSize)
}

// templateOf identifies the part of a spec that starts a rollout.
func templateOf(s machinev1alpha1.MachineDeploymentSpec) string {
	return deployment.HashOfSpec(&machinev1alpha1.MachineDeployment{Spec: s})
}

// least is the number of Machines that the failure domain has at least.
func (m *member) least() int32 {
	if m.hasActed() {
		return m.decided.DesiredReplicas
	}
	return min(m.decided.DesiredReplicas, ptr.Deref(m.decided.Least, m.decided.DesiredReplicas))
}

func (m *member) decidedReplicas() int32 { return m.decided.DesiredReplicas }

// most is the number of Machines that may exist in the failure domain, including terminating ones.
func (m *member) most() int32 {
	s := m.status()
	n := max(m.decided.DesiredReplicas, s.Replicas) + s.TerminatingReplicas
	if !m.hasActed() {
		n = max(n, m.decided.Most, m.replicas())
	}
	return n
}

// kept is the number of Machines that an exhausted failure domain keeps: those that have their VM.
func (m *member) kept() int32 {
	s := m.status()
	return max(0, s.Replicas-s.UnhealthyReplicas, s.AvailableReplicas)
}
