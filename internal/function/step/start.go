package step

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/plan"
)

// contextStarted marks a first reconcile.
//
// Crossplane learns the requirements of an XR at the end of the XR's first reconcile: of a new XR, or
// after a start of Crossplane. A change between the reads of that reconcile and its end enqueues
// nothing, and an XR at rest would miss it for an hour. From the second reconcile on, the first call
// of a step contains the resources that the step required last. So if a step is called without any,
// and requires some, this is the first reconcile.
const contextStarted = "drover.dev/started"

// MindTheStart requests another call after a first reconcile as soon as if something were in flight.
// It never prolongs the time.
func MindTheStart(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	if _, first := req.GetContext().GetFields()[contextStarted]; first {
		Response{rsp}.CallAgain(plan.InFlight)
		return
	}
	if len(req.GetRequiredResources()) == 0 && len(rsp.GetRequirements().GetResources()) > 0 {
		response.SetContextKey(rsp, contextStarted, structpb.NewBoolValue(true))
	}
}
