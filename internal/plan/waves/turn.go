package waves

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Answer returns the answer of policies to a rollout of a member, by their present status. All policies that select the
// member must let it begin; the first one that does not is named. The second result is when the answer may change by
// itself, zero if it does not.
func Answer(now time.Time, policies []*machinev1alpha1.RolloutPolicy, m Member, turn *machinev1alpha1.RolloutTurn) (machinev1alpha1.RolloutTurnStatus, time.Time) {
	now = now.UTC().Truncate(time.Second)
	s := machinev1alpha1.RolloutTurnStatus{Template: turn.Spec.Template}
	if before := turn.Status; before.Template == s.Template {
		s.RequestedTime, s.AdmittedTime = before.RequestedTime, before.AdmittedTime
	}
	if s.RequestedTime == nil {
		s.RequestedTime = new(metav1.NewTime(now))
	}
	var next time.Time
	for _, p := range policies {
		mine := WaveOf(p, m)
		if mine <= 0 {
			continue // No wave is before it.
		}
		h := holdOf(now, p, mine, s)
		if h == nil {
			continue
		}
		s.AdmittedTime, s.Held = nil, h
		if h.Until != nil {
			next = h.Until.Time
		}
		return s, next
	}
	if s.AdmittedTime == nil {
		s.AdmittedTime = new(metav1.NewTime(now))
	}
	return s, next
}

// holdOf a policy on a rollout of a wave, nil if it lets the rollout begin or continue.
func holdOf(now time.Time, p *machinev1alpha1.RolloutPolicy, mine int, s machinev1alpha1.RolloutTurnStatus) *machinev1alpha1.RolloutHold {
	begins := s.AdmittedTime == nil
	for i := range mine {
		w, is := p.Spec.Waves[i], p.Status.Waves[i]
		if begins && !isOpen(is, w) || is.State == machinev1alpha1.WaveFailed {
			return &machinev1alpha1.RolloutHold{
				Reason: machinev1alpha1.ReasonAwaitingWave, Until: untilOf(is),
				Message: fmt.Sprintf("RolloutPolicy %s: wave %s waits for wave %s, %s", p.Name, p.Spec.Waves[mine].Name, w.Name, because(w, is)),
			}
		}
	}
	delay := p.Spec.Delay.Duration
	if delay <= 0 {
		delay = machinev1alpha1.DefaultWaveDelay
	}
	if until := s.RequestedTime.Add(delay); begins && now.Before(until) {
		return &machinev1alpha1.RolloutHold{
			Reason: machinev1alpha1.ReasonAwaitingWave, Until: ptr.To(metav1.NewTime(until.UTC())),
			Message: fmt.Sprintf("RolloutPolicy %s: wave %s begins at %s, unless an earlier wave begins a rollout before", p.Name, p.Spec.Waves[mine].Name, until.UTC().Format(time.RFC3339)),
		}
	}
	return nil
}

// untilOf a wave is when it lets later ones begin by itself. A deadline does not if it is only reported.
func untilOf(s machinev1alpha1.WaveStatus) *metav1.Time {
	if s.State == machinev1alpha1.WaveSoaking {
		return s.Until
	}
	return nil
}

// because has the reason for which a wave is not open, and who can end that.
func because(w machinev1alpha1.RolloutWave, s machinev1alpha1.WaveStatus) string {
	since := "an unknown time"
	if s.Since != nil {
		since = s.Since.UTC().Format(time.RFC3339)
	}
	const who = "; who may change the RolloutPolicy can let it pass"
	switch s.State {
	case machinev1alpha1.WaveSoaking:
		return fmt.Sprintf("which is complete since %s, and must be until %s", since, s.Until.UTC().Format(time.RFC3339))
	case machinev1alpha1.WaveFailed:
		return "in which a rollout failed, until that is corrected" + who
	case machinev1alpha1.WaveOverdue:
		return fmt.Sprintf("which is not complete since %s, and is overdue%s", since, who)
	}
	if s.Until != nil && w.AfterDeadline == machinev1alpha1.AfterDeadlineContinue {
		return fmt.Sprintf("which is not complete since %s, but until %s at most%s", since, s.Until.UTC().Format(time.RFC3339), who)
	}
	return fmt.Sprintf("which is not complete since %s%s", since, who)
}
