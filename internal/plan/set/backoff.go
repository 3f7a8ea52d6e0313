package set

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// delay is the wait after a failed attempt. If VMs do not join, the attempt itself has already taken their
// creationTimeout. Errors that only a user can fix are retried rarely, just often enough to notice the fix:
// a changed template has no backoff.
func delay(b machinev1alpha1.Backoff) time.Duration {
	first, longest := 10*time.Second, 10*time.Minute
	switch c := fn.ErrorCode(b.ErrorCode); {
	case c.NeedsSomebody():
		first, longest = 10*time.Minute, time.Hour
	case c.IsExhausted():
		first = time.Minute
	case !failedWithoutVM(b.Reason):
		longest = 5 * time.Minute
	}
	return min(longest, first<<min(max(0, b.Failures-1), 10))
}

// recover ends the backoff of a template that works again, or that has changed since.
func (p *plan) recover() {
	b := p.Set.Status.Backoff
	switch {
	case b == nil:
	case b.Template != p.templateHash():
	case p.worksAgain(b):
		p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventCreationRecovered, Message: "Machines of the template can be created again"})
	default:
		p.backoff = b
	}
}

// worksAgain reports whether a Machine that was created after the last failure got further than the one
// that failed, or the set needs no more Machines.
func (p *plan) worksAgain(b *machinev1alpha1.Backoff) bool {
	failedAt := b.Until.Add(-delay(*b))
	if slices.ContainsFunc(p.all(), func(m Machine) bool { return !m.CreationTimestamp.Time.Before(failedAt) && p.proves(m, b.Reason) }) {
		return true
	}
	unsure := func(m Machine) bool { return m.Status.Phase.IsOnItsWay() || isFailed(m) && !p.isPreserved(m) }
	return p.missing() == 0 && !slices.ContainsFunc(p.all(), unsure) && !p.now.Before(b.Until.Time)
}

// backOff starts or prolongs the backoff if Machines failed because of the template. All Machines of one
// attempt are one failure, however many they are and whenever they fail. No Machine is created during a
// backoff, so the Machines created before its end belong to the attempt before it.
func (p *plan) backOff() {
	var failures []Machine
	last := map[machinev1alpha1.FailureReason]time.Time{}
	for _, m := range p.all() {
		reason := m.Status.FailureReason
		if _, known := last[reason]; !known && isFailed(m) {
			last[reason] = p.lastSuccess(reason)
		}
		if p.isFailureOfTemplate(m, last[reason]) && !p.failedBefore(m) {
			failures = append(failures, m)
		}
	}
	if len(failures) == 0 {
		return
	}
	m := slices.MinFunc(failures, func(a, b Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	b := machinev1alpha1.Backoff{Template: p.templateHash(), ErrorCode: errorCode(m), Message: m.Status.Failure()}
	if p.backoff != nil {
		b = *p.backoff
	}
	b.Failures++
	b.Reason = m.Status.FailureReason
	b.Until = metav1.NewTime(p.now.Add(delay(b)).UTC().Truncate(time.Second))
	p.backoff = &b
	p.events = append(p.events, backingOffEvent(b))
}

// isFailureOfTemplate reports whether the creation of the Machine is to be retried, and no younger Machine
// got further: lastSuccess is the creation time of the youngest one that did.
func (p *plan) isFailureOfTemplate(m Machine, lastSuccess time.Time) bool {
	return p.toRetry(m) && m.Status.FailureReason != "" && !p.isOutdated(m) && !m.CreationTimestamp.Time.Before(lastSuccess)
}

func backingOffEvent(b machinev1alpha1.Backoff) shared.Event {
	times := "once"
	if b.Failures > 1 {
		times = fmt.Sprintf("%d times in a row", b.Failures)
	}
	return shared.Event{
		Warning: true,
		Reason:  machinev1alpha1.EventBackingOff,
		Message: fmt.Sprintf("Creation failed %s, first with %s: the next Machine is created in %s", times, text(b.ErrorCode, b.Message), delay(b)),
	}
}
