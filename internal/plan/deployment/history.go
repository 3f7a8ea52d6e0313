package deployment

import (
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// history returns the revisions with the outcomes of their rollouts. Events may be dropped by an
// API client or expire. The history stays with the revision, limited by spec.revisionHistoryLimit.
func (p *plan) history(s machinev1alpha1.MachineDeploymentStatus) []machinev1alpha1.Revision {
	out := slices.Clone(p.revisions)
	now := p.time()
	for i := range out {
		r := &out[i]
		for _, before := range p.Deployment.Status.Revisions {
			if before.Revision == r.Revision {
				r.StartTime, r.CompletionTime, r.Outcome = before.StartTime, before.CompletionTime, before.Outcome
			}
		}
		if p.rejected != nil && r.Revision == p.rejected.Revision {
			r.Outcome, r.LastCompleteRevision = machinev1alpha1.RevisionRejected, 0
		}
		switch {
		case i < len(out)-1:
			if r.Outcome == machinev1alpha1.RevisionInProgress {
				r.Outcome = machinev1alpha1.RevisionSuperseded
			}
			if r.StartTime != nil && r.CompletionTime == nil {
				r.CompletionTime = now
			}
		case p.current == nil || r.Outcome == machinev1alpha1.RevisionComplete || r.Outcome == machinev1alpha1.RevisionRejected:
		default:
			if r.StartTime == nil {
				r.StartTime = now
			}
			r.Outcome = machinev1alpha1.RevisionInProgress
			switch {
			case p.isComplete():
				r.Outcome, r.CompletionTime, r.LastCompleteRevision = machinev1alpha1.RevisionComplete, now, 0
			case p.progressing(s).Reason == machinev1alpha1.ReasonProgressDeadlineExceeded:
				r.Outcome = machinev1alpha1.RevisionDeadlineExceeded
			}
		}
	}
	return out
}
