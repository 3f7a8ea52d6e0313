package set

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

const (
	// RemedyOfUpdate is what a user can do about it.
	RemedyOfUpdate = "to retry, set the annotation " + machinev1alpha1.AnnotationUpdateRetry + " of the Machine to a new value"
)

func (p *plan) conditions(allowed *shared.Condition) []shared.Condition {
	out := []shared.Condition{p.valid(), p.replicaFailure()}
	for _, c := range []*shared.Condition{p.exhaustedCondition(), p.updatedCondition(), p.exclusive(), allowed} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func (p *plan) valid() shared.Condition {
	if p.Problem != nil {
		return shared.Condition{
			Type:    machinev1alpha1.ConditionValid,
			Status:  "False",
			Reason:  p.Problem.Reason,
			Message: p.Problem.Message + "; no Machines are created until there is",
		}
	}
	return shared.Condition{Type: machinev1alpha1.ConditionValid, Status: "True", Reason: machinev1alpha1.ReasonValid}
}

func (p *plan) replicaFailure() shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: "True"}
	if p.NotApplied != "" {
		c.Reason, c.Message = machinev1alpha1.ReasonMachinesNotApplied, p.NotApplied
		return c
	}
	if b := p.backoff; b != nil {
		c.Reason, c.Message = cmp.Or(b.ErrorCode, string(b.Reason)), b.Message
		return c
	}
	failing := slices.DeleteFunc(slices.Clone(p.kept), func(m Machine) bool { return !isInFlight(m) || !inError(m) })
	if len(failing) == 0 {
		if invalid := p.invalidMachine(); invalid != nil {
			return *invalid
		}
		return shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: "False", Reason: machinev1alpha1.ReasonNoFailure}
	}
	first := slices.MinFunc(failing, func(a, b Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	c.Reason, c.Message = errorCode(first), "Machine "+first.Name+": "+first.Status.LastOperation.Description
	return p.inWordsOfBefore(c)
}

// invalidMachine reports the problem of a Machine for which no VM can be created, such as a
// version that the API server of its cluster does not support. It returns nil if there is none,
// and if the problem is the set's own.
func (p *plan) invalidMachine() *shared.Condition {
	isValid := func(m Machine) bool {
		return !isInFlight(m) || !meta.IsStatusConditionFalse(m.Status.Conditions, machinev1alpha1.ConditionValid)
	}
	invalid := slices.DeleteFunc(slices.Clone(p.kept), isValid)
	if p.Problem != nil || len(invalid) == 0 {
		return nil
	}
	first := slices.MinFunc(invalid, func(a, b Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	valid := meta.FindStatusCondition(first.Status.Conditions, machinev1alpha1.ConditionValid)
	c := p.inWordsOfBefore(shared.Condition{
		Type: machinev1alpha1.ConditionReplicaFailure, Status: "True", Reason: valid.Reason, Message: "Machine " + first.Name + ": " + valid.Message,
	})
	return &c
}

// inWordsOfBefore keeps the message of a condition with the same reason: the same error in other
// words is no news.
func (p *plan) inWordsOfBefore(c shared.Condition) shared.Condition {
	before := meta.FindStatusCondition(p.Set.Status.Conditions, c.Type)
	if before != nil && before.Status == metav1.ConditionTrue && before.Reason == c.Reason {
		c.Message = before.Message
	}
	return c
}
