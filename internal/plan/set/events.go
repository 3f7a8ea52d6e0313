package set

import (
	"cmp"
	"fmt"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// mostListed is how many Machines an event names; the remaining ones are only counted.
const mostListed = 10

// conditionEvents reports invalid input when it is first found.
func (p *plan) conditionEvents(conditions []shared.Condition) []shared.Event {
	var out []shared.Event
	for _, c := range conditions {
		if (c.Type == machinev1alpha1.ConditionValid || c.Type == machinev1alpha1.ConditionSelectorExclusive) && c.Status != "True" && c.IsNew(p.Set.Status.Conditions) {
			out = append(out, shared.Event{Warning: true, Reason: c.Reason, Message: c.Message})
		}
	}
	return out
}

func createdEvent(created []string) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventCreatedMachine, Message: "Created " + list(created)}
}

// deletedEvent reports for each deleted Machine why it was chosen before the Machines that stay.
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

func namesOf(ms []Machine) []string {
	var names []string
	for _, m := range ms {
		names = append(names, m.Name)
	}
	return names
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

func backingOffEvent(b machinev1alpha1.Backoff) shared.Event {
	times := "once"
	if b.Failures > 1 {
		times = fmt.Sprintf("%d times in a row", b.Failures)
	}
	return shared.Event{
		Warning: true,
		Reason:  machinev1alpha1.EventBackingOff,
		Message: fmt.Sprintf("Creation failed %s, first with %s: the next Machine is created in %s", times, text(b.ErrorCode, b.Message), delay(b)),
	}
}

func text(code, message string) string {
	if message == "" {
		return code
	}
	return code + ": " + message
}

// retryingEvent reports that Machines that failed before they joined are created again.
func retryingEvent(ms []Machine) shared.Event {
	e := replacingEvent(ms[0], "")
	if len(ms) > 1 {
		e.Message = fmt.Sprintf("Replacing %s, which failed before they joined, first with %s: %s", list(namesOf(ms)),
			cmp.Or(string(ms[0].Status.FailureReason), "no reason"), cmp.Or(ms[0].Status.Failure(), "no message"))
	}
	return e
}

// replacingEvent reports why a Machine is replaced, and by which Machine if it waits for its replacement.
func replacingEvent(m Machine, by string) shared.Event {
	e := shared.Event{Warning: isFailed(m), Reason: machinev1alpha1.EventReplacingMachine, Message: "Replacing Machine " + m.Name}
	if by != "" {
		e.Message += " by " + by
	}
	if !isFailed(m) {
		e.Message += ", as " + machinev1alpha1.AnnotationReplace + " asks"
		return e
	}
	e.Message += fmt.Sprintf(", which failed with %s: %s",
		cmp.Or(string(m.Status.FailureReason), "no reason"), cmp.Or(m.Status.Failure(), "no message"))
	return e
}

func updatingEvent(selected []Machine, t machinev1alpha1.MachineSpec) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventUpdatingMachine, Message: fmt.Sprintf("Selected %s for an update in place to %s", list(namesOf(selected)), version(t))}
}

func updatedEvent(updated []string, t machinev1alpha1.MachineSpec) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventUpdatedMachine, Message: fmt.Sprintf("Updated %s in place to %s", list(updated), version(t))}
}

func remakingEvent(early []Machine) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventDeletedMachine, Message: fmt.Sprintf("Deleted %s, made from an earlier template and without a VM yet", list(namesOf(early)))}
}

func version(t machinev1alpha1.MachineSpec) string {
	return fmt.Sprintf("version %s of class %q", t.Version, t.ClassRef.Key())
}

func inDomain(domain string) string {
	if domain == "" {
		return "The failure domain of the class"
	}
	return fmt.Sprintf("Failure domain %q", domain)
}
