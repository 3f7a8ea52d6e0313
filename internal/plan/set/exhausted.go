package set

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// exhaustionLasts is how long the exhaustion lasts if no Machine waits for a VM any more whose creation
// could show that there is room again. A client that went to another failure domain must not return at
// once, and leave again.
const exhaustionLasts = 10 * time.Minute

// exhaust records whether the cloud has room for another Machine of the template. Exhaustion holds the set
// back no more than any other failure: one Machine keeps trying.
func (p *plan) exhaust() {
	before := p.Set.Status.Exhausted
	if before != nil && before.FailureDomain != p.failureDomain() {
		before = nil
	}
	code, message := p.outOfRoom()
	switch {
	case code != "":
		e := machinev1alpha1.Exhaustion{FailureDomain: p.failureDomain(), Code: code, Since: metav1.NewTime(p.now.UTC().Truncate(time.Second))}
		if before != nil {
			e.Since = before.Since
		}
		p.exhausted, p.exhaustedBy = &e, message
		if before == nil || before.Code != code {
			p.events = append(p.events, shared.Event{Warning: true, Reason: code, Message: inDomain(e.FailureDomain) + ": " + message})
		}
	case before == nil:
	case p.hasRoomSince(before.Since):
		p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventExhaustionEnded, Message: inDomain(before.FailureDomain) + ": VMs can be created again"})
	default:
		e := *before
		if e.Until == nil {
			e.Until = ptr.To(metav1.NewTime(p.now.Add(exhaustionLasts).UTC().Truncate(time.Second)))
		}
		if p.now.Before(e.Until.Time) {
			p.exhausted = &e
			return
		}
		p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventExhaustionEnded, Message: inDomain(e.FailureDomain) + ": worth another try"})
	}
}

// outOfRoom returns the code and the message of an error that means exhaustion: the error of a Machine that
// waits for its VM, or of the last failed attempt. Both are empty if there is none.
func (p *plan) outOfRoom() (code, message string) {
	for _, m := range p.all() {
		if isInFlight(m) && !p.isOutdated(m) && fn.ErrorCode(errorCode(m)).IsExhausted() {
			return errorCode(m), fmt.Sprintf("Machine %s: %s", m.Name, m.Status.LastOperation.Description)
		}
	}
	if b := p.backoff; b != nil && fn.ErrorCode(b.ErrorCode).IsExhausted() {
		return b.ErrorCode, b.Message
	}
	return "", ""
}

// hasRoomSince reports whether a Machine of the template got its VM after that time.
func (p *plan) hasRoomSince(since metav1.Time) bool {
	for _, m := range p.all() {
		if p.proves(m, machinev1alpha1.FailureCreateFailed) && (m.CreationTimestamp.After(since.Time) || m.Status.RefusedUntil != nil && !m.Status.RefusedUntil.Before(&since)) {
			return true
		}
	}
	return false
}
