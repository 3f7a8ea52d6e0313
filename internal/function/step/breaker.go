package step

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/plan"
)

// Crossplane's watch circuit breaker drops events of an XR that had too many: with
// its defaults, fifty updates of the XR and of what it composes, a matter of a dozen
// Machines that come up. It then drops events for five minutes, those of a user's
// own change too, save for one at least half a minute after the last that it let
// through. But it never drops a requeue, and never the event that opens it: whatever
// it drops, a call that sees it open comes first. So while it is closed nothing is
// missed, and while it is open a step asks to be called again soon, until all has
// been quiet for long enough that the next event is let through.
const (
	// soonest is for what happened just now. The time until the next call grows with
	// what the XR composes, since each reconcile applies all of that, and with the
	// time since anything was written to it.
	soonest = 300 * time.Millisecond
	// applied is what each composed resource adds.
	applied = 10 * time.Millisecond
	// latest is for what nobody has written to for long, and is not settled.
	latest = 10 * time.Second
	// quiet is for how long nobody may have written until the next event is let
	// through: half a minute, and as much for clocks that differ.
	quiet = time.Minute
)

// MindTheBreaker shortens the time until the next call where events may be dropped
// until then. It never makes it longer.
func MindTheBreaker(now time.Time, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	most := rsp.GetMeta().GetTtl().AsDuration()
	if !breakerOpen(req) {
		return
	}
	idle := now.Sub(lastWrite(req))
	if most > plan.InFlight && idle >= quiet {
		return
	}
	rsp.GetMeta().Ttl = durationpb.New(min(most, deaf(idle, len(rsp.GetDesired().GetResources()))))
}

// deaf is when to look again at what was last written to idle ago.
func deaf(idle time.Duration, composed int) time.Duration {
	return min(max(idle/8, soonest, time.Duration(composed)*applied), latest)
}

// breakerOpen reads the condition in which Crossplane says so.
func breakerOpen(req *fnv1.RunFunctionRequest) bool {
	status := req.GetObserved().GetComposite().GetResource().GetFields()["status"].GetStructValue()
	for _, c := range status.GetFields()["conditions"].GetListValue().GetValues() {
		f := c.GetStructValue().GetFields()
		if f["type"].GetStringValue() == "Responsive" {
			return f["status"].GetStringValue() == "False"
		}
	}
	return false
}

// lastWrite is when anybody last changed what wakes the XR: itself, what it
// composes and what this step requires, as the API server notes it in the managed
// fields.
func lastWrite(req *fnv1.RunFunctionRequest) time.Time {
	last := writtenAt(req.GetObserved().GetComposite().GetResource())
	for _, r := range req.GetObserved().GetResources() {
		if t := writtenAt(r.GetResource()); t.After(last) {
			last = t
		}
	}
	for _, required := range req.GetRequiredResources() {
		for _, r := range required.GetItems() {
			if t := writtenAt(r.GetResource()); t.After(last) {
				last = t
			}
		}
	}
	return last
}

func writtenAt(s *structpb.Struct) time.Time {
	var last time.Time
	meta := s.GetFields()["metadata"].GetStructValue()
	for _, m := range meta.GetFields()["managedFields"].GetListValue().GetValues() {
		t, err := time.Parse(time.RFC3339, m.GetStructValue().GetFields()["time"].GetStringValue())
		if err == nil && t.After(last) {
			last = t
		}
	}
	return last
}
