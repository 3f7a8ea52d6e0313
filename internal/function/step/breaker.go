package step

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Crossplane's watch circuit breaker drops events of an XR that had too many: with
// its defaults, fifty updates of the XR and of what it composes, a matter of three
// Machines that come up. It then drops all events for five minutes, those of a
// user's own change too, but it never drops a requeue. So while the breaker is open,
// and as long as it may be about to open, a step asks to be called again soon.
const (
	// Deaf is for what is not settled while the breaker is open.
	Deaf = 2 * time.Second
	// Settling is for what is settled, but was written to so lately that the
	// breaker may have opened since.
	Settling = 10 * time.Second
	// breakerMemory is for how long a write may keep the breaker open: five
	// minutes, and what a slow clock adds.
	breakerMemory = 6 * time.Minute
)

// MindTheBreaker shortens the time until the next call where events may be dropped
// until then. It never makes it longer.
func MindTheBreaker(now time.Time, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	most := rsp.GetMeta().GetTtl().AsDuration()
	open := breakerOpen(req)
	if !open && most <= Settling {
		return
	}
	switch {
	case open && most <= InFlight:
		most = min(most, Deaf)
	case open, now.Sub(lastWrite(req)) < breakerMemory:
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

// lastWrite is when anybody last changed the XR or what it composes, as the API
// server notes it in the managed fields.
func lastWrite(req *fnv1.RunFunctionRequest) time.Time {
	last := writtenAt(req.GetObserved().GetComposite().GetResource())
	for _, r := range req.GetObserved().GetResources() {
		if t := writtenAt(r.GetResource()); t.After(last) {
			last = t
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
