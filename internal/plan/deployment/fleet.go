package deployment

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/aging"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// A fleet is the view of a MachineDeployment and its MachineSets. It follows only from the observed
// state, never from a decision of this plan: it is computed once, and no stage changes it.
type fleet struct {
	Observed
	now    time.Time
	bounds bounds
	// problem with the spec, the class or the cluster, nil if there is none.
	problem *shared.Problem
	// noneCanStart means that the problem is that of the class or of the cluster: no Machine can be created.
	noneCanStart bool
	// limits of replacements. While limitsProblem is set, no Machine is replaced.
	limits        remediation.Limits
	limitsProblem *shared.Problem

	// template that is rolled out: that of the spec, or of a revision that is rolled back to.
	template machinev1alpha1.MachineTemplate
	// target identifies the template.
	target rolling
	// rollsBackTo is the rollback that is in force, nil if there is none.
	rollsBackTo *machinev1alpha1.Rollback

	gates

	// current is the set of the template. It is nil if it does not exist and may not be created.
	current *set
	// newSet is the set whose Machines are desired: the current one. While that must not be
	// created, it is the newest existing set. It is nil if there is no set.
	newSet *set
	// oldSets are all live sets except newSet, oldest first.
	oldSets []*set
	// terminating sets are only counted.
	terminating []*set
}

func fleetOf(now time.Time, o Observed) *fleet {
	f := &fleet{Observed: o, now: now}
	f.bounds, f.problem = boundsOf(o.Deployment)
	f.limits, f.limitsProblem = remediation.LimitsOf(o.Deployment.Spec.Remediation, o.Deployment.Spec.Replicas)
	f.chooseTemplate()
	f.checkWindows()
	if p := aging.Problem(o.Deployment.Spec.Rollout, o.Deployment.Spec.Template.Spec, o.Deployment.Spec.MinReadySeconds); p != nil && f.problem == nil {
		f.problem = &shared.Problem{Reason: p.Reason, Message: p.Message + "; meanwhile no healthy Machine is replaced"}
	}
	f.checkAnalyses()
	f.checkReferences()
	f.sortSets()
	f.checkFallback()
	f.closeGates()
	f.chooseNewSet()
	f.target.After = f.rolloutTime()
	f.identify()
	f.reject()
	f.enterStep()
	return f
}

// chooseTemplate to roll out.
func (f *fleet) chooseTemplate() {
	template, rollback, problem := chosen(f.Deployment)
	if f.problem == nil {
		f.problem = problem
	}
	f.template, f.rollsBackTo = template, rollback
	f.target = rollingOf(template)
	f.target.After = after(f.now, f.Deployment)
	f.limit = unlimited
	f.rejected = Rejected(f.Deployment)
	if good := insteadOfRejected(f.Deployment); good != nil {
		f.goesBack, f.target.After = true, good.After
	}
}

// checkReferences of new Machines: their class and their cluster.
func (f *fleet) checkReferences() {
	switch {
	case f.problem != nil:
	case !f.ClassFound:
		f.problem, f.noneCanStart = classNotFound(f.Deployment, f.template), true
	case f.Safety.Problem != nil:
		f.problem, f.noneCanStart = clusterUnusable(f.Safety.Problem), true
	case f.ClassProblem != nil:
		f.problem, f.noneCanStart = classUnusable(f.ClassProblem), true
	}
}

// sortSets by their recorded decisions, oldest first. A restored MachineDeployment has lost its
// revisions. If it created a set before the backup's set was restored, both sets have the same
// revision. The Machines in use belong to the restored set, so that counts as the newer one.
func (f *fleet) sortSets() {
	for _, observed := range f.Sets {
		s := &set{Set: observed, revision: revisionOf(observed.MachineSet), desired: observed.Spec.Replicas}
		s.budget = s.observedBudget()
		for _, r := range f.Deployment.Status.MachineSets {
			if r.Name == s.Name {
				s.desired, s.upperBound, s.isRecorded = r.Replicas, r.Most, true
				s.budget = ptr.Deref(r.MaxInFlight, s.budget)
			}
		}
		if s.Terminating {
			f.terminating = append(f.terminating, s)
		} else {
			f.oldSets = append(f.oldSets, s)
		}
	}
	slices.SortFunc(f.oldSets, func(a, b *set) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), falseFirst(f.isAdopted(a), f.isAdopted(b)), cmp.Compare(a.Name, b.Name))
	})
}

// isAdopted reports whether a set was created for another MachineDeployment, such as the one that
// had this name before a restore.
func (f *fleet) isAdopted(s *set) bool {
	return s.Name != names.MachineSet(f.Deployment.Name, f.Deployment.UID, s.Labels[machinev1alpha1.LabelTemplateHash])
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (f *fleet) chooseNewSet() {
	for _, s := range slices.Backward(f.oldSets) {
		if f.isCurrent(s) && !f.isRejected(s) {
			f.current = s
			break
		}
	}
	// A rejected template creates no Machine even while the rollout is held: the last good one needs a set.
	mayCreate := !f.isHeld() || f.goesBack && !f.Safety.Frozen && !f.updatesInPlace()
	if f.current == nil && f.problem == nil && mayCreate {
		f.current = &set{Set: Set{MachineSet: f.newMachineSet()}, isMissing: true}
	}
	f.newSet = f.current
	if n := len(f.oldSets); f.newSet == nil && n > 0 {
		f.newSet = f.oldSets[n-1]
	}
	f.oldSets = slices.DeleteFunc(f.oldSets, func(s *set) bool { return s == f.newSet })
}

// isCurrent reports whether a set is that of the template. A set that updates in place becomes the
// current one.
func (f *fleet) isCurrent(s *set) bool {
	has := rollingOf(s.Spec.Template)
	if f.updatesInPlace() {
		return has.same(f.target) || !f.isHeld() && f.problem == nil && has.stays(f.target)
	}
	return has.same(f.target) && !s.isMixed() && f.isYoungEnough(s)
}

// isYoungEnough reports whether a set was created after spec.rollout.after. Clocks may differ, so
// the hash also identifies sets that were created for that time.
func (f *fleet) isYoungEnough(s *set) bool {
	if f.target.After == nil || !s.CreationTimestamp.Before(f.target.After) {
		return true
	}
	r := f.target
	for range f.Sets {
		if s.Labels[machinev1alpha1.LabelTemplateHash] == r.hash() {
			return true
		}
		r.Collision++
	}
	return false
}

// rolloutTime of the target. A set that was created after spec.rollout.after is not rolled out
// again for that time.
func (f *fleet) rolloutTime() *metav1.Time {
	if last := f.lastRevision(); f.current != nil && f.isYoung(last) {
		return last.After
	}
	return f.target.After
}

func (f *fleet) isYoung(last *machinev1alpha1.Revision) bool {
	return last != nil && !f.updatesInPlace() && last.Revision == f.current.revision && content(*last).same(f.target)
}

// isHeld reports whether no Machine may be replaced or updated. Only scaling continues.
func (f *fleet) isHeld() bool { return f.Safety.Frozen || f.isTemplateHeld() }

// isTemplateHeld reports whether a user holds the rollout, by a pause or by an invalid spec, or a
// gate does. Each set then replaces the Machines that it loses, with every strategy: the hold
// concerns the template, not the number of Machines.
func (f *fleet) isTemplateHeld() bool {
	return f.isPaused() || f.problem != nil && !f.noneCanStart || f.hold != nil || f.isFull || f.isNew
}

// isReplacementHeld reports whether no Machine is replaced: the rollout is held, or there is no set
// for the new Machines.
func (f *fleet) isReplacementHeld() bool { return f.isHeld() || f.current == nil }

func (f *fleet) isPaused() bool {
	_, annotated := f.Deployment.Annotations[machinev1alpha1.AnnotationPaused]
	return f.Deployment.Spec.Paused || annotated
}

// hasProof reports whether the rollout continues and the new template has an available Machine.
// From then on, no Machine of an old template is created: the new set replaces the Machines that
// the old sets lose.
func (f *fleet) hasProof() bool {
	return f.current != nil && f.newSet == f.current && f.problem == nil && !f.isHeld() && f.newSet.available() > 0
}

// updatesInPlace reports whether Machines are updated instead of replaced.
func (f *fleet) updatesInPlace() bool {
	return f.Deployment.Spec.Strategy.Type == machinev1alpha1.InPlaceUpdate
}

// live sets are all that are not being deleted, the new one last.
func (f *fleet) live() []*set {
	if f.newSet == nil {
		return nil
	}
	return append(slices.Clone(f.oldSets), f.newSet)
}

// isAlone reports whether only the new set has Machines.
func (f *fleet) isAlone() bool {
	return sum(f.oldSets, (*set).total)+sum(f.terminating, (*set).total) == 0
}

// room is the number of Machines that may be added up to the given total, which includes
// terminating Machines.
func (f *fleet) room(most int32) int32 {
	return max(0, most-sum(f.live(), (*set).total)-sum(f.terminating, (*set).total))
}

// upTo returns n, or fewer if the given total of all sets has no room for n.
func (f *fleet) upTo(s *set, n, most int32) int32 { return min(n, s.desired+f.room(most)) }

// condition that was observed, nil if there was none.
func (f *fleet) condition(typ string) *metav1.Condition {
	return meta.FindStatusCondition(f.Deployment.Status.Conditions, typ)
}
