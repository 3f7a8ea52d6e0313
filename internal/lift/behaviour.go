package lift

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Behaviour has the facts about a Terraform resource that upjet cannot know.
type Behaviour struct {
	// Ready returns the condition for a state, in Terraform's names. With [xpv2.ReasonCreating] the resource is
	// polled often, until it is Ready.
	Ready func(state map[string]any) xpv2.Condition

	// CreationUnknown reports whether a creation that ended with the error may have created something. Then it is
	// not retried, unless Find reports that nothing was created. It is optional if there is Find: by default any
	// error leaves the result open then.
	CreationUnknown func(error) bool

	// Find looks for the resource of an earlier creation whose response was lost, and returns its external name,
	// or "" if nothing was created. An error, such as while the cloud may still be creating it, has the search
	// repeated. Only a cloud that can identify the resource has it: there a creation can be retried without a
	// second resource.
	Find func(context.Context, resource.ModernManaged) (string, error)

	// Gone returns a reason to doubt that a resource is gone although the cloud does not show it: the credentials
	// may be those of another account. nil: it is gone. Default: no doubts.
	Gone func(context.Context, resource.ModernManaged) error

	// Deleted is called when the cloud does not show a resource that is being deleted. It deletes the objects that the
	// cloud leaves behind. The managed resource exists until Deleted succeeds. It must tolerate any number of calls.
	// nil: the cloud leaves none behind.
	Deleted func(context.Context, resource.ModernManaged) error

	// Immutable resources are never changed, whatever difference from the spec Terraform finds: a field that only
	// looks different could cost a VM its network.
	Immutable bool

	// Console returns the end of the console output of the VM with the external name. It is called for a VM with
	// the annotation machine.drover.dev/read-console. nil: the resource has no attribute [ConsoleAttribute].
	Console func(ctx context.Context, mg resource.ModernManaged, name string) (string, error)

	// Reboot requests a reboot of the VM with the external name, and does not wait for its end. RebootSoft asks the operating
	// system to restart, RebootHard resets the VM. It is called once for each request. nil: the resource is no VM, or
	// its provider cannot reboot it. A request that the cloud certainly refused for a cause that passes ends with an error of
	// [reboot.Busy] and is repeated; any other error ends the request.
	Reboot func(ctx context.Context, mg resource.ModernManaged, name string, mode machinev1alpha1.RebootMode) error

	// CreationGrace is how long the cloud may report a resource that it has created as not found. Default 0:
	// never.
	CreationGrace time.Duration
}
