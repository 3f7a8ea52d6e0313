// Package advice knows what each reason of a condition means and what a user can do. The reasons of
// conditions and events are those of apis/*/v1alpha1/reasons.go, generated from their comments as
// docs/conditions.md is. The codes of clouds' errors and the failures of Machines, which are reasons
// too, are in codes.go.
package advice

// Advice is what a reason means and what a user can do.
type Advice struct {
	// Meaning of the reason, a sentence.
	Meaning string
	// Do is what a user can do. It is empty if the state ends by itself.
	Do string
}

type key struct{ kind, reason string }

// For returns the advice for a reason of an object of the kind. It is empty for a reason that is not
// known, such as one of a step of the user's own.
func For(kind, reason string) Advice {
	if a, ok := reasons[key{kind, reason}]; ok {
		return a
	}
	if a, ok := codes[reason]; ok {
		return a
	}
	return reasons[key{"Machine", reason}]
}

// ForFailure returns the advice for status.failureReason of a Machine. Reasons of conditions and events
// may have the same name and another meaning.
func ForFailure(reason string) Advice { return codes[reason] }
