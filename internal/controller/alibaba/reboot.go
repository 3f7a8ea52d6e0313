package alibaba

import (
	"context"
	"errors"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Reboot reboots an instance that runs, and starts any other one. ECS refuses both while the instance changes its state,
// which is an error without effect.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	id := meta.GetExternalName(vm)
	i, exists, err := a.batch.get(ctx, id)
	if err == nil && !exists {
		err = &native.Error{Class: fn.ErrorTransient, Err: errors.New("instance " + id + " is not listed")}
	}
	if err != nil {
		return native.Refused(err)
	}
	action, params := "StartInstance", map[string]string{"InstanceId": id}
	if i.Status == statusRunning {
		action, params["ForceStop"] = "RebootInstance", strconv.FormatBool(mode == machinev1alpha1.RebootHard)
	}
	return classify("cannot reboot instance "+id, a.callRegion(ctx, action, params, &struct{}{}))
}
