// Package aws lists the instances of an account at AWS, and the resources that may be left behind
// beside them.
package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"gopkg.in/ini.v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// pageSize is the most that EC2 lists at once.
	pageSize = 1000
	// maxValues is the most values that a filter of EC2 may have.
	maxValues = 200
	// timeout of all calls of one look.
	timeout = 2 * time.Minute
	// attempts of a call that EC2 throttles or fails. The next look is a retry too.
	attempts = 3
	// maxBackoff is the longest pause between two attempts.
	maxBackoff = 5 * time.Second
)

// Options of an account.
type Options struct {
	// Credentials are a file with the profile default, like ~/.aws/credentials of the aws command.
	// If it is nil, the identity of the pod is used.
	Credentials []byte
	// Endpoint of EC2. The default is that of the region.
	Endpoint string
	// CABundle in PEM format has the authorities that sign the certificate of the endpoint. Default:
	// those that the system trusts.
	CABundle []byte
	// Region whose instances are listed. It is required.
	Region string
}

// New returns a Lister of the instances in a region.
func New(ctx context.Context, o Options) (inventory.Lister, error) {
	if o.Region == "" {
		return nil, errors.New("spec.forProvider.region: required: EC2 lists the instances of one region")
	}
	load := []func(*config.LoadOptions) error{
		config.WithRegion(o.Region),
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(s *retry.StandardOptions) { s.MaxAttempts, s.MaxBackoff = attempts, maxBackoff })
		}),
	}
	if len(o.CABundle) > 0 {
		if _, err := trust.Config(o.CABundle); err != nil {
			return nil, err
		}
		load = append(load, config.WithCustomCABundle(bytes.NewReader(o.CABundle)))
	}
	if o.Credentials != nil {
		static, err := parseCredentials(o.Credentials)
		if err != nil {
			return nil, err
		}
		load = append(load, config.WithCredentialsProvider(static),
			// Files and profiles of the pod must not override the Secret.
			config.WithSharedConfigFiles([]string{}), config.WithSharedCredentialsFiles([]string{}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration of AWS: %w", err)
	}
	return &lister{ec2.NewFromConfig(cfg, func(e *ec2.Options) {
		if o.Endpoint != "" {
			e.BaseEndpoint = &o.Endpoint
		}
	})}, nil
}

// parseCredentials reads the profile default. Errors never contain a part of the content.
func parseCredentials(content []byte) (aws.CredentialsProvider, error) {
	const form = "must be a file of credentials with the profile default, its aws_access_key_id and its aws_secret_access_key"
	f, err := ini.Load(content)
	if err != nil {
		return nil, errors.New(form)
	}
	section, err := f.GetSection("default")
	if err != nil {
		return nil, errors.New(form + ": there is no [default]")
	}
	id, secret := section.Key("aws_access_key_id").String(), section.Key("aws_secret_access_key").String()
	if id == "" || secret == "" {
		return nil, errors.New(form + ": one of the keys is missing")
	}
	return credentials.NewStaticCredentialsProvider(id, secret, section.Key("aws_session_token").String()), nil
}

type lister struct{ *ec2.Client }

var _ interface {
	inventory.ResourceLister
	inventory.Finder
} = &lister{}

// states of instances that exist. EC2 shows an instance for an hour after its end.
var states = []string{"pending", "running", "stopping", "stopped"}

// List the instances of an installation.
func (l *lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return l.describe(ctx, tagged(installation), filter("instance-state-name", states...))
}

// Find the instances with IDs, whatever their tags.
func (l *lister) Find(ctx context.Context, ids []string) ([]inventory.VM, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var all []inventory.VM
	for len(ids) > 0 {
		n := min(len(ids), maxValues)
		// A filter is used because an ID that EC2 does not have is no error then.
		vms, complete, err := l.describe(ctx, filter("instance-id", ids[:n]...), filter("instance-state-name", states...))
		if err != nil || !complete {
			return nil, false, err
		}
		all, ids = append(all, vms...), ids[n:]
	}
	return all, true, nil
}

func (l *lister) describe(ctx context.Context, filters ...types.Filter) ([]inventory.VM, bool, error) {
	pages := ec2.NewDescribeInstancesPaginator(l, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
	var vms []inventory.VM
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				vms = append(vms, vmOf(i))
			}
		}
	}
	return vms, true, nil
}

func vmOf(i types.Instance) inventory.VM {
	vm := inventory.VM{ExternalName: aws.ToString(i.InstanceId), Tags: tagsOf(i.Tags), CreatedAt: aws.ToTime(i.LaunchTime)}
	if i.Placement != nil && aws.ToString(i.Placement.AvailabilityZone) != "" {
		vm.ProviderID = "aws:///" + *i.Placement.AvailabilityZone + "/" + vm.ExternalName
	}
	if i.State == nil {
		return vm
	}
	vm.StateText = "instance state " + string(i.State.Name)
	if i.StateReason != nil && aws.ToString(i.StateReason.Message) != "" {
		vm.StateText += ": " + *i.StateReason.Message
	}
	switch i.State.Name {
	case types.InstanceStateNamePending:
		vm.State = inventory.StatePending
	case types.InstanceStateNameRunning:
		vm.State = inventory.StateRunning
	case types.InstanceStateNameStopping, types.InstanceStateNameStopped:
		vm.State = inventory.StateStopped
	default:
	}
	return vm
}

// ListResources lists network interfaces, volumes and addresses of an installation.
func (l *lister) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var all []inventory.Resource
	for _, list := range []func(context.Context, []types.Filter) ([]inventory.Resource, error){l.networkInterfaces, l.volumes, l.addresses} {
		some, err := list(ctx, []types.Filter{tagged(installation)})
		if err != nil {
			return nil, false, err
		}
		all = append(all, some...)
	}
	return all, true, nil
}

func (l *lister) networkInterfaces(ctx context.Context, filters []types.Filter) ([]inventory.Resource, error) {
	pages := ec2.NewDescribeNetworkInterfacesPaginator(l, &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
	var all []inventory.Resource
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range page.NetworkInterfaces {
			r := inventory.Resource{Type: "NetworkInterface", ID: aws.ToString(n.NetworkInterfaceId), Tags: tagsOf(n.TagSet)}
			if n.Attachment != nil {
				// An interface of a service of AWS has an attachment without an instance.
				r.AttachedTo = firstOf(n.Attachment.InstanceId, n.Attachment.AttachmentId)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func (l *lister) volumes(ctx context.Context, filters []types.Filter) ([]inventory.Resource, error) {
	pages := ec2.NewDescribeVolumesPaginator(l, &ec2.DescribeVolumesInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
	var all []inventory.Resource
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Volumes {
			r := inventory.Resource{Type: "Volume", ID: aws.ToString(v.VolumeId), Tags: tagsOf(v.Tags), CreatedAt: aws.ToTime(v.CreateTime)}
			for _, a := range v.Attachments {
				r.AttachedTo = firstOf(a.InstanceId, a.AssociatedResource)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// addresses has no pages: an account has few.
func (l *lister) addresses(ctx context.Context, filters []types.Filter) ([]inventory.Resource, error) {
	out, err := l.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: filters})
	if err != nil {
		return nil, err
	}
	var all []inventory.Resource
	for _, a := range out.Addresses {
		all = append(all, inventory.Resource{
			Type: "Address", ID: firstOf(a.AllocationId, a.PublicIp), Tags: tagsOf(a.Tags),
			AttachedTo: firstOf(a.InstanceId, a.NetworkInterfaceId, a.AssociationId),
		})
	}
	return all, nil
}

func tagged(installation string) types.Filter {
	return filter("tag:"+machinev1alpha1.TagInstallation, installation)
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

func tagsOf(tags []types.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

// firstOf returns the first value that is not empty.
func firstOf(values ...*string) string {
	for _, v := range values {
		if s := aws.ToString(v); s != "" {
			return s
		}
	}
	return ""
}
