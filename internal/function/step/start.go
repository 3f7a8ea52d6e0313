package step

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Crossplane learns what an XR depends on as its first reconcile ends, of a new XR or
// after Crossplane's own start. What changes between the look of that reconcile and its
// end wakes nobody, and an XR that is at rest would not see for an hour that its Node is
// gone. From the second reconcile on it hands each step at once what the step required
// last: so a step that is called without anything, and requires something, is in the
// first.
const (
	// contextStarted marks a first reconcile.
	contextStarted = "drover.dev/started"

	requirementStart = "start"
	// nothing is the name of a MachineClass that nobody has.
	nothing = "drover.dev.nothing"
)

// RequireStart is for a step that may require nothing else: [MindTheStart] tells a first
// reconcile by it. There is nothing to find, so it costs no watch event.
func (r Response) RequireStart(namespace string) {
	r.RequireByName(requirementStart, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineClassGroupVersionKind.Kind, namespace, nothing)
}

// MindTheStart lets a first reconcile be called again as if something were in flight. It
// never makes the time longer.
func MindTheStart(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	if _, first := req.GetContext().GetFields()[contextStarted]; first {
		Response{rsp}.CallAgain(InFlight)
		return
	}
	if len(req.GetRequiredResources()) == 0 && len(rsp.GetRequirements().GetResources()) > 0 {
		response.SetContextKey(rsp, contextStarted, structpb.NewBoolValue(true))
	}
}
