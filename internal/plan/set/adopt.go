package set

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shared "github.com/drover-dev/drover/internal/plan"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// adopt Machines that match the selector and that nobody controls. They are named in the
// status first, so that the event is there once.
func (p *plan) adopt() {
	for _, m := range p.Orphans {
		p.adopting = append(p.adopting, m.Name)
		if !slices.Contains(p.Set.Status.Adopting, m.Name) {
			p.takesOn = append(p.takesOn, m.Name)
		}
	}
	if len(p.takesOn) > 0 {
		p.events = append(p.events, shared.Event{
			Reason:  machinev1alpha1.EventAdoptingMachine,
			Message: "Adopting " + list(p.takesOn) + ", which spec.selector matches and nobody controls",
		})
	}
}

// exclusive is False while Machines match the selector that somebody else controls. A
// set that never saw any does not have it.
func (f *fleet) exclusive() *shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionSelectorExclusive, Status: "True", Reason: machinev1alpha1.ReasonExclusive}
	if len(f.Foreign) > 0 {
		// The Machines may come and go: who controls them says enough.
		var by []string
		for _, m := range f.Foreign {
			owner := metav1.GetControllerOfNoCopy(m)
			by = append(by, owner.Kind+" "+owner.Name)
		}
		slices.Sort(by)
		c.Status, c.Reason = "False", machinev1alpha1.ReasonControlledByOthers
		c.Message = fmt.Sprintf("Machines that spec.selector matches are controlled by %s, and left alone", strings.Join(slices.Compact(by), ", "))
		return &c
	}
	if !c.IsKnown(f.Set.Status.Conditions) {
		return nil
	}
	return &c
}
