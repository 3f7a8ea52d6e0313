package step

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
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
	// Deaf is for what is not settled while the breaker is open.
	Deaf = 2 * time.Second
	// Settling is for what is settled, but was written to so lately that the open
	// breaker may have dropped an event since.
	Settling = 10 * time.Second
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
	switch {
	case most <= InFlight:
		most = min(most, Deaf)
	case now.Sub(lastWrite(req)) < quiet:
		most = min(most, Settling)
	}
	rsp.GetMeta().Ttl = durationpb.New(most)
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
