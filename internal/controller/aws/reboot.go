package aws

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Reboot reboots an instance that runs, and starts one that is stopped. EC2 has one kind of reboot: it asks the operating
// system, and resets an instance that does not restart within a few minutes. So both modes are the same.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, _ machinev1alpha1.RebootMode) error {
	id := meta.GetExternalName(vm)
	i, shown, err := a.find(ctx, id, a.now())
	if err == nil && !shown {
		err = &native.Error{Class: fn.ErrorTransient, Err: errors.New("instance " + id + " is not shown")}
	}
	if err != nil {
		return native.Refused(err)
	}
	if stateNameOf(i) == types.InstanceStateNameRunning {
		_, err = a.EC2.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: []string{id}})
	} else {
		if err := wait(ctx, a.paces.start); err != nil {
			return err
		}
		_, err = a.EC2.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	}
	return classify("cannot reboot instance "+id, err)
}
