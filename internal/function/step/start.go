package step

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/plan"
)

// contextStarted marks a first reconcile.
//
// Crossplane learns the requirements of an XR when the XR's first reconcile ends: of a new
// XR, or after Crossplane's own start. A change between the reads of that reconcile and its
// end enqueues nothing, and an XR at rest would miss it for an hour. From the second
// reconcile on, the first call of a step contains what the step required last. So a step
// that is called with nothing, and requires something, is in its first reconcile.
const contextStarted = "drover.dev/started"

// MindTheStart lets a first reconcile be called again as if something were in flight. It
// never makes the time longer.
func MindTheStart(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	if _, first := req.GetContext().GetFields()[contextStarted]; first {
		Response{rsp}.CallAgain(plan.InFlight)
		return
	}
	if len(req.GetRequiredResources()) == 0 && len(rsp.GetRequirements().GetResources()) > 0 {
		response.SetContextKey(rsp, contextStarted, structpb.NewBoolValue(true))
	}
}
