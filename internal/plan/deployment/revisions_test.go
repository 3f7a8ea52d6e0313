package deployment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// rolledOut adds the versions to the history, the current one last.
func rolledOut(versions ...string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		for i, v := range versions {
			c := rollingOf(template(v))
			d.Status.Revisions = append(d.Status.Revisions, machinev1alpha1.Revision{
				Revision: int64(i + 1), ClassRef: c.ClassRef, Version: c.Version, Labels: c.Labels, ChangeCause: "because of " + v,
			})
		}
		d.Status.Revision = int64(len(versions))
	}
}

func backTo(revision int64) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.RollbackTo = &machinev1alpha1.RollbackTo{Revision: revision}
	}
}

func rollAfter(t time.Time) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.After = &metav1.Time{Time: t} }
}

func causedBy(cause string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{machinev1alpha1.AnnotationChangeCause: cause}
	}
}

func created(at time.Time) setOption {
	return func(s *Set) { s.CreationTimestamp = metav1.NewTime(at) }
}

// asStored changes a status as the API server returns it: with the defaults of the schema.
func asStored(d *machinev1alpha1.MachineDeployment) {
	for i := range d.Status.Revisions {
		d.Status.Revisions[i].ClassRef.Kind = machinev1alpha1.MachineClassGroupVersionKind.Kind
	}
}

// again plans once more, with the status and the sets of a plan.
func again(d *machinev1alpha1.MachineDeployment, p Decision) Decision {
	d = d.DeepCopy()
	conditions := d.Status.Conditions
	d.Status = p.Status
	d.Status.Conditions = conditions
	o := Observed{Deployment: d, ClassFound: true}
	for _, s := range p.Sets {
		o.Sets = append(o.Sets, Set{MachineSet: s.MachineSet, Observed: true})
	}
	return Plan(now, o)
}

func TestRevisions(t *testing.T) {
	type want struct {
		// Revisions by number and version, the last one current.
		Revisions []string
		// Composed are the versions of the sets.
		Composed []string
		Valid    string
	}
	cases := map[string]struct {
		d    *machinev1alpha1.MachineDeployment
		sets []Set
		want want
	}{
		"TheFirstTemplateIsRevisionOne": {
			d:    deployment(3),
			want: want{[]string{"1 v2"}, []string{"v2"}, "True Valid"},
		},
		"ANewTemplateIsTheNextRevision": {
			d: deployment(3, rolledOut("v0", "v1")), sets: []Set{machineSet("v1", 2, 3)},
			want: want{[]string{"2 v1", "3 v2"}, []string{"v1", "v2"}, "True Valid"},
		},
		"ATemplateThatWasThereBeforeIsRenumbered": {
			d: deployment(3, rolledOut("v2", "v1")), sets: []Set{machineSet("v1", 2, 3)},
			want: want{[]string{"2 v1", "3 v2"}, []string{"v1", "v2"}, "True Valid"},
		},
		"TheOldestAreForgottenBeyondTheLimit": {
			d: deployment(3, rolledOut("v0", "v3", "v1")), sets: []Set{machineSet("v1", 3, 3)},
			want: want{[]string{"3 v1", "4 v2"}, []string{"v1", "v2"}, "True Valid"},
		},
		"AStatusThatWasLostIsReadFromTheSets": {
			d: deployment(3), sets: []Set{machineSet("v1", 6, 1), machineSet("v2", 7, 2)},
			want: want{[]string{"7 v2"}, []string{"v1", "v2"}, "True Valid"},
		},
		"ASetOfAHigherRevisionThanTheCurrentOneIsOutnumbered": {
			d: deployment(3, rolledOut("v1", "v2")), sets: []Set{machineSet("v1", 5, 1), machineSet("v2", 2, 2)},
			want: want{[]string{"1 v1", "6 v2"}, []string{"v1", "v2"}, "True Valid"},
		},
		"ASetThatHasItsNumberBeforeTheStatusKeepsIt": {
			d: deployment(3, rolledOut("v1")), sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			want: want{[]string{"1 v1", "2 v2"}, []string{"v1", "v2"}, "True Valid"},
		},
		"ASetOfAnotherTemplateWithTheNumberOfTheLastRevisionGetsTheNext": {
			d: deployment(3, rolledOut("v1")), sets: []Set{machineSet("v2", 1, 3)},
			want: want{[]string{"1 v1", "2 v2"}, []string{"v2"}, "True Valid"},
		},
		"ADefaultOfTheSchemaMakesNoRevision": {
			d: deployment(3, rolledOut("v1", "v2"), asStored), sets: []Set{machineSet("v2", 2, 3)},
			want: want{[]string{"1 v1", "2 v2"}, []string{"v2"}, "True Valid"},
		},
		"PausedMakesNoRevision": {
			d: deployment(3, rolledOut("v1"), paused), sets: []Set{machineSet("v1", 1, 3)},
			want: want{[]string{"1 v1"}, []string{"v1"}, "True Valid"},
		},
		"ARollbackMakesTheRevisionTheCurrentOne": {
			d: deployment(3, rolledOut("v1", "v2"), backTo(1)), sets: []Set{machineSet("v2", 2, 3)},
			want: want{[]string{"2 v2", "3 v1"}, []string{"v2", "v1"}, "True Valid"},
		},
		"ARollbackToZeroGoesToThePreviousRevision": {
			d: deployment(3, rolledOut("v0", "v1", "v2"), backTo(0)), sets: []Set{machineSet("v2", 3, 3)},
			want: want{[]string{"3 v2", "4 v1"}, []string{"v2", "v1"}, "True Valid"},
		},
		"ARollbackToWhatIsThereChangesNothing": {
			d: deployment(3, rolledOut("v1", "v2"), backTo(2)), sets: []Set{machineSet("v2", 2, 3)},
			want: want{[]string{"1 v1", "2 v2"}, []string{"v2"}, "True Valid"},
		},
		"ARollbackUsesTheSetThatIsStillThere": {
			d: deployment(3, rolledOut("v1", "v2"), backTo(1)), sets: []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 2)},
			want: want{[]string{"2 v2", "3 v1"}, []string{"v2", "v1"}, "True Valid"},
		},
		"ARevisionThatIsNotThereReplacesNothing": {
			d: deployment(3, rolledOut("v0", "v1"), backTo(7)), sets: []Set{machineSet("v1", 2, 3)},
			want: want{[]string{"1 v0", "2 v1"}, []string{"v1"}, "False RevisionNotFound"},
		},
		"ARollbackWithoutHistoryReplacesNothing": {
			d: deployment(3, backTo(0)), sets: []Set{machineSet("v1", 1, 3)},
			want: want{nil, []string{"v1"}, "False RevisionNotFound"},
		},
		"ATimeToComeRollsNothing": {
			d: deployment(3, rolledOut("v2"), rollAfter(now.Add(time.Hour))), sets: []Set{machineSet("v2", 1, 3)},
			want: want{[]string{"1 v2"}, []string{"v2"}, "True Valid"},
		},
		"ATimeThatHasComeRollsSetsThatAreOlder": {
			d: deployment(3, rolledOut("v2"), rollAfter(now)), sets: []Set{machineSet("v2", 1, 3, created(now.Add(-time.Second)))},
			want: want{[]string{"1 v2", "2 v2"}, []string{"v2", "v2"}, "True Valid"},
		},
		"ATimeThatHasComeLeavesYoungerSetsAlone": {
			d: deployment(3, rolledOut("v2"), rollAfter(now.Add(-time.Hour))), sets: []Set{machineSet("v2", 1, 3, created(now.Add(-time.Minute)))},
			want: want{[]string{"1 v2"}, []string{"v2"}, "True Valid"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true})
			got := want{Valid: condition(p, "Valid")}
			for _, r := range p.Status.Revisions {
				got.Revisions = append(got.Revisions, string(rune('0'+r.Revision))+" "+r.Version)
			}
			for _, s := range p.Sets {
				got.Composed = append(got.Composed, s.Spec.Template.Spec.Version)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestARollbackStaysInForceUntilItIsTakenBack(t *testing.T) {
	d := deployment(3, rolledOut("v1", "v2"), backTo(1))
	first := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v2", 2, 3)}, ClassFound: true})
	second := again(d, first)
	third := again(d, second)
	if got := third.Status.Rollback; got == nil || *got != (machinev1alpha1.Rollback{Requested: 1, Revision: 3}) {
		t.Errorf("rollback is %+v", got)
	}
	if len(third.Status.Revisions) != 2 || third.Status.Revision != 3 {
		t.Errorf("revision is %d of %+v", third.Status.Revision, third.Status.Revisions)
	}
	if diff := cmp.Diff("because of v1", third.Status.Revisions[1].ChangeCause); diff != "" {
		t.Errorf("the cause was not kept: %s", diff)
	}

	forward := d.DeepCopy()
	forward.Spec.RollbackTo = nil
	fourth := again(forward, third)
	if got := fourth.Status; got.Rollback != nil || got.Revision != 4 || got.Revisions[len(got.Revisions)-1].Version != "v2" {
		t.Errorf("did not go forward: %+v", got)
	}
	elsewhere := d.DeepCopy()
	elsewhere.Spec.RollbackTo.Revision = 2
	for i, want := range []string{"RolledBack", "", "", "RollbackEnded", "RolledBack"} {
		got := ""
		for _, e := range []Decision{first, second, third, fourth, again(elsewhere, third)}[i].Events {
			if strings.HasPrefix(e.Reason, "Roll") {
				got += e.Reason
			}
		}
		if got != want {
			t.Errorf("plan %d has the events %q, want %q", i, got, want)
		}
	}
}

func TestARollbackStaysInForceWhileItsClassIsMissing(t *testing.T) {
	d := deployment(3, rolledOut("v1", "v2"), backTo(1))
	d.Spec.RevisionHistoryLimit = 0
	o := Observed{Deployment: d, Sets: []Set{machineSet("v2", 2, 3)}, ClassFound: true}
	d.Status = Plan(now, o).Status
	// The set of the revision does not exist yet.
	o.ClassFound = false
	d.Status = Plan(now, o).Status
	o.ClassFound = true
	p := Plan(now, o)
	if got := p.Status.Rollback; got == nil || *got != (machinev1alpha1.Rollback{Requested: 1, Revision: 3}) {
		t.Errorf("rollback is %+v", got)
	}
	if got := condition(p, machinev1alpha1.ConditionValid); got != "True Valid" {
		t.Errorf("Valid is %s", got)
	}
}

func TestARollbackGoesToAllThatTheRevisionHad(t *testing.T) {
	d := deployment(3, rolledOut("v1", "v2"), backTo(1))
	d.Status.Revisions[0].ClusterRef.Name, d.Status.Revisions[0].FailureDomain = "other", ptr.To("b")
	sets := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v2", 2, 3)}, ClassFound: true}).Sets
	got := sets[1].Spec.Template.Spec
	if got.Version != "v1" || got.ClusterRef.Name != "other" || ptr.Deref(got.FailureDomain, "") != "b" {
		t.Errorf("goes back to %+v", got)
	}
}

func TestARollbackThatCannotBeDoneSaysWhatCan(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"ARevisionThatIsNotThere": {
			Observed{Deployment: deployment(3, rolledOut("v0", "v1"), backTo(7)), ClassFound: true},
			"spec.rollbackTo.revision: there is no revision 7 to go back to: it must be 0, for the previous one, or one of 1, 2; nothing is replaced until it is",
		},
		"NoRevisionIsThere": {
			Observed{Deployment: deployment(3, backTo(0)), ClassFound: true},
			"spec.rollbackTo.revision: there is no revision 0 to go back to: it must be absent, because there is none yet; nothing is replaced until it is",
		},
		"ARevisionWhoseClassIsGone": {
			Observed{Deployment: deployment(3, rolledOut("v1", "v2"), backTo(1))},
			`spec.rollbackTo.revision: 1 has a class that is gone: there is no MachineClass "small" in namespace "default"; the Machines that exist stay as they are until there is`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range Plan(now, tc.o).Conditions {
				if c.Type == machinev1alpha1.ConditionValid && (c.Status != "False" || c.Message != tc.want) {
					t.Errorf("%s %q, want %q", c.Status, c.Message, tc.want)
				}
			}
		})
	}
}

func TestARollAfterATimeIsDoneOnce(t *testing.T) {
	d := deployment(3, rolledOut("v2"), rollAfter(now))
	// The clock of the API server that created the set was behind.
	old := machineSet("v2", 1, 3, created(now.Add(-time.Hour)))
	first := Plan(now, Observed{Deployment: d, Sets: []Set{old}, ClassFound: true})
	for _, s := range first.Sets {
		s.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	}
	second := again(d, first)
	if len(first.Sets) != 2 || len(second.Sets) != 2 || second.Sets[1].Name != first.Sets[1].Name {
		t.Errorf("got %d sets, then %d", len(first.Sets), len(second.Sets))
	}
}

func TestARollAfterATimeIsDoneOnceThoughItsNameIsTaken(t *testing.T) {
	d := deployment(3, rolledOut("v2"), rollAfter(now))
	old := machineSet("v2", 1, 3, created(now.Add(-time.Hour)))
	first := Plan(now, Observed{Deployment: d, Sets: []Set{old}, ClassFound: true})
	taken := Set{MachineSet: first.Sets[1].MachineSet, Terminating: true}
	second := Plan(now, Observed{Deployment: d, Sets: []Set{old, taken}, ClassFound: true})
	made := second.Sets[1].MachineSet
	// The clock of the API server is behind.
	made.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	third := Plan(now, Observed{Deployment: d, Sets: []Set{old, taken, {MachineSet: made, Observed: true}}, ClassFound: true})
	if made.Name == taken.Name || len(third.Sets) != 2 || third.Sets[1].Name != made.Name {
		t.Errorf("after %s, which is taken, %s is made, and then there are %d sets, the last one %s", taken.Name, made.Name, len(third.Sets), third.Sets[len(third.Sets)-1].Name)
	}
}

func TestTheCauseOfAChangeIsKept(t *testing.T) {
	d := deployment(3, rolledOut("v1"), causedBy("a mended kubelet"))
	p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 3)}, ClassFound: true})
	var got []string
	for _, r := range p.Status.Revisions {
		got = append(got, r.ChangeCause)
	}
	if diff := cmp.Diff([]string{"because of v1", "a mended kubelet"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestASetWhoseNameIsTakenGetsAnother(t *testing.T) {
	// The set was updated in place from v2 to v1, so it is not the set of v2 any more.
	moved := machineSet("v2", 1, 3)
	moved.Spec.Template.Spec.Version = "v1"
	for name, taken := range map[string]Set{
		"ByASetThatWasUpdatedInPlace": moved,
		"ByASetThatIsBeingDeleted":    machineSet("v2", 1, 3, deleted),
	} {
		t.Run(name, func(t *testing.T) {
			sets := Plan(now, Observed{Deployment: deployment(3), Sets: []Set{taken}, ClassFound: true}).Sets
			if last := sets[len(sets)-1]; last.Name == taken.Name || last.Spec.Template.Spec.Version != "v2" {
				t.Errorf("got set %s of version %s", last.Name, last.Spec.Template.Spec.Version)
			}
		})
	}
}
