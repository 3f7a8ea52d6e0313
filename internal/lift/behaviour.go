package lift

import (
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
)

// ReasonMissing is the reason of a False Ready condition: the external resource
// was there and is no more. It is never created again under the same name. Synced
// is False then too.
const ReasonMissing xpv1.ConditionReason = "Missing"

// Behaviour is what upjet cannot know of a Terraform resource.
type Behaviour struct {
	// Ready tells from the state, in Terraform's names, whether the resource
	// does its service. With [xpv1.ReasonCreating] it is looked at often, until
	// it is Ready.
	Ready func(state map[string]any) xpv1.Condition

	// CreationUnknown says whether a creation that ended with the error may
	// have made something. Then it is not tried again.
	CreationUnknown func(error) bool

	// CreationGrace is how long the cloud may deny a resource that it has
	// created. Default 0: never.
	CreationGrace time.Duration
}

func missing(externalName string) xpv1.Condition {
	c := xpv1.Unavailable().WithMessage(externalName + " is no longer there")
	c.Reason = ReasonMissing
	return c
}
