package lift

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Behaviour is what upjet cannot know of a Terraform resource.
type Behaviour struct {
	// Ready tells from the state, in Terraform's names, whether the resource
	// does its service. With [xpv2.ReasonCreating] it is looked at often, until
	// it is Ready.
	Ready func(state map[string]any) xpv2.Condition

	// CreationUnknown says whether a creation that ended with the error may
	// have made something. Then it is not tried again. It is not asked if there is
	// Find.
	CreationUnknown func(error) bool

	// Find looks for what an earlier creation made whose answer was lost, and
	// returns its external name, or "". Only a cloud that gives no name twice has
	// it: there a creation may be tried again without making a second VM.
	Find func(context.Context, resource.ModernManaged) (string, error)

	// Gone doubts that what the cloud does not show any more is gone, and says why:
	// the credentials may be those of another account. nil: it is gone. Default:
	// no doubts.
	Gone func(context.Context, resource.ModernManaged) error

	// Immutable resources are never changed, whatever Terraform finds to differ from
	// the spec: a field that only looks different could cost a machine its network.
	Immutable bool

	// Console returns the end of what the VM with the external name wrote to its console. It is
	// called for a VM with the annotation machine.drover.dev/read-console. nil: the resource
	// has no attribute [ConsoleAttribute].
	Console func(ctx context.Context, mg resource.ModernManaged, name string) (string, error)

	// CreationGrace is how long the cloud may deny a resource that it has
	// created. Default 0: never.
	CreationGrace time.Duration
}

func missing(externalName string) xpv2.Condition {
	c := xpv2.Unavailable().WithMessage(externalName + " is no longer there")
	c.Reason = machinev1alpha1.ReasonMissing
	return c
}
