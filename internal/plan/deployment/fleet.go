package deployment

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
	"github.com/drover-dev/drover/internal/schedule"
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

// gates of a rollout: what it may not do now. They concern Machines of other templates only, so a deployment
// without any is not held: its first Machines, its scaling and its remediation wait for nothing.
//
// A rollout that is held behaves as a paused one: each set replaces the Machines that it loses.
type gates struct {
	// outdated means that there are Machines of other templates.
	outdated bool
	// goesBack means that the template of the spec was rejected. The way back waits for no window and no step.
	goesBack bool
	windows  *schedule.Windows
	// turn is the template for which RolloutPolicies are asked, by a hash. It is "" if none are.
	turn string
	// rejected template of the spec, nil if there is none. isNew means that this plan rejects it.
	rejected *machinev1alpha1.RejectedTemplate
	isNew    bool
	// id of the rollout, "" until the status has its revision.
	id string
	// step of the rollout from 1, 0 without steps. limit is the number of Machines of the new template in it.
	step    int32
	limit   int32
	reached *metav1.Time
	// isFull means that the new set has all Machines of the step, and that the next step may not begin yet.
	isFull bool
	// hold is the cause for which the rollout does not continue, nil if there is none. A step whose Machines are
	// not all available is none: the rollout still has to make progress.
	hold *machinev1alpha1.RolloutHold
	// passed are the analyses that let a step pass in this plan, with their numbers.
	passed []string
	// next is the time at which a gate opens or closes, zero if there is none.
	next time.Time
}

// unlimited is the limit of a rollout without steps.
const unlimited = math.MaxInt32

// lastRevision of the status, nil if there is none.
func (f *fleet) lastRevision() *machinev1alpha1.Revision {
	revisions := f.Deployment.Status.Revisions
	if len(revisions) == 0 {
		return nil
	}
	return &revisions[len(revisions)-1]
}

// isRolling reports whether Machines of old sets are about to be deleted.
func (f *fleet) isRolling() bool {
	return f.Deployment.Spec.Strategy.Type != machinev1alpha1.OnDelete && !f.isAlone()
}

// isProven reports whether a change of replicas may affect the new set alone. The rollout must not
// be held, because a user who pauses it wants the proportion kept, and each desired Machine of the
// new set must be available. A rollout starts Machines all the time. So Machines that start or are
// not Ready for minReadySeconds do not count while another Machine of the set is available and none
// is unhealthy.
func (f *fleet) isProven() bool {
	if f.newSet != f.current || f.problem != nil || f.isHeld() {
		return false
	}
	s := f.newSet.Status
	onlyStart := s.AvailableReplicas > 0 && s.UnhealthyReplicas == 0 && f.newSet.desired-s.ReadyReplicas <= s.StartingReplicas
	return f.newSet.unavailable() == 0 || onlyStart
}

// isLastGood reports whether the target is the revision that was complete last.
func (f *fleet) isLastGood() bool {
	last := completeLast(f.Deployment.Status.Revisions)
	return last != nil && equal(content(*last), f.target)
}
