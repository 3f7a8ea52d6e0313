// Package advice has the meaning of each reason of a condition, and advice for users. The reasons of conditions
// and events are those of apis/*/v1alpha1/reasons.go, generated from their comments as docs/conditions.md is.
// The codes of clouds' errors and the failures of Machines, which are reasons too, are in codes.go.
package advice

// Advice is the meaning of a reason, with the action that it needs.
type Advice struct {
	// Meaning of the reason, a sentence.
	Meaning string
	// Do is the action for a user. It is empty if the state ends by itself.
	Do string
	// Replaced means that the set of the Machine replaces it. That is not true of each Machine: it depends on its set, and on
	// whether it is preserved.
	Replaced bool
	// Keep is how to keep the VM for analysis, for a Machine that is not kept yet.
	Keep string
}

type key struct{ kind, reason string }

// For returns the advice for a reason of an object of the kind. It is empty for an unknown reason, such as that
// of a user's own step.
func For(kind, reason string) Advice {
	if a, ok := reasons[key{kind, reason}]; ok {
		return a
	}
	if a, ok := codes[reason]; ok {
		return a.OfTheUsualCase()
	}
	return reasons[key{"Machine", reason}]
}

// OfTheUsualCase returns the advice for a Machine that is not preserved, and whose set replaces it.
func (a Advice) OfTheUsualCase() Advice {
	if a.Replaced {
		a.Do += " The set replaces the Machine."
	}
	if a.Keep != "" {
		a.Do += " " + a.Keep
	}
	return a
}

// ForFailure returns the advice for status.failureReason of a Machine. Reasons of conditions and events
// may have the same name and another meaning. The caller adds whether the Machine is replaced, and how to keep it.
func ForFailure(reason string) Advice { return codes[reason] }
