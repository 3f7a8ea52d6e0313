package vsphere

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
)

// report writes the observation to the status.
func (x *external) report(vm *v1alpha1.VirtualMachine, s sight) {
	at := &vm.Status.AtProvider
	switch {
	case s.deleting:
		vm.SetConditions(xpv2.Deleting())
	case x.step == stepLost:
		at.State, at.ConnectionState, at.Addresses = "", "", nil
		vm.SetConditions(mr.Missing(fmt.Sprintf("%s %s is no longer there", at.MoRef, meta.GetExternalName(vm))))
	case s.vm == nil:
		vm.SetConditions(xpv2.Creating())
	case at.ConnectionState == "" && s.powered() && (x.step == stepNone || s.finished):
		if x.step == stepNone && at.BIOSUUID != "" {
			at.ProviderID = providerID(at.BIOSUUID)
		}
		vm.SetConditions(xpv2.Available())
	case !s.finished:
		vm.SetConditions(xpv2.Creating())
	default:
		vm.SetConditions(xpv2.Unavailable().WithMessage(fmt.Sprintf("the VM is %s%s", at.State, connection(at.ConnectionState))))
	}
}

func connection(state string) string {
	if state == "" {
		return ""
	}
	return ", and for the vCenter " + state
}

// wake requests a reconcile before the next poll while a change is expected.
func (x *external) wake(vm *v1alpha1.VirtualMachine, s sight) {
	switch x.step {
	case stepWait, stepCancel:
		x.again.After(vm, whileBusy)
		if s.task == cloneTask || s.cloneMayRun {
			x.again.After(vm, whileCloning)
		}
	case stepNone:
		since := vm.GetCondition(xpv2.TypeReady).LastTransitionTime
		if s.wantOn && len(vm.Status.AtProvider.Addresses) == 0 && x.now().Sub(since.Time) < patienceForAddresses {
			x.again.After(vm, untilAddresses)
		}
	}
}

// providerID returns the providerID of a VM's Node, as vSphere's cloud-controller-manager writes it:
// with the UUID that the guest's BIOS shows, in lower case.
func providerID(biosUUID string) string { return "vsphere://" + strings.ToLower(biosUUID) }

func mayUpdate(vm *v1alpha1.VirtualMachine) bool {
	p := vm.GetManagementPolicies()
	return len(p) == 0 || slices.Contains(p, xpv2.ManagementActionAll) || slices.Contains(p, xpv2.ManagementActionUpdate)
}
