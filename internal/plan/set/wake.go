package set

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// generationObservedWithin is the longest time until a set that a MachineDeployment controls
// reports a new generation as observed.
const generationObservedWithin = 5 * time.Second

// callAgain returns the delay until the next reconcile: at once to carry out recorded decisions, soon while
// anything is in flight, and otherwise at the time when the next Machine becomes available, may be created,
// or is no longer preserved.
func (p *plan) callAgain(s machinev1alpha1.MachineSetStatus, ready bool) time.Duration {
	if len(p.dropped)+len(p.selected)+len(p.takesOn)+len(p.paired) > 0 || p.allowsReboots() {
		return shared.Soonest
	}
	again := shared.AtRest
	// A generation is reported as observed one plan after the plan that decided by it. A MachineDeployment
	// scales its sets several times per rollout and reads decidedGeneration. For its sets, a reconcile that
	// only reports the generation therefore waits for the next change, or a few seconds.
	if s.ObservedGeneration < p.Set.Generation {
		if metav1.GetControllerOfNoCopy(p.Set) == nil {
			return shared.Soonest
		}
		again = generationObservedWithin
	}
	if left, byHand := p.untilFreezeStalls(); byHand && left > 0 {
		again = min(again, left)
	}
	if !ready && p.moves() || len(p.terminating)+len(p.dropping) > 0 {
		again = min(again, shared.InFlight)
	}
	again = min(again, p.untilStuck())
	if p.lacksProfile() {
		again = min(again, shared.InFlight) // Nothing reports that a profile was created.
	}
	if p.backingOff() {
		again = min(again, p.backoff.Until.Sub(p.now))
	}
	if e := p.exhausted; e != nil && e.Until != nil {
		again = min(again, e.Until.Sub(p.now))
	}
	isMissing, patience := p.missing() > 0, p.patience()
	isReplaced, grace := p.isRolledOut() || p.createsNone(), p.graceForNodes()
	for _, m := range p.all() {
		if left := p.untilHangs(m, patience); isMissing && p.isOnTrial(m) && left > 0 {
			again = min(again, left)
		}
		if left, boots := p.untilBoots(m, grace); isReplaced && boots && left > 0 {
			again = min(again, left)
		}
		if isReady(m) && p.untilAvailable(m) > 0 {
			again = min(again, p.untilAvailable(m))
		}
		if isFailed(m) && m.Status.Preservation != nil && p.isPreserved(m) {
			again = min(again, m.Status.Preservation.Until.Sub(p.now))
		}
	}
	for _, m := range p.setAside {
		if m.Status.Preservation != nil {
			again = min(again, m.Status.Preservation.Until.Sub(p.now))
		}
	}
	return again
}
