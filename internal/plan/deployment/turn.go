package deployment

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// askForTurn of a rollout that replaces Machines by those of another template than the last good one. Going back waits for
// no other deployment. With OnDelete the user decides when each Machine is replaced.
func (f *fleet) askForTurn() {
	if f.HasPolicies && !f.goesBack && !f.isLastGood() && f.Deployment.Spec.Strategy.Type != machinev1alpha1.OnDelete {
		f.turn = f.target.hash()
	}
}

// awaitTurn holds a rollout until all RolloutPolicies let it begin. An answer for another template does not count.
func (f *fleet) awaitTurn() {
	if f.turn == "" {
		return
	}
	if f.Turn != nil && f.Turn.Status.Template == f.turn && f.Turn.Spec.Template == f.turn {
		if held := f.Turn.Status.Held; held != nil {
			f.hold = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAwaitingWave, Message: held.Message}
			if held.Until != nil && f.now.Before(held.Until.Time) {
				f.hold.Until = held.Until
			}
		}
		return
	}
	f.hold = f.unanswered(machinev1alpha1.ReasonAwaitingTurn, machinev1alpha1.ReasonAwaitingWave,
		"the rollout waits for provider-drover to ask the RolloutPolicies")
}

// unanswered is a hold until provider-drover answers. If it does not in time, the second reason and the message report that.
func (f *fleet) unanswered(reason, late, message string) *machinev1alpha1.RolloutHold {
	h := &machinev1alpha1.RolloutHold{Reason: reason, Message: message}
	since := f.Deployment.Status.FrozenSince
	if since == nil {
		return h
	}
	if until := since.Add(untilAnswered); f.now.Before(until) {
		h.Until = new(metav1.NewTime(until))
	} else {
		h.Reason = late
		h.Message += fmt.Sprintf(" since %s; look at its Deployment and its log", since.UTC().Format(time.RFC3339))
	}
	return h
}

// rolloutTurn asks the RolloutPolicies, nil if there is nothing to ask.
func (p *plan) rolloutTurn() *machinev1alpha1.RolloutTurn {
	if p.turn == "" {
		return nil
	}
	d := p.Deployment
	return &machinev1alpha1.RolloutTurn{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: machinev1alpha1.RolloutTurnGroupVersionKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: names.Turn(d.Name, d.UID), Labels: map[string]string{machinev1alpha1.LabelDeployment: d.Name}},
		Spec:       machinev1alpha1.RolloutTurnSpec{MachineDeployment: d.Name, Template: p.turn},
	}
}

// MemberState returns the state of a deployment for the waves of a RolloutPolicy, and when its last rollout was complete. A
// deployment that has never been complete has no rollout yet.
func MemberState(d *machinev1alpha1.MachineDeployment) (machinev1alpha1.MemberState, time.Time) {
	last := machinev1alpha1.Revision{}
	if n := len(d.Status.Revisions); n > 0 {
		last = d.Status.Revisions[n-1]
	}
	isComplete := last.Outcome == machinev1alpha1.RevisionComplete
	if last.Revision <= 1 && !isComplete {
		return machinev1alpha1.MemberNew, time.Time{}
	}
	switch {
	case Rejected(d) != nil:
		return machinev1alpha1.MemberFailed, time.Time{}
	case isComplete && isTarget(d, last):
		completed := time.Time{}
		if last.CompletionTime != nil {
			completed = last.CompletionTime.Time
		}
		if meta.IsStatusConditionFalse(d.Status.Conditions, machinev1alpha1.ConditionAvailable) {
			return machinev1alpha1.MemberUnavailable, completed
		}
		return machinev1alpha1.MemberComplete, completed
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, machinev1alpha1.ConditionProgressing); c != nil &&
		(needsUser(c.Reason) || c.Reason == machinev1alpha1.ReasonProgressDeadlineExceeded) {
		return machinev1alpha1.MemberFailed, time.Time{}
	}
	if f := (&fleet{Observed: Observed{Deployment: d}}); f.isPaused() {
		return machinev1alpha1.MemberPaused, time.Time{}
	}
	return machinev1alpha1.MemberRollingOut, time.Time{}
}

// isTarget reports whether a revision is of the template that is rolled out. A set that is younger than spec.rollout.after is
// not rolled out for that time, so that its revision has another one: then the spec must be observed.
func isTarget(d *machinev1alpha1.MachineDeployment, r machinev1alpha1.Revision) bool {
	target := rollingOf(Template(d))
	target.After = d.Spec.Rollout.After
	is := content(r)
	return equal(is, target) || is.same(target) && d.Status.ObservedGeneration == d.Generation
}
