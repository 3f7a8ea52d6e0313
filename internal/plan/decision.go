package plan

import "time"

// How long Crossplane may wait until it calls again, if nothing happens meanwhile.
const (
	// InFlight is for anything that is not settled. Events tell sooner what
	// happens, and MindTheBreaker knows when they do not: this is a safety net,
	// and each call of a fleet that comes up slowly slows it more.
	InFlight = time.Minute
	// AtRest is for what is settled.
	AtRest = time.Hour
	// Soonest is the least that a step asks for, so that a deadline that passed
	// is not asked for again at once.
	Soonest = 250 * time.Millisecond
)

// An Event tells a user of a decision, once: it belongs into the response that
// carries the decision out, and into no later one.
type Event struct {
	Warning bool
	// Reason is one stable word in CamelCase.
	Reason  string
	Message string
}

// A Report is what a planner reports of an XR beside its status.
type Report struct {
	Ready      bool
	Conditions []Condition
	Events     []Event
	// CallAgain after this time at the latest, even if nothing happens.
	CallAgain time.Duration
}
