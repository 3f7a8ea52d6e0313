package set

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

// delayAfter so many failures in a row, of which the first had the code. What does not
// pass by itself is tried again for those only who mend it and wait: a template that
// changes is another one.
func delayAfter(code string, failures int32) time.Duration {
	first, longest := 10*time.Second, 10*time.Minute
	switch c := fn.ErrorCode(code); {
	case c.NeedsSomebody():
		first, longest = 10*time.Minute, time.Hour
	case c.IsExhausted():
		first = time.Minute
	}
	return min(longest, first<<min(max(0, failures-1), 10))
}

// recover ends the backoff of a template that works, or is another one now.
func (p *plan) recover() {
	b := p.Set.Status.Backoff
	switch {
	case b == nil:
	case b.Template != p.templateHash():
	case p.worksAgain(b):
		p.events = append(p.events, shared.Event{Reason: "CreationRecovered", Message: "Machines of the template can be created again"})
	default:
		p.backoff = b
	}
}

// worksAgain when a Machine that was created after the last failure got further than
// the one that failed, or when the set needs none any more.
func (p *plan) worksAgain(b *machinev1alpha1.Backoff) bool {
	failedAt := b.Until.Add(-delayAfter(b.ErrorCode, b.Failures))
	further := func(m Machine) bool {
		if m.CreationTimestamp.Time.Before(failedAt) || !p.proves(m) {
			return false
		}
		return hadNode(m) || failedWithoutVM(b.Reason)
	}
	if slices.ContainsFunc(p.kept, further) {
		return true
	}
	unsure := func(m Machine) bool { return m.Status.Phase.IsOnItsWay() || isFailed(m) && !p.isPreserved(m) }
	return p.missing() == 0 && !slices.ContainsFunc(p.kept, unsure) && !p.now.Before(b.Until.Time)
}

// backOff if this Machine failed because of the template. That is recorded in the same
// status as that the Machine is given up, so that it counts once.
func (p *plan) backOff(m Machine) {
	if m.Status.FailureReason == "" || hadNode(m) || p.isOutdated(m) || m.CreationTimestamp.Time.Before(p.lastSuccess()) {
		return
	}
	b := machinev1alpha1.Backoff{Template: p.templateHash(), ErrorCode: errorCode(m), Message: m.Status.Failure()}
	if p.backoff != nil {
		b = *p.backoff
	}
	b.Failures++
	b.Reason = m.Status.FailureReason
	b.Until = metav1.NewTime(p.now.Add(delayAfter(b.ErrorCode, b.Failures)).UTC().Truncate(time.Second))
	p.backoff = &b
	p.events = append(p.events, backingOffEvent(b))
}

// backingOff means that nothing may be created or replaced yet.
func (p *plan) backingOff() bool {
	return p.backoff != nil && p.now.Before(p.backoff.Until.Time)
}

// templateHash is of what a VM is made from.
func (p *plan) templateHash() string {
	t := p.Set.Spec.Template.Spec
	domain := "any"
	if t.FailureDomain != nil {
		domain = "in " + *t.FailureDomain
	}
	return names.Hash(t.ClassRef.Name, t.Version, t.ClusterRef.Kind, t.ClusterRef.Name, domain)
}

// errorCode is the provider's class of a failure or, if it has none, its reason.
func errorCode(m Machine) string {
	code := ""
	if op := m.Status.LastOperation; op != nil {
		code = op.ErrorCode
	}
	return cmp.Or(code, string(m.Status.FailureReason))
}

func failedWithoutVM(r machinev1alpha1.FailureReason) bool {
	return r == machinev1alpha1.FailureCreateFailed || r == machinev1alpha1.FailureCreateUnknown
}

func backingOffEvent(b machinev1alpha1.Backoff) shared.Event {
	times := "once"
	if b.Failures > 1 {
		times = fmt.Sprintf("%d times in a row", b.Failures)
	}
	return shared.Event{
		Warning: true,
		Reason:  "BackingOff",
		Message: fmt.Sprintf("Creation failed %s, first with %s: the next Machine is created in %s", times, text(b.ErrorCode, b.Message), delayAfter(b.ErrorCode, b.Failures)),
	}
}

func text(code, message string) string {
	if message == "" {
		return code
	}
	return code + ": " + message
}
