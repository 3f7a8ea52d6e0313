package deployment

import (
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// updateRevisions gives the current template the highest revision, whether the template is new or
// had a revision before.
func (p *plan) updateRevisions() {
	if p.current == nil {
		return
	}
	now := p.nextRevision()
	if p.rollback != nil {
		// The annotation describes spec.template, not the revision that is rolled back to.
		i := slices.IndexFunc(p.revisions, func(r machinev1alpha1.Revision) bool { return r.Revision == p.rollback.Revision })
		now.ChangeCause = p.revisions[i].ChangeCause
		p.rollback = &machinev1alpha1.Rollback{Requested: p.rollback.Requested, Revision: now.Revision}
	}
	if p.goesBack {
		// The annotation describes the rejected template.
		now.ChangeCause = ""
		if i := slices.IndexFunc(p.revisions, func(r machinev1alpha1.Revision) bool { return equal(content(r), p.target) }); i >= 0 {
			now.ChangeCause = p.revisions[i].ChangeCause
		}
	}
	p.revision = now.Revision
	is := func(r machinev1alpha1.Revision) bool { return equal(content(r), p.target) }
	if i := slices.IndexFunc(p.revisions, is); i >= 0 {
		before := p.revisions[i]
		if now.LastCompleteRevision = before.LastCompleteRevision; before.Revision != now.Revision {
			now.LastCompleteRevision = completeAs(before)
		}
	}
	others := slices.DeleteFunc(p.revisions, is)
	p.revisions = append(others, now)[max(0, len(others)-int(p.Deployment.Spec.RevisionHistoryLimit)):]
	if good := completeLast(others); good != nil && p.hasGates() && good.Revision < p.revisions[0].Revision {
		p.revisions = append([]machinev1alpha1.Revision{*good}, p.revisions...)
	}
}

// nextRevision of the template: its own, if that is the highest.
func (f *fleet) nextRevision() machinev1alpha1.Revision {
	highest := f.current.revision
	for _, s := range slices.Concat(f.oldSets, f.terminating) {
		highest = max(highest, s.revision+1)
	}
	number := f.current.revision
	keeps := rollingOf(f.current.Spec.Template).same(f.target)
	if last := f.lastRevision(); last != nil {
		number = last.Revision
		// If the status was refused, the set has its number before the status does.
		isNumbered := keeps && f.current.revision > last.Revision
		keeps = equal(content(*last), f.target) || isNumbered
	}
	if highest = max(highest, number, 1); !keeps && highest <= max(number, f.current.revision) {
		highest++
	}
	t := f.target
	return machinev1alpha1.Revision{
		Revision: highest, ChangeCause: f.Deployment.Annotations[machinev1alpha1.AnnotationChangeCause],
		ClassRef: t.ClassRef, Version: t.Version, ClusterRef: t.ClusterRef, FailureDomain: t.FailureDomain,
		Labels: t.Labels, Annotations: t.Annotations, After: t.After,
	}
}

// revisionOf a set that is composed.
func (p *plan) revisionOf(s *set) int64 {
	if s == p.current {
		return p.revision
	}
	return s.revision
}
