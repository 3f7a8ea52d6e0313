package rollout

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

const (
	conditionValid       = "Valid"
	conditionAvailable   = "Available"
	conditionProgressing = "Progressing"

	reasonMachineSetCreated      = "MachineSetCreated"
	reasonMachineSetUpdated      = "MachineSetUpdated"
	reasonNewMachineSetAvailable = "NewMachineSetAvailable"
)

func (p *plan) status() machinev1alpha1.MachineDeploymentStatus {
	s := machinev1alpha1.MachineDeploymentStatus{
		ObservedGeneration: p.Deployment.Generation,
		Selector:           p.Deployment.Spec.Selector.String(),
		Revision:           p.Deployment.Status.Revision,
	}
	for _, set := range p.live() {
		s.Replicas += set.Status.Replicas
		s.ReadyReplicas += set.Status.ReadyReplicas
		s.AvailableReplicas += set.Status.AvailableReplicas
		s.TerminatingReplicas += set.Status.TerminatingReplicas
		s.MachineSets = append(s.MachineSets, machinev1alpha1.MachineSetReplicas{Name: set.Name, Replicas: set.wants})
	}
	for _, set := range p.terminating {
		s.TerminatingReplicas += set.Status.Replicas + set.Status.TerminatingReplicas
	}
	if p.current != nil {
		s.UpdatedReplicas = p.current.Status.Replicas
		s.Revision = p.current.revision
	}
	s.UnavailableReplicas = max(0, p.bounds.replicas-s.AvailableReplicas)
	return s
}

// ready means that the set has the Machines that it shall have.
func (s *set) ready() bool {
	return !s.missing && s.settled() && s.Status.Replicas == s.told && s.Status.ReadyReplicas == s.told
}

// complete means that all Machines are of the current template and available, and
// that nothing is left of others.
func (p *plan) complete() bool {
	c := p.current
	return c != nil && c.ready() && c.wants == c.told && p.alone() &&
		c.told == p.bounds.replicas && c.Status.AvailableReplicas == c.told
}

// alone means that no other set has Machines.
func (p *plan) alone() bool {
	return sum(p.others(p.head()), (*set).total)+sum(p.terminating, (*set).total) == 0
}

// wasComplete means that this revision once was complete. What happens since then
// is no rollout, but scaling and replacing.
func (p *plan) wasComplete() bool {
	return p.current != nil && p.Deployment.Status.Revision == p.current.revision &&
		slices.ContainsFunc(p.Deployment.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == conditionProgressing && c.Reason == reasonNewMachineSetAvailable
		})
}

func classNotFound(d *machinev1alpha1.MachineDeployment) *step.Problem {
	return &step.Problem{
		Reason: step.ReasonClassNotFound,
		Message: fmt.Sprintf("spec.template.spec.classRef.name: there is no MachineClass %q in namespace %q; the Machines that exist stay as they are until there is",
			d.Spec.Template.Spec.ClassRef.Name, d.Namespace),
	}
}

func (p *plan) valid() step.Condition {
	if p.problem != nil {
		return step.Condition{Type: conditionValid, Status: "False", Reason: p.problem.Reason, Message: p.problem.Message}
	}
	return step.Condition{Type: conditionValid, Status: "True", Reason: "Valid"}
}

func (p *plan) available() step.Condition {
	available := p.status().AvailableReplicas
	c := step.Condition{
		Type:    conditionAvailable,
		Status:  "True",
		Reason:  "MinimumReplicasAvailable",
		Message: fmt.Sprintf("%d Machines are available: %d are wanted, and at least %d must be", available, p.bounds.replicas, p.bounds.least()),
	}
	if available < p.bounds.least() {
		c.Status, c.Reason = "False", "MinimumReplicasUnavailable"
	}
	return c
}

func (p *plan) progressing() step.Condition {
	c := step.Condition{Type: conditionProgressing, Status: "True"}
	switch {
	case p.complete() || p.wasComplete() && p.alone():
		c.Reason = reasonNewMachineSetAvailable
		c.Message = fmt.Sprintf("All Machines are of revision %d, MachineSet %s", p.current.revision, p.current.Name)
	case p.Safety.Frozen:
		c.Status, c.Reason, c.Message = "False", "Frozen", p.Safety.Message
	case p.problem != nil:
		c.Status, c.Reason, c.Message = "False", p.problem.Reason, p.problem.Message
	case p.current == nil:
		c.Reason, c.Message = reasonMachineSetUpdated, "Waiting for an earlier MachineSet of the same template to be gone"
	case p.current.missing:
		c.Reason = reasonMachineSetCreated
		c.Message = fmt.Sprintf("Created MachineSet %s for revision %d", p.current.Name, p.current.revision)
	default:
		c.Reason = reasonMachineSetUpdated
		c.Message = fmt.Sprintf("Rolling out revision %d, MachineSet %s", p.current.revision, p.current.Name)
	}
	return c
}

// allEvents of this decision.
func (p *plan) allEvents(conditions []step.Condition) []step.Event {
	var events []step.Event
	for _, c := range conditions {
		if c.Type == conditionValid && c.Status == "False" && c.IsNew(p.Deployment.Status.Conditions) {
			events = append(events, step.Event{Warning: true, Reason: c.Reason, Message: c.Message})
		}
	}
	for _, s := range p.live() {
		switch {
		case !s.recorded:
			events = append(events, step.Event{Reason: "NewMachineSet", Message: fmt.Sprintf("Created machine set %s for revision %d", s.Name, s.revision)})
		case !s.Observed:
			events = append(events, step.Event{Reason: "ReadoptedMachineSet", Message: "Adopted again what a stale write had forgotten: machine set " + s.Name})
		}
		if s.wants != s.told {
			direction := "up"
			if s.wants < s.told {
				direction = "down"
			}
			events = append(events, step.Event{
				Reason:  "ScalingMachineSet",
				Message: fmt.Sprintf("Scaled %s machine set %s from %d to %d", direction, s.Name, s.told, s.wants),
			})
		}
	}
	for _, recorded := range p.Deployment.Status.MachineSets {
		if !slices.ContainsFunc(p.live(), func(s *set) bool { return s.Name == recorded.Name }) {
			events = append(events, step.Event{Reason: "DeletedMachineSet", Message: "Deleted machine set " + recorded.Name})
		}
	}
	if p.complete() && !p.wasComplete() {
		events = append(events, step.Event{
			Reason:  "RolloutComplete",
			Message: fmt.Sprintf("Revision %d is rolled out: %d Machines of machine set %s are available", p.current.revision, p.bounds.replicas, p.current.Name),
		})
	}
	return events
}

// callAgain at once to carry out what is written down by then, and soon while
// anything is in flight.
func (p *plan) callAgain() time.Duration {
	for _, s := range p.live() {
		if s.missing || s.wants != s.told {
			return step.Soonest
		}
	}
	if !p.complete() || p.status().TerminatingReplicas > 0 || slices.ContainsFunc(p.old, func(s *set) bool { return !s.settled() }) {
		return step.InFlight
	}
	return step.AtRest
}
