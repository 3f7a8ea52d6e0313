package deployment

import (
	"slices"
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

// TestOfTwoSetsOfOneTemplateTheRestoredOneIsTheNewSet has a deployment that created a set before
// that of its backup was restored: both have its template and its first revision.
func TestOfTwoSetsOfOneTemplateTheRestoredOneIsTheNewSet(t *testing.T) {
	own := machineSet("v2", 1, 4)
	for name, tc := range map[string]struct {
		restored string
		revision int64
		want     string
	}{
		"WhoseNameIsLast":                  {"zzz", 1, "zzz"},
		"WhoseNameIsFirst":                 {"aaa", 1, "aaa"},
		"UnlessItsRevisionIsOfATimeGoneBy": {"aaa", 0, own.Name},
	} {
		t.Run(name, func(t *testing.T) {
			restored := machineSet("v2", tc.revision, 4, func(s *Set) { s.Name = tc.restored })
			sets := []Set{own, restored}
			for range sets {
				slices.Reverse(sets)
				f := fleetOf(now, Observed{Deployment: deployment(4), ClassFound: true, Sets: slices.Clone(sets)})
				if f.newSet.Name != tc.want || len(f.oldSets) != 1 {
					t.Errorf("the new set is %s beside %d others, want %s", f.newSet.Name, len(f.oldSets), tc.want)
				}
			}
		})
	}
	// Two sets that were both created here, or both restored, are in the order of their names.
	first, second := machineSet("v2", 1, 4, func(s *Set) { s.Name = "aaa" }), machineSet("v2", 1, 4, func(s *Set) { s.Name = "bbb" })
	if f := fleetOf(now, Observed{Deployment: deployment(4), ClassFound: true, Sets: []Set{second, first}}); f.newSet.Name != "bbb" {
		t.Errorf("the new set is %s", f.newSet.Name)
	}
}
