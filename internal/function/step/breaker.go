package step

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/plan"
)

// Crossplane's watch circuit breaker drops events of an XR that had too many: with its defaults,
// fifty updates of the XR and of its composed resources, which about a dozen starting Machines cause.
// It then drops events for five minutes, including those of a user's change. It only lets an event
// through that comes at least half a minute after the previous one. It never drops a requeue, nor the
// event that opens it, so a call that finds it open comes before any loss. While it is closed, no
// event is missed. While it is open, a step requests the next call soon, until nothing was written
// for long enough that the next event is let through.
const (
	// soonest is the delay right after a write. The delay grows with the number of composed
	// resources, because each reconcile applies all of them, and with the time since the last write.
	soonest = 300 * time.Millisecond
	// applied is added to the delay per composed resource.
	applied = 10 * time.Millisecond
	// latest is the longest delay for resources that are not settled.
	latest = 10 * time.Second
	// quiet is the time without a write after which the next event is let through: half a minute, and
	// as much again for differing clocks.
	quiet = time.Minute
)

// MindTheBreaker shortens the time until the next call if events may be dropped until then. It never
// prolongs it.
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

// deaf is the delay until the next call if the last write was idle ago.
func deaf(idle time.Duration, composed int) time.Duration {
	return min(max(idle/8, soonest, time.Duration(composed)*applied), latest)
}

// breakerOpen reads Crossplane's condition Responsive, which reports the state of the breaker.
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

// lastWrite is the time of the last write to the objects whose events enqueue the XR: the XR itself,
// its composed resources and the resources that this step requires. The API server records it in the
// managed fields.
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
