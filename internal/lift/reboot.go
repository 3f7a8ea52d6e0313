package lift

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/ratelimit"
	"github.com/drover-dev/drover/internal/reboot"
)

// afterReboot is when a VM is observed again after its reboot was requested.
const afterReboot = time.Second

// reboot carries out a request for a reboot. It reports whether it did: the record replaced the status by that of the API
// server, so that the VM is observed again. It is part of an observation, because the provider may only observe and
// delete a VM that runs.
func (e *external) reboot(ctx context.Context, mg resource.ModernManaged) (bool, error) {
	if _, ok := reboot.Requested(mg); !ok || e.behaviour.Reboot == nil || meta.GetExternalName(mg) == "" {
		return false, nil
	}
	err := reboot.CarryOut(ctx, mg, e.creations, func(ctx context.Context, mode machinev1alpha1.RebootMode) error {
		return e.behaviour.Reboot(ctx, mg, meta.GetExternalName(mg), mode)
	}, ratelimit.Unsent)
	if err != nil {
		return false, err
	}
	e.requeue(mg, afterReboot)
	return true, nil
}
