package deployment

import (
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// A Set is a MachineSet of the deployment.
type Set struct {
	*machinev1alpha1.MachineSet
	// Observed is false for a MachineSet that the deployment's references do not name. See
	// shared.Child.
	Observed bool
	// Terminating means that the MachineSet is being deleted.
	Terminating bool
}

// Observed is the view of the step.
type Observed struct {
	Deployment *machinev1alpha1.MachineDeployment
	// Sets that the deployment controls, in any order.
	Sets []Set
	// ClassFound means that the class of the template that is rolled out exists.
	ClassFound bool
	// ClassProblem is the reason why no VM can be created from the class, nil if one can.
	ClassProblem *shared.Problem
	Safety       shared.Safety
	// Gate of a step of the user's own in the pipeline, nil without one.
	Gate *shared.RolloutGate
	// Analysis has the verdicts of the analyses of the steps, nil without one.
	Analysis *machinev1alpha1.RolloutAnalysisRun
}

// A Desired MachineSet.
type Desired struct {
	*machinev1alpha1.MachineSet
	Ready bool
}

// A Decision is the output of the step.
type Decision struct {
	Sets []Desired
	// Analysis that provider-drover is to carry out, nil for none.
	Analysis *machinev1alpha1.RolloutAnalysisRun
	Status   machinev1alpha1.MachineDeploymentStatus
	shared.Report
}

// A stage adds to the decisions of the earlier stages. It calls no other stage.
type stage func(*plan)

// stages of a plan, in their order.
var stages = []stage{
	(*plan).updateRevisions,
	(*plan).scale,
	(*plan).assignBudget,
	(*plan).pruneEmptySets,
}

// Plan decides the MachineSets of a deployment.
func Plan(now time.Time, o Observed) Decision {
	p := newPlan(fleetOf(now, o))
	for _, decide := range stages {
		decide(p)
	}
	return p.decide()
}

// A plan collects the decisions of the stages. A value that depends on decisions is a method of the
// plan, and a value that depends only on the facts is one of the fleet.
type plan struct {
	*fleet

	// sets that are composed, the new one last.
	sets []*set
	// nextDesired is the number of Machines that each set shall have, and nextBudget is its part of
	// the budget of replacements.
	nextDesired, nextBudget map[*set]int32
	// scaledFor is the number of replicas that the sets are scaled for.
	scaledFor int32

	// revision of the current set, and the history up to it.
	revision  int64
	revisions []machinev1alpha1.Revision
	// rollback that is in force, with the revision that it has become.
	rollback *machinev1alpha1.Rollback
}

// newPlan returns a plan that keeps the recorded decisions.
func newPlan(f *fleet) *plan {
	p := &plan{
		fleet: f, sets: f.live(), nextDesired: map[*set]int32{}, nextBudget: map[*set]int32{},
		scaledFor: f.bounds.replicas, revisions: slices.Clone(f.Deployment.Status.Revisions), rollback: f.rollsBackTo,
	}
	for _, s := range p.sets {
		p.nextDesired[s], p.nextBudget[s] = s.desired, s.budget
	}
	return p
}

// pruneEmptySets of old templates: the status has the revisions for rollbacks. A set that is not
// observed must be composed again before it can be deleted. A set with Machines that it set aside
// is kept, because its deletion would delete them too. Crossplane deletes a set before it writes the
// status, so a set is kept until the status has its replacements.
func (p *plan) pruneEmptySets() {
	p.sets = slices.DeleteFunc(p.sets, func(s *set) bool {
		return s != p.newSet && s.isEmpty() && s.isSettled() && p.nextDesired[s] == 0 && s.Observed && len(s.Status.SetAside) == 0 && p.hasReplacementsOf(s)
	})
}

// othersThan returns the composed sets except one.
func (p *plan) othersThan(s *set) []*set {
	return slices.DeleteFunc(slices.Clone(p.sets), func(other *set) bool { return other == s })
}

func (p *plan) decide() Decision {
	d := Decision{Analysis: p.analysisRun(), Status: p.status()}
	for _, s := range p.sets {
		d.Sets = append(d.Sets, Desired{MachineSet: p.composed(s), Ready: s.isReady()})
	}
	// The template of the spec is not rolled out if it was rejected.
	d.Ready = p.isComplete() && !p.isSpecRejected()
	d.Conditions = p.conditions(d.Status)
	d.CallAgain = p.callAgain(d.Status)
	if until, held := p.holdMessages(d.Conditions); held {
		d.CallAgain = min(d.CallAgain, until)
	}
	d.Events = p.allEvents(d.Conditions)
	return d
}
