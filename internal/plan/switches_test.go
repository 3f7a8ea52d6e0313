package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestASwitchThatASetPassesOverIsNamed(t *testing.T) {
	const paused, freeze = "crossplane.io/paused", "machine.drover.dev/freeze"
	for name, tc := range map[string]struct {
		kind                string
		annotations, labels map[string]string
		want                string
	}{
		"APauseWithACapital":            {"MachineDeployment", map[string]string{paused: "True"}, nil, `crossplane.io/paused: "True" of the MachineDeployment must be true or false, and is passed over`},
		"APauseThatCrossplaneKnows":     {"MachineSet", map[string]string{paused: "true"}, nil, ""},
		"APauseThatIsOver":              {"NodePool", map[string]string{paused: "false"}, nil, ""},
		"OthersAreNone":                 {"NodePool", map[string]string{"example.org/paused": "True"}, nil, ""},
		"AConfirmationOfADeletion":      {"MachineSet", map[string]string{"drover.dev/confirm-deletion": "yes"}, nil, `drover.dev/confirm-deletion: "yes" of the MachineSet must be true or false, and is passed over`},
		"AConfirmationOnAnotherKind":    {"MachineDeployment", map[string]string{"drover.dev/confirm-deletion": "true"}, nil, "drover.dev/confirm-deletion of the MachineDeployment has no effect: set it on a Machine or MachineSet"},
		"ASwitchOfMachines":             {"MachineSet", map[string]string{"drover.dev/force-drain": "true"}, nil, "drover.dev/force-drain of the MachineSet has no effect: set it on a Machine"},
		"AFreezeOfAPool":                {"NodePool", nil, map[string]string{freeze: "true"}, "label machine.drover.dev/freeze of the NodePool has no effect: set it on the MachineDeployments of the NodePool"},
		"AFreezeOfADeploymentIsFrozens": {"MachineDeployment", nil, map[string]string{freeze: "True"}, ""},
		"APauseForTheAutoscaler":        {"NodePool", map[string]string{"cluster.x-k8s.io/paused": ""}, nil, "cluster.x-k8s.io/paused of the NodePool has no effect: set spec.paused"},
		"ADeploymentIsPausedByIt":       {"MachineDeployment", map[string]string{"cluster.x-k8s.io/paused": ""}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(InvalidSwitchesOfSet(tc.kind, &metav1.ObjectMeta{Annotations: tc.annotations, Labels: tc.labels}), "; ")
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestInvalidAnnotationsAreReportedUntilTheyAreCorrected(t *testing.T) {
	if c := AnnotationsValid(nil, nil); c != nil {
		t.Errorf("an object that never had any has %+v", c)
	}
	c := AnnotationsValid([]string{"a", "b"}, nil)
	if c == nil || c.Status != "False" || c.Reason != "AnnotationInvalid" || c.Message != "a; b" {
		t.Fatalf("%+v", c)
	}
	before := []metav1.Condition{{Type: c.Type, Status: metav1.ConditionFalse}}
	if c = AnnotationsValid(nil, before); c == nil || c.Status != "True" || c.Reason != "Valid" || c.Message != "" {
		t.Errorf("%+v", c)
	}
}
