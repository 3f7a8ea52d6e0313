package deployment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func replacedBy(reason machinev1alpha1.ReplacementReason, machine string) machinev1alpha1.ReplacedMachine {
	return machinev1alpha1.ReplacedMachine{Time: metav1.NewTime(now.Add(-time.Minute)), Machine: machine, Node: "n", Reason: reason}
}

func listing(all ...machinev1alpha1.ReplacedMachine) setOption {
	return func(s *Set) { s.Status.Replacements = all }
}

func TestReplacementsOfAllSetsAreListed(t *testing.T) {
	rolled := replacedBy(machinev1alpha1.ReplacedRollout, "old")
	named := rolled
	named.Revision, named.Message = 2, "to v2"
	drained := named
	drained.DrainDuration = &metav1.Duration{Duration: time.Minute}
	failed := replacedBy(machinev1alpha1.ReplacedFailed, "new")
	d := deployment(3, ints(1, 0), completed(2))
	d.Annotations = map[string]string{machinev1alpha1.AnnotationChangeCause: "to v2"}
	d.Status.Replacements = []machinev1alpha1.ReplacedMachine{drained}
	gone := replacedBy(machinev1alpha1.ReplacedDeleted, "ofasetthatisdeleted")
	is := Plan(now, Observed{Deployment: d, ClassFound: true, Sets: []Set{
		machineSet("v2", 2, 3, listing(failed)), machineSet("v1", 1, 0, listing(rolled)), machineSet("v0", 0, 0, deleted, listing(gone)),
	}}).Status.Replacements
	if diff := cmp.Diff([]machinev1alpha1.ReplacedMachine{failed, gone, drained}, is); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	d.Status.Replacements = nil
	is = Plan(now, Observed{Deployment: d, ClassFound: true, Sets: []Set{machineSet("v2", 2, 3), machineSet("v1", 1, 0, listing(rolled))}}).Status.Replacements
	if diff := cmp.Diff([]machinev1alpha1.ReplacedMachine{named}, is); diff != "" {
		t.Errorf("first observed, -want +got:\n%s", diff)
	}
}

func TestAnEmptySetStaysUntilTheStatusHasItsReplacements(t *testing.T) {
	rolled := replacedBy(machinev1alpha1.ReplacedRollout, "old")
	named := rolled
	named.Revision = 2
	for name, tc := range map[string]struct {
		recorded []machinev1alpha1.ReplacedMachine
		set      []setOption
		stays    bool
	}{
		"WithoutReplacementsItIsDeleted":              {},
		"ReplacementsThatAreNotRecorded":              {set: []setOption{listing(rolled)}, stays: true},
		"ReplacementsThatAreRecorded":                 {recorded: []machinev1alpha1.ReplacedMachine{named}, set: []setOption{listing(rolled)}},
		"AMachineThatIsGoneAndThatNoReportIsAboutYet": {set: []setOption{func(s *Set) { s.Status.Deleting = []string{"old"} }}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(3, ints(1, 0), completed(2))
			d.Status.Replacements = tc.recorded
			is := composed(Plan(now, Observed{Deployment: d, ClassFound: true, Sets: []Set{machineSet("v2", 2, 3), machineSet("v1", 1, 0, tc.set...)}}))
			if _, stays := is["v1"]; stays != tc.stays {
				t.Errorf("stays %t, want %t", stays, tc.stays)
			}
		})
	}
}
