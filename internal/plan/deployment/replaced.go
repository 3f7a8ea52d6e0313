package deployment

import (
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/history"
)

// replacements returns the last replacements of all sets, including sets that are gone. An entry of a rollout
// gets the revision that is rolled out when the deployment first observes the entry.
func (p *plan) replacements(revisions []machinev1alpha1.Revision) []machinev1alpha1.ReplacedMachine {
	current := machinev1alpha1.Revision{}
	if n := len(revisions); n > 0 {
		current = revisions[n-1]
	}
	lists := [][]machinev1alpha1.ReplacedMachine{p.Deployment.Status.Replacements}
	for _, s := range slices.Concat(p.live(), p.terminating) {
		of := slices.Clone(s.Status.Replacements)
		for i := range of {
			of[i] = history.ForRevision(of[i], current.Revision, current.ChangeCause)
		}
		lists = append(lists, of)
	}
	return history.Merge(p.now, lists...)
}

// hasReplacementsOf reports whether nothing is lost of status.replacements when a set is deleted: the recorded
// status has the replacements of the set, and the set does not wait for the report on a Machine that is gone.
func (p *plan) hasReplacementsOf(s *set) bool {
	return len(s.Status.Deleting) == 0 && history.Has(p.now, p.Deployment.Status.Replacements, s.Status.Replacements)
}

// isPrunable reports whether a set can be deleted as soon as the status has its replacements.
func (p *plan) isPrunable(s *set) bool {
	return p.isUnused(s) && s.isSettled() && len(s.Status.SetAside) == 0
}

// isUnused reports whether an old set has no Machines, and gets none.
func (p *plan) isUnused(s *set) bool {
	return s != p.newSet && s.Observed && s.isEmpty() && p.nextDesired[s] == 0
}
