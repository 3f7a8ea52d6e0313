package deployment

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// revision of a version, with its outcome.
func revision(n int64, version string, outcome machinev1alpha1.RevisionOutcome) machinev1alpha1.Revision {
	r := rollingOf(template(version))
	return machinev1alpha1.Revision{Revision: n, Outcome: outcome, ClassRef: r.ClassRef, Version: r.Version, ClusterRef: r.ClusterRef, Labels: r.Labels, Annotations: r.Annotations}
}

// TestTheTemplateInTheSpecIsRolledOut has v2 in the spec.
func TestTheTemplateInTheSpecIsRolledOut(t *testing.T) {
	const complete, superseded, inProgress = machinev1alpha1.RevisionComplete, machinev1alpha1.RevisionSuperseded, machinev1alpha1.RevisionInProgress
	type revisions = []machinev1alpha1.Revision
	after := metav1.NewTime(now.Add(-time.Hour))
	since := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.After = &after }
	stale := func(d *machinev1alpha1.MachineDeployment) { d.Status.ObservedGeneration-- }
	ofTime := func(r machinev1alpha1.Revision) machinev1alpha1.Revision {
		r.After = &after
		return r
	}
	for name, tc := range map[string]struct {
		revisions               revisions
		options                 []deploymentOption
		isRecorded, isRolledOut bool
	}{
		"without revisions":                            {nil, nil, false, false},
		"its revision is complete":                     {revisions{revision(1, "v1", superseded), revision(2, "v2", complete)}, nil, true, true},
		"its revision is in progress":                  {revisions{revision(1, "v1", complete), revision(2, "v2", inProgress)}, nil, true, false},
		"another revision is complete":                 {revisions{revision(1, "v2", superseded), revision(2, "v1", complete)}, nil, false, false},
		"it was observed before, as one of many":       {revisions{revision(2, "v2", complete)}, []deploymentOption{stale}, true, true},
		"another one is complete and was not observed": {revisions{revision(2, "v1", complete)}, []deploymentOption{stale}, false, false},
		"a time that no Machine is older than":         {revisions{revision(2, "v2", complete)}, []deploymentOption{since}, false, true},
		"a time that was not observed yet":             {revisions{revision(2, "v2", complete)}, []deploymentOption{since, stale}, false, false},
		"its revision is of that time":                 {revisions{ofTime(revision(2, "v2", complete))}, []deploymentOption{since, stale}, true, true},
		"another one since a time":                     {revisions{revision(2, "v1", complete)}, []deploymentOption{since}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, tc.options...)
			d.Status.Revisions = tc.revisions
			if got := IsRecorded(d); got != tc.isRecorded {
				t.Errorf("IsRecorded = %t", got)
			}
			if got := IsRolledOut(d); got != tc.isRolledOut {
				t.Errorf("IsRolledOut = %t", got)
			}
		})
	}
}

// as has the number of a revision's last complete rollout.
func as(n int64, r machinev1alpha1.Revision) machinev1alpha1.Revision {
	r.LastCompleteRevision = n
	return r
}

func TestTheRevisionToGoBackTo(t *testing.T) {
	const complete, superseded, inProgress, rejected = machinev1alpha1.RevisionComplete, machinev1alpha1.RevisionSuperseded, machinev1alpha1.RevisionInProgress, machinev1alpha1.RevisionRejected
	type revisions = []machinev1alpha1.Revision
	for name, tc := range map[string]struct {
		revisions revisions
		rejected  int64
		want      int64
	}{
		"none without revisions":                                         {nil, 2, 0},
		"none if none was complete":                                      {revisions{revision(1, "v1", superseded), revision(2, "v2", rejected)}, 2, 0},
		"the one before":                                                 {revisions{revision(1, "v1", complete), revision(2, "v2", rejected)}, 2, 1},
		"the latest one that was complete":                               {revisions{revision(1, "v0", complete), revision(2, "v1", complete), revision(3, "v3", superseded), revision(4, "v2", rejected)}, 4, 2},
		"not the rejected one itself":                                    {revisions{revision(1, "v1", complete), revision(2, "v2", complete)}, 2, 1},
		"the one that is rolled out in place":                            {revisions{revision(1, "v1", superseded), revision(2, "v2", rejected), revision(3, "v1", inProgress)}, 2, 3},
		"not one after it that was superseded":                           {revisions{revision(1, "v1", complete), revision(2, "v2", inProgress)}, 3, 1},
		"the one that was complete before, whose rollout was superseded": {revisions{revision(1, "v1", complete), revision(3, "v3", rejected), as(2, revision(4, "v2", superseded)), revision(5, "v4", rejected)}, 5, 4},
		"not one that was complete before another one":                   {revisions{revision(2, "v2", complete), as(1, revision(3, "v1", superseded)), revision(4, "v4", rejected)}, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := int64(0)
			if r := lastGood(tc.revisions, tc.rejected); r != nil {
				got = r.Revision
			}
			if got != tc.want {
				t.Errorf("revision %d, want %d", got, tc.want)
			}
		})
	}
	d := deployment(4)
	if r := LastGood(d); r != nil {
		t.Errorf("without revisions it is %+v", r)
	}
	d.Status.Revisions = revisions{revision(1, "v1", complete), revision(2, "v2", inProgress)}
	if r := LastGood(d); r == nil || r.Revision != 1 {
		t.Errorf("of a rollout in progress it is %+v", r)
	}
}

func TestWhatARetryNames(t *testing.T) {
	const id = "2-0123"
	reached := metav1.NewTime(now)
	held := func(reason string, changes ...func(*machinev1alpha1.RolloutStatus)) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Rollout = &machinev1alpha1.RolloutStatus{ID: id, Step: 1, ReachedTime: &reached, Held: &machinev1alpha1.RolloutHold{Reason: reason}}
			for _, change := range changes {
				change(d.Status.Rollout)
			}
		}
	}
	const failed, inconclusive = machinev1alpha1.ReasonAnalysisFailed, machinev1alpha1.ReasonAnalysisInconclusive
	for name, tc := range map[string]struct {
		options []deploymentOption
		want    string
	}{
		"nothing without a rollout":                {nil, ""},
		"a failed analysis":                        {[]deploymentOption{held(failed)}, RetryID(id, reached)},
		"an analysis without a verdict":            {[]deploymentOption{held(inconclusive)}, RetryID(id, reached)},
		"no approval":                              {[]deploymentOption{held(machinev1alpha1.ReasonAwaitingApproval)}, ""},
		"nothing that is not held":                 {[]deploymentOption{held("", func(r *machinev1alpha1.RolloutStatus) { r.Held = nil })}, ""},
		"no step that was not reached":             {[]deploymentOption{held(failed, func(r *machinev1alpha1.RolloutStatus) { r.ReachedTime = nil })}, ""},
		"no rollout without a name":                {[]deploymentOption{held(failed, func(r *machinev1alpha1.RolloutStatus) { r.ID = "" })}, ""},
		"a rejected template":                      {[]deploymentOption{inRollout(2), rejected}, IDOf(revision(2, "v2", ""))},
		"nothing of a template that was corrected": {[]deploymentOption{inRollout(2), rejected, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template = template("v3") }}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RetryOf(deployment(4, tc.options...)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
