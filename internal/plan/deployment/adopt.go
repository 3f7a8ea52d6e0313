package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Adopts reports whether a MachineDeployment adopts a MachineSet without a controller. The set must
// have been created for a MachineDeployment of the same name and selector. Such a set was restored
// from a backup, or moved, without its owner.
func Adopts(d *machinev1alpha1.MachineDeployment, s *machinev1alpha1.MachineSet) bool {
	selector := s.Spec.Selector.MatchLabels
	if s.Labels[machinev1alpha1.LabelDeployment] != d.Name || s.Labels[machinev1alpha1.LabelTemplateHash] == "" {
		return false
	}
	if string(selector[machinev1alpha1.LabelTemplateHash]) != s.Labels[machinev1alpha1.LabelTemplateHash] {
		return false
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		if selector[k] != v {
			return false
		}
	}
	return len(selector) == len(d.Spec.Selector.MatchLabels)+1
}
