package handover

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Verb is the kind of write of a step.
type Verb string

// Verbs of steps.
const (
	Create Verb = "create"
	Patch  Verb = "patch"
	// Remove deletes an object and removes its finalizers: its controller is paused and does nothing.
	Remove Verb = "remove"
)

// A Step is one write.
type Step struct {
	Verb Verb
	// Object as it is after the step, or as it is removed.
	Object *unstructured.Unstructured
	// Before is the object that a patch changes.
	Before *unstructured.Unstructured
	// Text describes the step to the user.
	Text string
}

// A Plan is what to do next.
type Plan struct {
	// Steps of the present phase, in their order.
	Steps []Step
	// Waits are the reports that the next phase needs. They are empty if there are steps.
	Waits []string
	// Notes are facts that a user should know, and that are no obstacle.
	Notes []string
}

// IsDone reports whether nothing is left to do.
func (p Plan) IsDone() bool { return len(p.Steps)+len(p.Waits) == 0 }

// A phase has steps that may be carried out together. The next phase begins when nothing is waited for.
type phase struct {
	name  string
	steps func(*World) []Step
	waits func(*World) []string
}

// An Obstacle is an error that lists the causes for which nothing is changed.
type Obstacle struct{ Causes []string }

func (o Obstacle) Error() string {
	return fmt.Sprintf("%d obstacles, and nothing was changed now:\n  %s", len(o.Causes), strings.Join(o.Causes, "\n  "))
}

// A Direction is a handover, or the way back.
type Direction struct {
	phases func(System) []phase
	check  func(*World) (causes, notes []string)
	// isOver reports that nothing is left to do, whatever the phases would find. It is nil if only they know.
	isOver func(*World) bool
}

// Take hands Machines over to Drover, and GiveBack to the other side.
var (
	Take     = Direction{phases: System.taking, check: checkTake}
	GiveBack = Direction{phases: System.givingBack, check: checkGiveBack, isOver: isGivenBack}
)

// Next returns what to do next. Its error is an Obstacle.
func (d Direction) Next(w *World) (Plan, error) {
	causes, notes := d.check(w)
	if len(causes) > 0 {
		return Plan{}, Obstacle{causes}
	}
	p := Plan{Notes: notes}
	if d.isOver != nil && d.isOver(w) {
		return p, nil
	}
	for _, ph := range d.phases(w.System) {
		if p.Steps = ph.steps(w); len(p.Steps) > 0 {
			return p, nil
		}
		if ph.waits == nil {
			continue
		}
		if p.Waits = ph.waits(w); len(p.Waits) > 0 {
			return p, nil
		}
	}
	return p, nil
}

// Preview returns all steps, as they would be if each report comes.
func (d Direction) Preview(w *World) (Plan, error) {
	causes, notes := d.check(w)
	if len(causes) > 0 {
		return Plan{}, Obstacle{causes}
	}
	out := Plan{Notes: notes}
	if d.isOver != nil && d.isOver(w) {
		return out, nil
	}
	w = w.clone()
	for _, ph := range d.phases(w.System) {
		for _, s := range ph.steps(w) {
			w.apply(s)
			out.Steps = append(out.Steps, s)
		}
	}
	return out, nil
}

func create(o *unstructured.Unstructured, text string, args ...any) Step {
	return Step{Verb: Create, Object: o, Text: fmt.Sprintf(text, args...)}
}

func patch(before, after *unstructured.Unstructured, text string, args ...any) Step {
	return Step{Verb: Patch, Before: before, Object: after, Text: fmt.Sprintf(text, args...)}
}

func remove(o *unstructured.Unstructured, text string, args ...any) Step {
	return Step{Verb: Remove, Object: o, Text: fmt.Sprintf(text, args...)}
}
