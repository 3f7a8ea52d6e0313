package simulator

import "testing"

func TestThingsOfTwoCloudsHaveDifferentPublicAddresses(t *testing.T) {
	a, b := (&cloud{}).newFacts(&managedResource{}), (&cloud{}).newFacts(&managedResource{})
	if a["publicIP"] == b["publicIP"] {
		t.Errorf("both have %v", a["publicIP"])
	}
}
