package deployment

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/aging"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

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
		return cmp.Or(cmp.Compare(a.revision, b.revision), shared.CompareBool(f.isAdopted(a), f.isAdopted(b)), cmp.Compare(a.Name, b.Name))
	})
}

// isAdopted reports whether a set was created for another MachineDeployment, such as the one that
// had this name before a restore.
func (f *fleet) isAdopted(s *set) bool {
	return s.Name != names.MachineSet(f.Deployment.Name, f.Deployment.UID, s.Labels[machinev1alpha1.LabelTemplateHash])
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

// newMachineSet returns the set of the template before it exists.
func (f *fleet) newMachineSet() *machinev1alpha1.MachineSet {
	d, r := f.Deployment, f.target
	name := names.MachineSet(d.Name, d.UID, r.hash())
	for slices.ContainsFunc(f.Sets, func(s Set) bool { return s.Name == name }) {
		r.Collision++
		name = names.MachineSet(d.Name, d.UID, r.hash())
	}

	s := &machinev1alpha1.MachineSet{}
	s.Name = name
	s.Spec.Template = f.template
	s.Spec.Template.Metadata.Labels = merged(f.template.Metadata.Labels, map[string]machinev1alpha1.LabelValue{
		machinev1alpha1.LabelDeployment:   machinev1alpha1.LabelValue(d.Name),
		machinev1alpha1.LabelTemplateHash: machinev1alpha1.LabelValue(r.hash()),
	})
	s.Spec.Selector.MatchLabels = merged(d.Spec.Selector.MatchLabels, map[string]machinev1alpha1.LabelValue{
		machinev1alpha1.LabelTemplateHash: machinev1alpha1.LabelValue(r.hash()),
	})
	return s
}
