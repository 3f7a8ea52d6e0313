package diagnosis

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan"
)

// ofSet returns the findings of a MachineSet.
func ofSet(v *view.View, s *machinev1alpha1.MachineSet) []Finding {
	var exhausted []machinev1alpha1.Exhaustion
	if s.Status.Exhausted != nil {
		exhausted = append(exhausted, *s.Status.Exhausted)
	}
	out := applyToSet(refOf(view.MachineSet, s), s.Status.Conditions, exhausted)
	for i := range out {
		if f := &out[i]; f.Reason == machinev1alpha1.ReasonWaitingForMachines {
			waitsForStarting(f, v.MachinesOf(s))
		}
	}
	return out
}

// applyToSet applies the rules of sets to a NodePool, MachineDeployment or MachineSet. That the cloud had no room is no
// finding once no Machine waits for room in any of the exhausted failure domains.
func applyToSet(ref view.Ref, conditions []metav1.Condition, exhausted []machinev1alpha1.Exhaustion) []Finding {
	out := apply(setRules, ref, conditions)
	waits := func(e machinev1alpha1.Exhaustion) bool { return e.Until == nil }
	if len(exhausted) == 0 || slices.ContainsFunc(exhausted, waits) {
		return out
	}
	return slices.DeleteFunc(out, func(f Finding) bool { return f.Condition == machinev1alpha1.ConditionCapacityExhausted })
}

// waitsForStarting adds until when the next Machine is replaced at most, and the command that ends the wait, to a finding.
func waitsForStarting(f *Finding, machines []*machinev1alpha1.Machine) {
	for _, m := range machines {
		if !m.Status.Phase.IsOnItsWay() || !m.DeletionTimestamp.IsZero() {
			continue
		}
		until := metav1.NewTime(plan.StartsSince(m, m.Status.RefusedUntil).Add(plan.CreationTimeout(m)))
		if f.Until == nil || until.Before(f.Until) {
			f.Until, f.Commands = &until, []string{fmt.Sprintf("kubectl delete %s -n %s", refOf(view.Machine, m), m.Namespace)}
		}
	}
}
