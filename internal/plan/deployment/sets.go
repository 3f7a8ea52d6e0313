package deployment

import (
	"strconv"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A set is a MachineSet and the recorded decision about it. New decisions are in the plan.
type set struct {
	Set
	revision int64
	// desired is the number of Machines that the set shall have, by an earlier decision.
	desired int32
	// upperBound is the number of Machines that the set may still get until it has acted on
	// desired.
	upperBound int32
	// budget of replacements that the set has, by an earlier decision.
	budget int32
	// isMissing means that the set does not exist yet, and isRecorded that the status has it.
	isMissing, isRecorded bool
}

// isSettled reports whether the set has acted on its desired number: its counts are about that
// number, and no change is in progress.
func (s *set) isSettled() bool {
	return s.isMissing || s.Spec.Replicas == s.desired && s.Status.DecidedGeneration >= s.Generation
}

// hasCountedFor reports whether the set has counted its Machines, and the marked ones, since the
// deployment has the given replicas.
func (s *set) hasCountedFor(replicas int32) bool {
	return s.isMissing || s.isSettled() && s.Spec.DeploymentReplicas != nil && *s.Spec.DeploymentReplicas == replicas
}

// total Machines that the set has or may get. Terminating ones count, because their VMs still
// exist.
func (s *set) total() int32 {
	// Package terminator counts the Machines of a set that is being deleted.
	if s.Terminating && s.Status.DecidedGeneration >= s.Generation {
		return s.Status.Replicas + s.Status.TerminatingReplicas
	}
	return add(s.potential(), max(0, s.Status.TerminatingReplicas))
}

// potential Machines do not terminate, and no deletion of them is recorded: the set has them or may
// get them.
func (s *set) potential() int32 {
	most := int32(0)
	if !s.isSettled() {
		most = s.upperBound
	}
	return max(0, most, s.desired, s.Spec.Replicas, s.Status.Replicas)
}

// available Machines that the set has and will keep. Among the Machines that it must still delete,
// marked ones may be available while unmarked ones are not.
func (s *set) available() int32 {
	if s.Terminating {
		return 0
	}
	keeps := min(s.desired, s.Spec.Replicas)
	marked := int32(0)
	if !s.isSettled() {
		marked = max(0, min(s.Status.MarkedReplicas, s.Status.Replicas-keeps))
	}
	return max(0, min(keeps, s.Status.AvailableReplicas-marked))
}

func (s *set) unavailable() int32 { return s.desired - s.available() }

func (s *set) desiredReplicas() int32 { return s.desired }

// observedBudget is the budget of replacements in the set's spec.
func (s *set) observedBudget() int32 {
	if s.Spec.Remediation.MaxInFlight == nil {
		return 1
	}
	return s.Spec.Remediation.MaxInFlight.IntVal
}

// createsNone reports whether the set acts on the policy to create no Machine.
func (s *set) createsNone() bool { return s.Spec.Creation == machinev1alpha1.CreationDisabled }

// isEmpty reports whether the set has no Machines, not even terminating ones.
func (s *set) isEmpty() bool { return s.total() == 0 }

// isReady reports whether the set has the Machines that it shall have.
func (s *set) isReady() bool {
	return !s.isMissing && s.isSettled() && s.Status.Replicas == s.desired && s.Status.ReadyReplicas == s.desired
}

func sum(sets []*set, f func(*set) int32) int32 {
	n := int32(0)
	for _, s := range sets {
		n = add(n, f(s))
	}
	return n
}

func revisionOf(s *machinev1alpha1.MachineSet) int64 {
	// A value that is not a number was not written by Drover, and counts as 0.
	n, _ := strconv.ParseInt(s.Annotations[machinev1alpha1.AnnotationRevision], 10, 64)
	return n
}

// isMixed reports whether the set updates in place and has Machines of earlier templates.
func (s *set) isMixed() bool {
	return s.Spec.InPlaceUpdate != nil && s.Status.UpdatedReplicas < s.Status.Replicas
}

// pausedUpdate returns the set's update in place, paused so that no further Machine is updated.
func (s *set) pausedUpdate() *machinev1alpha1.MachineSetInPlaceUpdate {
	if s.Spec.InPlaceUpdate == nil {
		return nil
	}
	u := *s.Spec.InPlaceUpdate
	u.Paused = true
	return &u
}

// updated Machines of the set: all, unless the set updates them one after another.
func (s *set) updated(target rolling) int32 {
	switch u := s.Spec.InPlaceUpdate; {
	case u == nil:
		return s.Status.Replicas
	case u.ID != target.hash() && !u.Paused || !s.isSettled() || !rollingOf(s.Spec.Template).same(target):
		// The counts of a paused update are about the template of the set.
		return 0
	}
	return s.Status.UpdatedReplicas
}
