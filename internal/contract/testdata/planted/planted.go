// Package planted has condition types and reasons that are declared where they must not be.
package planted

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	"github.com/drover-dev/drover/internal/plan"
)

const reasonHere = "Here"

var reasonOfEvent event.Reason = "Typed" // Fault

func condition(reason string) metav1.Condition {
	return metav1.Condition{Type: "Planted", Reason: reason} // Fault
}

func byParameter() metav1.Condition { return condition("Parameter") } // Fault

func byResult() (string, string) {
	return "Result", "a message" // Fault
}

func byVariable(bad bool) plan.Event {
	reason, message := byResult()
	if bad {
		reason = reasonHere // Fault
	}
	return plan.Event{Reason: reason, Message: message}
}

func byCall() metav1.Condition { return both(forwarded()) }

func both(reason, message string) metav1.Condition {
	return metav1.Condition{Reason: reason, Message: message}
}

func forwarded() (string, string) { return "Forwarded", "a message" } // Fault

func byComparison(c plan.Condition) bool {
	return c.Reason == "Compared" // Fault
}
