package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Condition is a status condition of an XR.
type Condition struct {
	Type string
	// Status is "True", "False" or "Unknown".
	Status  string
	Reason  string
	Message string
}

// IsNew reports whether the observed conditions lack this one with the same status, reason and
// message. An event of the condition is emitted only then, and so once.
func (c Condition) IsNew(observed []metav1.Condition) bool {
	return !slices.ContainsFunc(observed, func(o metav1.Condition) bool {
		return o.Type == c.Type && string(o.Status) == c.Status && o.Reason == c.Reason && o.Message == c.Message
	})
}

// IsKnown reports whether the observed conditions have one of the same type.
func (c Condition) IsKnown(observed []metav1.Condition) bool {
	return slices.ContainsFunc(observed, func(o metav1.Condition) bool { return o.Type == c.Type })
}
