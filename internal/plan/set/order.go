package set

import (
	"cmp"
	"fmt"
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

// A criterion compares two Machines by which of them is deleted first.
type criterion struct {
	// compare is negative if a is deleted before b, and 0 if the criterion does not decide.
	compare func(a, b Machine) int
	// The reason why a Machine is deleted before another.
	reason func(Machine) string
}

// criteria are sorted by importance, the highest first. A mark is a request to delete one Machine, even if
// it is available. A deletion cost is only a preference: as in a ReplicaSet of Kubernetes, it decides among
// Machines that are equally available. The bounds of a rollout rely on that, because a MachineDeployment
// counts on a set to delete unavailable Machines first. For the same reason a scale-down deletes a
// preserved Machine last, and a rollout treats it like any other: otherwise it would hold the surge until
// its preservation ends.
func (p *plan) criteria() []criterion {
	var criteria []criterion
	if !p.isRolledOut() {
		criteria = []criterion{
			{by(p.preserved, cmp.Compare[int]), because("not preserved")},
			{by(p.preservedUntil, cmp.Compare[int64]), because("preserved for less long")},
		}
	}
	return append(criteria,
		criterion{by(isMarked, falseLast), because("marked by the annotation " + machinev1alpha1.AnnotationDeleteMachine)},
		criterion{by(p.trouble, cmp.Compare[trouble]), func(m Machine) string { return p.trouble(m).say(m) }},
		criterion{by(deletionCost, cmp.Compare[int64]), func(m Machine) string { return fmt.Sprintf("deletion cost %d", deletionCost(m)) }},
		criterion{by(p.isOutdated, falseLast), because("not of the current template")},
		p.order(),
	)
}

// order is the last criterion: the user's preference among equal Machines.
func (f *fleet) order() criterion {
	switch f.Set.Spec.Deletion.Order {
	case machinev1alpha1.DeleteOldest:
		return criterion{by(createdAt, cmp.Compare[int64]), because("oldest")}
	case machinev1alpha1.DeleteRandom:
		hash := func(m Machine) string { return names.Hash(string(f.Set.UID), m.Name) }
		return criterion{by(hash, cmp.Compare[string]), because("at random")}
	default:
		return criterion{by(createdAt, func(a, b int64) int { return cmp.Compare(b, a) }), because("newest")}
	}
}

// worstFirst returns the Machines sorted by deletion priority, the first to delete first.
func (p *plan) worstFirst(ms []Machine) []Machine {
	criteria := p.criteria()
	return slices.SortedFunc(slices.Values(ms), func(a, b Machine) int {
		for _, c := range criteria {
			if n := c.compare(a, b); n != 0 {
				return n
			}
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

// why returns the reason for deleting the first Machine rather than the second.
func (p *plan) why(goes, stays Machine) string {
	for _, c := range p.criteria() {
		if n := c.compare(goes, stays); n < 0 {
			return c.reason(goes)
		}
	}
	return "first by name"
}

// trouble is the rank of a Machine's trouble: the lower the number, the worse. Available Machines have one
// of the last two.
type trouble int

const (
	troubleFailed trouble = iota
	troublePending
	troubleProvisioning
	troubleJoining
	troubleUnknown
	troubleUpdateFailed
	troubleUpdating
	troubleNotReady
	troubleNotAvailable
	troubleReplaced
	troubleNone
)

func (p *plan) trouble(m Machine) trouble {
	switch m.Status.Phase {
	case machinev1alpha1.MachineFailed:
		return troubleFailed
	case "", machinev1alpha1.MachinePending:
		return troublePending
	case machinev1alpha1.MachineProvisioning:
		return troubleProvisioning
	case machinev1alpha1.MachineJoining:
		return troubleJoining
	case machinev1alpha1.MachineUnknown:
		return troubleUnknown
	}
	switch {
	case updateFailed(m):
		return troubleUpdateFailed
	case p.isUpdating(m):
		return troubleUpdating
	case !isReady(m):
		return troubleNotReady
	case !p.isAvailable(m):
		return troubleNotAvailable
	case asksForAnother(m):
		return troubleReplaced
	}
	return troubleNone
}

func (t trouble) say(m Machine) string {
	switch t {
	case troubleReplaced:
		return "to be replaced"
	case troubleUpdateFailed:
		return "its update failed"
	case troubleUpdating:
		return "being updated"
	case troubleNotAvailable:
		return "not ready for minReadySeconds"
	}
	return "not ready, phase " + string(cmp.Or(m.Status.Phase, machinev1alpha1.MachinePending))
}

// by compares what key returns.
func by[T any](key func(Machine) T, compare func(a, b T) int) func(a, b Machine) int {
	return func(a, b Machine) int { return compare(key(a), key(b)) }
}

func because(s string) func(Machine) string { return func(Machine) string { return s } }

func falseLast(a, b bool) int { return shared.CompareBool(b, a) }
