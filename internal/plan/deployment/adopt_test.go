package deployment

import (
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestADeploymentAdoptsTheSetsThatWereMadeForIt(t *testing.T) {
	d := &machinev1alpha1.MachineDeployment{}
	d.Name = "web"
	d.Spec.Selector.MatchLabels = map[string]machinev1alpha1.LabelValue{"app": "web"}
	for name, tc := range map[string]struct {
		change func(*machinev1alpha1.MachineSet)
		want   bool
	}{
		"OneOfItsNameAndSelector": {func(*machinev1alpha1.MachineSet) {}, true},
		"NotOneOfAnotherDeployment": {func(s *machinev1alpha1.MachineSet) {
			s.Labels[machinev1alpha1.LabelDeployment] = "api"
		}, false},
		"NotOneThatAUserMade": {func(s *machinev1alpha1.MachineSet) {
			delete(s.Labels, machinev1alpha1.LabelTemplateHash)
			delete(s.Spec.Selector.MatchLabels, machinev1alpha1.LabelTemplateHash)
			s.Spec.Selector.MatchLabels["tier"] = "a"
		}, false},
		"NotOneThatSelectsAnotherTemplate": {func(s *machinev1alpha1.MachineSet) {
			s.Spec.Selector.MatchLabels[machinev1alpha1.LabelTemplateHash] = "b"
		}, false},
		"NotOneThatSelectsOtherMachines": {func(s *machinev1alpha1.MachineSet) {
			s.Spec.Selector.MatchLabels["app"] = "api"
		}, false},
		"NotOneThatSelectsLess": {func(s *machinev1alpha1.MachineSet) {
			s.Spec.Selector.MatchLabels["tier"] = "a"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &machinev1alpha1.MachineSet{}
			s.Labels = map[string]string{machinev1alpha1.LabelDeployment: "web", machinev1alpha1.LabelTemplateHash: "a"}
			s.Spec.Selector.MatchLabels = map[string]machinev1alpha1.LabelValue{"app": "web", machinev1alpha1.LabelTemplateHash: "a"}
			tc.change(s)
			if got := Adopts(d, s); got != tc.want {
				t.Errorf("adopted: %t", got)
			}
		})
	}
}
