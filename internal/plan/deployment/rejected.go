package deployment

import (
	"slices"
	"strconv"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// IDOf returns the ID of the rollout of a revision, by which approvals and requests name it.
func IDOf(r machinev1alpha1.Revision) string {
	return strconv.FormatInt(r.Revision, 10) + "-" + content(r).hash()
}

// HashOfSpec identifies the template in the spec, by which a rejection names it, with the time for which it is rolled out.
func HashOfSpec(d *machinev1alpha1.MachineDeployment) string {
	r := rollingOf(d.Spec.Template)
	r.After = d.Spec.Rollout.After
	return r.hash()
}

// IsRecorded reports whether the latest revision is that of the template in the spec. The generation does not tell: Crossplane
// raises it, too, when it records the MachineSets that it composed.
func IsRecorded(d *machinev1alpha1.MachineDeployment) bool {
	n := len(d.Status.Revisions)
	return n > 0 && content(d.Status.Revisions[n-1]).hash() == HashOfSpec(d)
}

// IsRolledOut reports whether the rollout of the template in the spec was complete. A set that is younger than
// spec.rollout.after is not rolled out for that time, so that its revision has another one: then the spec must be observed.
func IsRolledOut(d *machinev1alpha1.MachineDeployment) bool {
	n := len(d.Status.Revisions)
	if n == 0 || d.Status.Revisions[n-1].Outcome != machinev1alpha1.RevisionComplete {
		return false
	}
	is, want := content(d.Status.Revisions[n-1]), rollingOf(d.Spec.Template)
	want.After = d.Spec.Rollout.After
	return equal(is, want) || is.same(want) && d.Status.ObservedGeneration == d.Generation
}

// CompleteRevision returns the revision of the template in the spec, as if it had been rolled out.
func CompleteRevision(d *machinev1alpha1.MachineDeployment, number int64) machinev1alpha1.Revision {
	t := rollingOf(d.Spec.Template)
	return machinev1alpha1.Revision{
		Revision: number, ClassRef: t.ClassRef, Version: t.Version, ClusterRef: t.ClusterRef, FailureDomain: t.FailureDomain,
		Labels: t.Labels, Annotations: t.Annotations, After: d.Spec.Rollout.After, Outcome: machinev1alpha1.RevisionComplete,
	}
}

// Rejected returns the rejection of the template in the spec that is in force, nil if there is none: another template, or
// a request to retry, withdraws one.
func Rejected(d *machinev1alpha1.MachineDeployment) *machinev1alpha1.RejectedTemplate {
	if d.Status.Rollout == nil || d.Status.Rollout.Rejected == nil {
		return nil
	}
	r := d.Status.Rollout.Rejected
	if r.Hash != HashOfSpec(d) || d.Annotations[machinev1alpha1.AnnotationRolloutRetry] == r.ID {
		return nil
	}
	return r
}

// lastGood returns the revision to go back to from a rejected one, nil if there is none: the one that is rolled
// out instead already, or the one whose template was complete last.
func lastGood(revisions []machinev1alpha1.Revision, rejected int64) *machinev1alpha1.Revision {
	n := len(revisions)
	if n > 0 && revisions[n-1].Revision > rejected {
		return &revisions[n-1]
	}
	i := slices.IndexFunc(revisions, func(r machinev1alpha1.Revision) bool { return r.Revision >= rejected })
	if i < 0 {
		i = n
	}
	return completeLast(revisions[:i])
}

// completeLast returns the revision whose template was complete last, nil if none was.
func completeLast(revisions []machinev1alpha1.Revision) *machinev1alpha1.Revision {
	var last *machinev1alpha1.Revision
	for i := range revisions {
		if n := completeAs(revisions[i]); n > 0 && (last == nil || n > completeAs(*last)) {
			last = &revisions[i]
		}
	}
	return last
}

// completeAs is the number that the template of a revision had when a rollout of it was complete last, 0 if none was. A
// template that is rolled out once more gets another number. It stays good when that rollout is superseded.
func completeAs(r machinev1alpha1.Revision) int64 {
	if r.Outcome == machinev1alpha1.RevisionComplete {
		return r.Revision
	}
	return r.LastCompleteRevision
}

// LastGood returns the revision to go back to if the rollout in progress fails, nil if there is none.
func LastGood(d *machinev1alpha1.MachineDeployment) *machinev1alpha1.Revision {
	n := len(d.Status.Revisions)
	if n == 0 {
		return nil
	}
	return lastGood(d.Status.Revisions, d.Status.Revisions[n-1].Revision)
}

// RetryOf returns the value of the annotation rollout-retry by which a user retries a rejected template, or a step
// whose analysis failed or has no verdict. It is empty if there is nothing to retry.
func RetryOf(d *machinev1alpha1.MachineDeployment) string {
	if r := Rejected(d); r != nil {
		return r.ID
	}
	r := d.Status.Rollout
	if r == nil || r.Held == nil || r.ReachedTime == nil || r.ID == "" {
		return ""
	}
	switch r.Held.Reason {
	case machinev1alpha1.ReasonAnalysisFailed, machinev1alpha1.ReasonAnalysisInconclusive:
		return RetryID(r.ID, *r.ReachedTime)
	}
	return ""
}
