package plan

import "time"

// How long Crossplane may wait before it calls a step again, if no event requeues the XR earlier.
const (
	// InFlight is for an XR that is not settled. It is only a safety net: events requeue the XR
	// earlier, and MindTheBreaker shortens the delay where events may be dropped. It is long
	// because each call slows down a fleet that is starting.
	InFlight = time.Minute
	// AtRest is for a settled XR.
	AtRest = time.Hour
	// Soonest is the shortest delay that a step requests. It prevents a busy loop on a deadline
	// that has passed.
	Soonest = 250 * time.Millisecond
)

// An Event reports a decision to a user. To be emitted once, it must be in the response that
// carries the decision out and in no later one.
type Event struct {
	Warning bool
	// Reason is one stable word in CamelCase.
	Reason  string
	Message string
}

// A Report is the output of a planner for an XR in addition to its status.
type Report struct {
	Ready      bool
	Conditions []Condition
	Events     []Event
	// CallAgain is the longest delay until the next call, even without any change.
	CallAgain time.Duration
}
