package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Condition of the XR.
type Condition struct {
	Type string
	// Status is "True", "False" or "Unknown".
	Status  string
	Reason  string
	Message string
}

// IsNew says whether a condition tells what the observed ones do not: an event
// that goes with it is then emitted once.
func (c Condition) IsNew(observed []metav1.Condition) bool {
	return !slices.ContainsFunc(observed, func(o metav1.Condition) bool {
		return o.Type == c.Type && string(o.Status) == c.Status && o.Reason == c.Reason && o.Message == c.Message
	})
}

// IsKnown says whether there is a condition of the type among the observed ones.
func (c Condition) IsKnown(observed []metav1.Condition) bool {
	return slices.ContainsFunc(observed, func(o metav1.Condition) bool { return o.Type == c.Type })
}
