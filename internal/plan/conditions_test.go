package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAConditionIsNewUnlessItIsObservedAsItIs(t *testing.T) {
	c := Condition{Type: "Healthy", Status: "False", Reason: "Lost", Message: "gone"}
	observed := func(kind, status, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
	}
	for name, tc := range map[string]struct {
		observed   metav1.Condition
		new, known bool
	}{
		"the same":                         {observed("Healthy", "False", "Lost", "gone"), false, true},
		"the same of another type":         {observed("Ready", "False", "Lost", "gone"), true, false},
		"of the type with another status":  {observed("Healthy", "True", "Lost", "gone"), true, true},
		"of the type with another reason":  {observed("Healthy", "False", "Slow", "gone"), true, true},
		"of the type with another message": {observed("Healthy", "False", "Lost", "back"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			observed := []metav1.Condition{tc.observed}
			if c.IsNew(observed) != tc.new || c.IsKnown(observed) != tc.known {
				t.Errorf("new %t, known %t, want %t and %t", c.IsNew(observed), c.IsKnown(observed), tc.new, tc.known)
			}
		})
	}
	if !c.IsNew(nil) || c.IsKnown(nil) {
		t.Error("without observed conditions it is new and not known")
	}
}
