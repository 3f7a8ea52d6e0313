package forecast

import "slices"

// An Outcome is what a change does at most.
type Outcome string

// Outcomes of changes, the least first.
const (
	// OutcomeNothing means that nothing changes.
	OutcomeNothing Outcome = "Nothing"
	// OutcomeInPlace means that only what exists changes: no Machine is created, replaced or deleted.
	OutcomeInPlace Outcome = "InPlace"
	// OutcomeReplaces means that Machines are created, replaced or deleted, or that they wait for a user who deletes them.
	OutcomeReplaces Outcome = "Replaces"
	// OutcomeBlocked means that the change does not take place until a user acts.
	OutcomeBlocked Outcome = "Blocked"
)

var outcomes = []Outcome{OutcomeNothing, OutcomeInPlace, OutcomeReplaces, OutcomeBlocked}

// ExitCode of a command that reports the outcome: 0, 2, 3 or 4. A command that fails ends with 1.
func (o Outcome) ExitCode() int {
	if i := slices.Index(outcomes, o); i > 0 {
		return i + 1
	}
	return 0
}

// Outcome of the change.
func (f Forecast) Outcome() Outcome {
	switch {
	case slices.ContainsFunc(f.Blocks, func(b Block) bool { return b.All }) && f.changes():
		return OutcomeBlocked
	case f.Created > 0 || len(f.Replaced) > 0 || len(f.Deleted) > 0 || len(f.Waiting) > 0 && len(f.Updated) == 0:
		return OutcomeReplaces
	case f.changes():
		return OutcomeInPlace
	}
	return OutcomeNothing
}

// changes reports whether anything is changed, or would be.
func (f Forecast) changes() bool {
	return len(f.Fields) > 0 || len(f.Updated) > 0 || len(f.Waiting) > 0 || f.Created > 0 || len(f.Replaced) > 0 || len(f.Deleted) > 0
}

// OutcomeOf several changes is the greatest one.
func OutcomeOf(all []Forecast) Outcome {
	most := 0
	for _, f := range all {
		most = max(most, slices.Index(outcomes, f.Outcome()))
	}
	return outcomes[most]
}
