package native

import (
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/drover-dev/drover/internal/controller/mr"
)

// Delays until a VM is observed again.
const (
	// soonest and latest bound the delay while the VM changes. In between, the delay is one part in
	// share of the duration of the change so far: a creation of minutes is not polled every second.
	soonest, latest = time.Second, 15 * time.Second
	share           = 3
	// untilAddresses is the delay while a running VM has no addresses, during patienceForAddresses.
	untilAddresses, patienceForAddresses = 10 * time.Second, 10 * time.Minute
)

// whileChanging returns the delay of a VM that has been changing since a time.
func whileChanging(now, since time.Time) time.Duration {
	return min(max(now.Sub(since)/share, soonest), latest)
}

// report writes the observation to the status.
func report[T Resource](vm T, next step, seen VM) {
	at := vm.Observation()
	at.State, at.StateText = string(seen.State), seen.Text
	if seen.Addresses != nil {
		at.Addresses = seen.Addresses
	}
	switch {
	case meta.WasDeleted(vm):
		vm.SetConditions(xpv2.Deleting())
	case next == stepLost:
		at.Addresses = nil
		vm.SetConditions(mr.Missing(fmt.Sprintf("VM %s no longer exists", meta.GetExternalName(vm))))
	case seen.State == StateRunning:
		if at.ProviderID == "" {
			at.ProviderID = seen.ProviderID
		}
		vm.SetConditions(xpv2.Available())
	case next == stepNone || at.ProviderID != "":
		text := seen.Text
		if text == "" {
			text = string(seen.State)
		}
		vm.SetConditions(xpv2.Unavailable().WithMessage("the VM is " + text))
	default:
		vm.SetConditions(xpv2.Creating())
	}
}

// wake requests a reconcile before the end of the poll interval while the VM changes.
func (x *external[T, C]) wake(vm T, seen VM) {
	switch x.step {
	case stepWait, stepContinue, stepDelete:
		since := meta.GetExternalCreatePending(vm)
		if meta.WasDeleted(vm) {
			since = vm.GetDeletionTimestamp().Time
		}
		if x.note.changed.After(since) {
			since = x.note.changed
		}
		x.again.After(vm, whileChanging(x.now(), since))
	case stepNone:
		since := vm.GetCondition(xpv2.TypeReady).LastTransitionTime
		if seen.State == StateRunning && seen.HasAddresses && len(vm.Observation().Addresses) == 0 && x.now().Sub(since.Time) < patienceForAddresses {
			x.again.After(vm, untilAddresses)
		}
	}
}
