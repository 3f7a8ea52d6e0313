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
	out := apply(setRules, refOf(view.MachineSet, s), s.Status.Conditions)
	for i := range out {
		if f := &out[i]; f.Reason == machinev1alpha1.ReasonWaitingForMachines {
			waitsForStarting(f, v.MachinesOf(s))
		}
	}
	if e := s.Status.Exhausted; e != nil && e.Until != nil {
		return withoutExhaustion(out)
	}
	return out
}

// waitsForStarting adds until when the next Machine is replaced at most, and the command that ends the wait, to a finding.
func waitsForStarting(f *Finding, machines []*machinev1alpha1.Machine) {
	for _, m := range machines {
		if !m.Status.Phase.IsOnItsWay() || !m.DeletionTimestamp.IsZero() {
			continue
		}
		since := m.CreationTimestamp.Time
		if at := m.Status.RefusedUntil; at != nil && at.After(since) {
			since = at.Time
		}
		until := metav1.NewTime(since.Add(plan.CreationTimeout(m)))
		if f.Until == nil || until.Before(f.Until) {
			f.Until, f.Commands = &until, []string{fmt.Sprintf("kubectl delete %s -n %s", refOf(view.Machine, m), m.Namespace)}
		}
	}
}

// withoutExhaustion removes that the cloud had no room: no Machine waits for room any more.
func withoutExhaustion(all []Finding) []Finding {
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Condition == machinev1alpha1.ConditionCapacityExhausted })
}

// isOver reports whether no Machine waits for room in any of the exhausted failure domains.
func isOver(exhausted []machinev1alpha1.Exhaustion) bool {
	return len(exhausted) > 0 && !slices.ContainsFunc(exhausted, func(e machinev1alpha1.Exhaustion) bool { return e.Until == nil })
}
