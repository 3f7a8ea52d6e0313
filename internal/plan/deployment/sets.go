package deployment

import (
	"strconv"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A set is a MachineSet and what is decided about it.
type set struct {
	Set
	revision int64
	// told is how many Machines the set shall have as far as it was decided
	// before, and wants is what is decided now.
	told, wants int32
	// allotted is its part of the budget of replacements as far as it was decided before,
	// and allots is what is decided now.
	allotted, allots int32
	// most is how many it may still come to have until it has acted on told.
	most int32
	// missing means that the set does not exist yet, and recorded that the status
	// knows it.
	missing, recorded bool
}

// settled means that the set has acted on what it was told: its counts are about
// that and nothing else is under way.
func (s *set) settled() bool {
	return s.missing || s.Spec.Replicas == s.told && s.Status.DecidedGeneration >= s.Generation
}

// total Machines that the set has or may come to have. Those that are terminating
// count: their VMs are still there.
func (s *set) total() int32 {
	// Package terminator counts the Machines of a set that is being deleted.
	if s.Terminating && s.Status.DecidedGeneration >= s.Generation {
		return s.Status.Replicas + s.Status.TerminatingReplicas
	}
	return add(s.upperBound(), max(0, s.Status.TerminatingReplicas))
}

// upperBound of the Machines that do not terminate and whose deletion is not recorded.
func (s *set) upperBound() int32 {
	most := int32(0)
	if !s.settled() {
		most = s.most
	}
	return max(0, most, s.told, s.Spec.Replicas, s.Status.Replicas)
}

// present Machines do not terminate: the set has them or may come to have them. A Machine
// whose deletion is only recorded is present until the deletion is requested.
func (s *set) present() int32 {
	n := max(s.wants, min(s.told, s.Status.Replicas))
	if !s.settled() {
		n = s.upperBound()
	}
	return add(n, int32(len(s.Status.Dropping)))
}

// available Machines that the set has and will keep.
func (s *set) available() int32 {
	if s.Terminating {
		return 0
	}
	return max(0, min(s.told, s.Spec.Replicas, s.Status.AvailableReplicas))
}

func (s *set) unavailable() int32 { return s.told - s.available() }

// marked Machines go first, whatever set they are of.
func (s *set) marked() int32 { return max(0, min(s.Status.MarkedReplicas, s.wants)) }

func (s *set) wanted() int32    { return s.wants }
func (s *set) hasToHave() int32 { return s.told }

// createsNone means that the set acts on being told so.
func (s *set) createsNone() bool { return s.Spec.Creation == machinev1alpha1.CreationDisabled }

// empty means that the set has no Machines, and that none is left of it.
func (s *set) empty() bool { return s.total() == 0 }

func sum(sets []*set, f func(*set) int32) int32 {
	n := int32(0)
	for _, s := range sets {
		n = add(n, f(s))
	}
	return n
}

func revisionOf(s *machinev1alpha1.MachineSet) int64 {
	// What is no number is no revision of ours.
	n, _ := strconv.ParseInt(s.Annotations[machinev1alpha1.AnnotationRevision], 10, 64)
	return n
}
