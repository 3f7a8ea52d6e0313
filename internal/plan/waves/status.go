package waves

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// mostNamed is how many members a wave names that it waits for.
	mostNamed = 10
	// defaultDeadline is that of the schema.
	defaultDeadline = 24 * time.Hour
)

// Status returns the state of the waves of a policy. The times follow from the last status, which must be recorded.
func Status(now time.Time, p *machinev1alpha1.RolloutPolicy, members []Member) machinev1alpha1.RolloutPolicyStatus {
	now = now.UTC().Truncate(time.Second)
	s := machinev1alpha1.RolloutPolicyStatus{ObservedGeneration: p.Generation}
	of := make([][]Member, len(p.Spec.Waves))
	for _, m := range members {
		if i := WaveOf(p, m); i >= 0 {
			of[i] = append(of[i], m)
			s.Members++
		}
	}
	for i, w := range p.Spec.Waves {
		s.Waves = append(s.Waves, stateOf(now, p, w, of[i]))
	}
	return s
}

func stateOf(now time.Time, p *machinev1alpha1.RolloutPolicy, w machinev1alpha1.RolloutWave, members []Member) machinev1alpha1.WaveStatus {
	s := machinev1alpha1.WaveStatus{Name: w.Name, State: machinev1alpha1.WaveEmpty}
	var completed time.Time
	for _, m := range members {
		if m.State == machinev1alpha1.MemberNew {
			continue
		}
		s.Members++
		if m.State == machinev1alpha1.MemberComplete {
			s.Complete++
			// A time in the future is that of another clock, or is forged.
			if m.Completed.After(completed) && !m.Completed.After(now) {
				completed = m.Completed
			}
			continue
		}
		s.WaitsFor = append(s.WaitsFor, machinev1alpha1.WaveMember{Namespace: m.Namespace, Name: m.Name, State: m.State})
	}
	if s.Members == 0 {
		return s
	}
	var before *machinev1alpha1.WaveStatus
	if i := slices.IndexFunc(p.Status.Waves, func(b machinev1alpha1.WaveStatus) bool { return b.Name == w.Name }); i >= 0 && p.Status.Waves[i].Since != nil {
		before = &p.Status.Waves[i]
	}
	if s.Complete == s.Members {
		return complete(s, now, w, before, completed)
	}
	slices.SortFunc(s.WaitsFor, func(a, b machinev1alpha1.WaveMember) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	s.WaitsFor = s.WaitsFor[:min(len(s.WaitsFor), mostNamed)]
	return incomplete(s, now, p, w, before)
}

// complete has been the state of a wave since its last rollout, or since all its members had their Machines again.
func complete(s machinev1alpha1.WaveStatus, now time.Time, w machinev1alpha1.RolloutWave, before *machinev1alpha1.WaveStatus, completed time.Time) machinev1alpha1.WaveStatus {
	since := now
	switch {
	case before == nil && !completed.IsZero():
		since = completed
	case before != nil && before.ID == "":
		since = before.Since.Time
		if completed.After(since) {
			since = completed
		}
	}
	s.State, s.Since = machinev1alpha1.WaveComplete, new(metav1.NewTime(since.UTC()))
	if w.Soak != nil {
		if until := since.Add(w.Soak.Duration); now.Before(until) {
			s.State, s.Until = machinev1alpha1.WaveSoaking, new(metav1.NewTime(until.UTC()))
		}
	}
	return s
}

// incomplete has been the state of a wave since its first rollout of those in progress.
func incomplete(s machinev1alpha1.WaveStatus, now time.Time, p *machinev1alpha1.RolloutPolicy, w machinev1alpha1.RolloutWave, before *machinev1alpha1.WaveStatus) machinev1alpha1.WaveStatus {
	since := now
	if before != nil && before.ID != "" {
		since = before.Since.Time
	}
	s.Since, s.ID = new(metav1.NewTime(since.UTC())), fmt.Sprintf("%s@%d", w.Name, since.Unix())
	deadline := since.Add(cmp.Or(w.Deadline.Duration, defaultDeadline)).UTC()
	switch {
	case p.Annotations[machinev1alpha1.AnnotationPassWave] == s.ID:
		s.State = machinev1alpha1.WavePassed
	case slices.ContainsFunc(s.WaitsFor, func(m machinev1alpha1.WaveMember) bool { return m.State == machinev1alpha1.MemberFailed }):
		s.State = machinev1alpha1.WaveFailed
	case !now.Before(deadline):
		s.State = machinev1alpha1.WaveOverdue
	default:
		s.State, s.Until = machinev1alpha1.WaveInProgress, new(metav1.NewTime(deadline))
	}
	return s
}

// rank of a member by which a wave names it: failed ones first.
func rank(m machinev1alpha1.WaveMember) int {
	return slices.Index([]machinev1alpha1.MemberState{
		machinev1alpha1.MemberFailed, machinev1alpha1.MemberPaused, machinev1alpha1.MemberUnavailable, machinev1alpha1.MemberRollingOut,
	}, m.State)
}

// isOpen reports whether a wave lets later ones begin.
func isOpen(s machinev1alpha1.WaveStatus, w machinev1alpha1.RolloutWave) bool {
	switch s.State {
	case machinev1alpha1.WaveEmpty, machinev1alpha1.WaveComplete, machinev1alpha1.WavePassed:
		return true
	case machinev1alpha1.WaveOverdue:
		return w.AfterDeadline == machinev1alpha1.AfterDeadlineContinue
	}
	return false
}
