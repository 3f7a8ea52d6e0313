package lift

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/ratelimit"
	"github.com/drover-dev/drover/internal/reboot"
)

const (
	// afterReboot is when a VM is observed again after its reboot was requested.
	afterReboot = time.Second
	// whileBusy is when a request is repeated after a refusal that passes.
	whileBusy = 10 * time.Second
)

// repeats are the times before which the requests of VMs are not repeated, by the UID of the VM resource. Each request
// writes the VM resource, which is reconciled again at once because of that. A time that has passed is dropped when another
// one is added.
type repeats struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

func (r *repeats) mayRepeat(uid types.UID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.at[uid])
}

func (r *repeats) delay(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.at, func(_ types.UID, at time.Time) bool { return !now.Before(at) })
	r.at[uid] = now.Add(whileBusy)
}

// reboot carries out a request for a reboot. It reports whether it did: the record replaced the status by that of the API
// server, so that the VM is observed again. It is part of an observation, because the provider may only observe and
// delete a VM that runs. A refusal that passes is no error: the VM was observed.
func (e *external) reboot(ctx context.Context, mg resource.ModernManaged, state map[string]any) (bool, error) {
	if _, ok := reboot.Requested(mg); !ok || e.behaviour.Reboot == nil || meta.GetExternalName(mg) == "" || !e.repeats.mayRepeat(mg.GetUID(), time.Now()) {
		return false, nil
	}
	err := reboot.CarryOut(ctx, mg, e.kube, func(ctx context.Context, mode machinev1alpha1.RebootMode) error {
		return e.behaviour.Reboot(ctx, mg, meta.GetExternalName(mg), mode)
	}, isUnsent)
	if err != nil && isUnsent(err) {
		e.repeats.delay(mg.GetUID(), time.Now())
		e.requeue(mg, whileBusy)
		if err := mg.(ujresource.Terraformed).SetObservation(state); err != nil {
			return false, fmt.Errorf("cannot write status.atProvider: %w", err)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.requeue(mg, afterReboot)
	return true, nil
}

// isUnsent reports whether a request had no effect and is repeated.
func isUnsent(err error) bool { return ratelimit.Unsent(err) || reboot.IsBusy(err) }
