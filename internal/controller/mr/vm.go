package mr

import (
	"context"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Missing is the condition Ready of a VM that existed and does not exist any more.
func Missing(message string) xpv1.Condition {
	c := xpv1.Unavailable().WithMessage(message)
	c.Reason = machinev1alpha1.ReasonMissing
	return c
}

// NameByUID is an initializer that sets the external name to the UID of the resource. The reconciler
// writes it together with the finalizer; until then, it is derived again with the same result.
func NameByUID(_ context.Context, mg resource.Managed) error {
	if meta.GetExternalName(mg) == "" {
		meta.SetExternalName(mg, string(mg.GetUID()))
	}
	return nil
}
