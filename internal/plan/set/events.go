package set

import (
	"fmt"
	"strings"

	shared "github.com/drover-dev/drover/internal/plan"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Events have room for so many Machines; the others are counted.
const mostListed = 10

func createdEvent(created []string) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventCreatedMachine, Message: "Created " + list(created)}
}

// deletedEvent tells of each Machine that goes why it is not one of those that stay.
func (p *plan) deletedEvent(goes, stays []Machine) shared.Event {
	var each []string
	for _, m := range goes {
		why := ""
		if len(stays) > 0 {
			why = " (" + p.why(m, stays[0]) + ")"
		}
		each = append(each, m.Name+why)
	}
	return shared.Event{
		Reason:  machinev1alpha1.EventDeletedMachine,
		Message: fmt.Sprintf("Deleted %s: there were %d and %d are wanted", list(each), len(goes)+len(stays), p.Set.Spec.Replicas),
	}
}

func list(each []string) string {
	noun := "Machine "
	if len(each) > 1 {
		noun = fmt.Sprintf("%d Machines: ", len(each))
	}
	if len(each) > mostListed {
		each = append(each[:mostListed:mostListed], fmt.Sprintf("and %d more", len(each)-mostListed))
	}
	return noun + strings.Join(each, ", ")
}
