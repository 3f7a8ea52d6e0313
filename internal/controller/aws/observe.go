package aws

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	cloudaws "github.com/drover-dev/drover/internal/cloud/aws"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// settle is the time after which a list certainly shows an instance that EC2 accepted: the documentation of EC2
	// ("Eventual consistency") recommends to look for up to five minutes.
	settle = 5 * time.Minute
	// listFor is how long a list serves reconciles.
	listFor = 4 * time.Second
	// deletingFor is how long an instance counts as being terminated after EC2 accepted the termination.
	deletingFor = 30 * time.Second
)

// isTerminated reports whether an instance ended. EC2 shows it for about an hour.
func isTerminated(i types.Instance) bool { return stateNameOf(i) == types.InstanceStateNameTerminated }

// list returns the instances of Drover in the account. The list is not older than since.
func (a *account) list(ctx context.Context, since time.Time) ([]types.Instance, error) {
	all, _, err := a.instances.Get(ctx, a.now, since, listFor, func() ([]types.Instance, bool, error) {
		all, err := a.lister.Instances(ctx, cloudaws.Filter("tag-key", tagVM, machinev1alpha1.TagInstallation))
		return all, true, err
	})
	return all, classify("cannot list instances", err)
}

// find returns the instance with the ID, or false if EC2 does not show one.
func (a *account) find(ctx context.Context, id string, since time.Time) (types.Instance, bool, error) {
	i, shown, err := a.findListed(ctx, id, since)
	if err != nil || shown {
		return i, shown, err
	}
	// A user may have removed its tags. A filter is used because an ID that EC2 does not have is no error then.
	all, err := a.lister.Instances(ctx, cloudaws.Filter("instance-id", id))
	if err != nil || len(all) == 0 {
		return types.Instance{}, false, classify("cannot read instance "+id, err)
	}
	return all[0], true, nil
}

// findListed returns the instance with the ID from the list, or false if the list has none.
func (a *account) findListed(ctx context.Context, id string, since time.Time) (types.Instance, bool, error) {
	all, err := a.list(ctx, since)
	if err != nil {
		return types.Instance{}, false, err
	}
	n := slices.IndexFunc(all, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == id })
	if n < 0 {
		return types.Instance{}, false, nil
	}
	return all[n], true, nil
}

// FindLost returns the ID of the instance with the tag of the VM. EC2 sets the tags together with the creation.
func (a *account) FindLost(ctx context.Context, vm *v1alpha1.VirtualMachine) (string, error) {
	all, err := a.list(ctx, meta.GetExternalCreatePending(vm))
	if err != nil {
		return "", err
	}
	for _, i := range all {
		if tagOf(i, tagVM) == string(vm.GetUID()) && !isTerminated(i) {
			return aws.ToString(i.InstanceId), nil
		}
	}
	return "", nil
}

// Get returns the instance of a VM.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (native.VM, error) {
	at, id := &vm.Status.AtProvider, meta.GetExternalName(vm)
	find := a.find
	if at.InstanceID != id && a.isSettling(vm) {
		find = a.findListed // EC2 does not show the instance yet.
	}
	i, shown, err := find(ctx, id, since)
	if err != nil {
		return native.VM{}, err
	}
	if !shown {
		return a.absent(vm, id)
	}
	at.InstanceID, at.AvailabilityZone, at.InstanceType, at.ImageID = id, zoneOf(i), string(i.InstanceType), aws.ToString(i.ImageId)
	at.PrivateDNSName, at.PublicDNSName, at.Lifecycle = aws.ToString(i.PrivateDnsName), aws.ToString(i.PublicDnsName), string(i.InstanceLifecycle)
	if isTerminated(i) {
		return a.terminated(vm, i), nil
	}
	f := facts{
		finished: at.ProviderID != "", created: !meta.GetExternalCreatePending(vm).IsZero(), checks: ptr.Deref(vm.Spec.ForProvider.SourceDestCheck, true),
	}
	if f.notice, err = a.noticeOf(ctx, i); err != nil {
		return native.VM{}, err
	}
	out := native.VM{State: stateOf(i, f), Text: textOf(i), ProviderID: providerID(i), Addresses: addressesOf(i), HasAddresses: true}
	if f.notice != "" {
		out.Text += ", spot request " + f.notice
	}
	if meta.WasDeleted(vm) && (a.deleting.Has(id) || stateNameOf(i) == types.InstanceStateNameShuttingDown) {
		out.State = native.StateDeleting
	}
	a.readConsole(ctx, vm)
	return out, nil
}

// isSettling reports whether EC2 accepted the instance of a VM so recently that it may not show the instance.
func (a *account) isSettling(vm *v1alpha1.VirtualMachine) bool {
	accepted := meta.GetExternalCreateSucceeded(vm)
	return !accepted.IsZero() && a.now().Sub(accepted) < settle
}

// absent returns the state of a VM whose instance EC2 does not show.
func (a *account) absent(vm *v1alpha1.VirtualMachine, id string) (native.VM, error) {
	at := &vm.Status.AtProvider
	at.Console = ""
	if a.isSettling(vm) {
		if at.InstanceID != id {
			return native.VM{State: native.StateCreating, Text: "accepted, not shown yet"}, nil
		}
		return native.VM{}, &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("instance %s is not shown: EC2 is eventually consistent", id), Refused: true}
	}
	return native.VM{}, nil
}

// terminated returns the state of a VM whose instance ended.
func (a *account) terminated(vm *v1alpha1.VirtualMachine, i types.Instance) native.VM {
	at, id := &vm.Status.AtProvider, aws.ToString(i.InstanceId)
	at.Console = ""
	out := native.VM{Text: textOf(i)}
	switch {
	case meta.WasDeleted(vm):
	case at.ProviderID != "" && slices.Contains(spotEnds, reasonOf(i)):
		out.State = native.StateFailed
	case at.ProviderID == "" && !meta.GetExternalCreatePending(vm).IsZero() && at.FailedInstanceID != id:
		at.FailedInstanceID = id
		out.Problem = endOf(i)
	}
	return out
}

// noticeOf returns the status of a spot request that EC2 is about to end, two minutes before it ends the instance.
func (a *account) noticeOf(ctx context.Context, i types.Instance) (string, error) {
	if !isSpot(i) || stateNameOf(i) != types.InstanceStateNameRunning {
		return "", nil
	}
	all, _, err := a.spots.Get(ctx, a.now, time.Time{}, listFor, func() ([]types.SpotInstanceRequest, bool, error) {
		var all []types.SpotInstanceRequest
		pages := ec2.NewDescribeSpotInstanceRequestsPaginator(a.EC2, &ec2.DescribeSpotInstanceRequestsInput{Filters: []types.Filter{
			cloudaws.Filter("status-code", "marked-for-termination", "marked-for-stop"),
		}})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, false, err
			}
			all = append(all, page.SpotInstanceRequests...)
		}
		return all, true, nil
	})
	if err != nil {
		return "", classify("cannot list spot requests", err)
	}
	for _, r := range all {
		if aws.ToString(r.InstanceId) == aws.ToString(i.InstanceId) && r.Status != nil {
			return aws.ToString(r.Status.Code), nil
		}
	}
	return "", nil
}

// readConsole reads the console of a VM while a Machine requests it. A failure does not fail the observation.
func (a *account) readConsole(ctx context.Context, vm *v1alpha1.VirtualMachine) {
	at := &vm.Status.AtProvider
	if vm.GetAnnotations()[machinev1alpha1.AnnotationReadConsole] != "true" || meta.WasDeleted(vm) {
		at.Console = ""
		return
	}
	out, err := a.EC2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &at.InstanceID, Latest: aws.Bool(true)})
	if hasCode(err, codeUnsupported) { // Only instances on the Nitro System have the latest output.
		out, err = a.EC2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &at.InstanceID})
	}
	if err != nil {
		return
	}
	if text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output)); err == nil {
		at.Console = console.Excerpt(string(text))
	}
}

// Continue switches off the source/destination check, which RunInstances cannot do.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, _ native.UserData) error {
	id := meta.GetExternalName(vm)
	i, shown, err := a.find(ctx, id, time.Time{})
	if err != nil || !shown {
		return err
	}
	for _, n := range withCheck(i) {
		_, err := a.EC2.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{
			NetworkInterfaceId: aws.String(n), SourceDestCheck: &types.AttributeBooleanValue{Value: aws.Bool(false)},
		})
		if err != nil {
			return classify("cannot switch off the source/destination check of network interface "+n, err)
		}
	}
	return nil
}

// Delete terminates the instance. EC2 deletes its volumes and network interfaces with it, except volumes with
// deleteOnTermination false.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	id := meta.GetExternalName(vm)
	if a.deleting.Has(id) {
		return nil
	}
	_, err := a.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	// An instance that was accepted a moment ago may not be found yet: Get reports when it is gone.
	if err != nil && !hasCode(err, codeNoInstance) {
		return classify("cannot terminate instance "+id, err)
	}
	if err == nil {
		a.deleting.Add(id)
	}
	return nil
}
