package group

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// An Outcome is what became of a plan that was carried out, possibly in part.
type Outcome struct {
	// Created names the Machines that were created.
	Created []string
	// Gone names the missing Machines that the API server does not have either.
	Gone []string
	// Released are Machines of the set that are gone, oldest first. Those that the status has already may
	// be among them.
	Released []v1alpha1.ReleasedMachine
	// Digest of the Machines that the set observes.
	Digest string
	// Err is the reason why the plan was not carried out in full, nil if it was.
	Err error
}

// Status returns the status of a group after the plan was carried out.
func Status(g *v1alpha1.MachineGroup, p Plan, o Outcome) v1alpha1.MachineGroupStatus {
	s := v1alpha1.MachineGroupStatus{
		ObservedGeneration: g.Generation,
		Created:            slices.Concat(p.Created, slices.Sorted(slices.Values(o.Created))),
		Gone:               o.Gone,
		Released:           released(g.Status.Released, o.Released),
		Digest:             o.Digest,
	}
	slices.Sort(s.Gone)
	s.Conditions = []metav1.Condition{applied(g, o.Err)}
	return s
}

// applied returns the only condition of a group. Its transition time changes only with its status.
func applied(g *v1alpha1.MachineGroup, err error) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied}
	if err != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotApplied, err.Error()
	}
	if was := meta.FindStatusCondition(g.Status.Conditions, c.Type); was != nil {
		before := []metav1.Condition{*was}
		meta.SetStatusCondition(&before, c)
		return before[0]
	}
	c.LastTransitionTime = metav1.Now()
	return c
}
