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
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
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
	// If Credentials and Keys are nil, the identity of the pod is used.
	Credentials []byte
	// Keys are credentials that are not in a file.
	Keys *Keys
	// Role is assumed with the credentials. Default: none.
	Role Role
	// Endpoint of EC2, and STSEndpoint of the Security Token Service. The default is that of the region.
	Endpoint, STSEndpoint string
	// CABundle in PEM format has the authorities that sign the certificate of the endpoint. Default:
	// those that the system trusts.
	CABundle []byte
	// Region whose instances are listed. It is required.
	Region string
	// Client sends the calls. Default: one of the SDK.
	Client aws.HTTPClient
	// Once means that a call that fails is not repeated. Default: three attempts.
	Once bool
}

// Keys are an access key, and the token of a session if it is temporary.
type Keys struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// A Role is assumed for an hour at a time.
type Role struct {
	ARN string
	// ExternalID that the trust policy of the role requires. Default: none.
	ExternalID string
}

// roleSession is the name of the sessions of an assumed role in CloudTrail.
const roleSession = "drover"

// New returns a Lister of the instances in a region.
func New(ctx context.Context, o Options) (inventory.Lister, error) {
	if o.Region == "" {
		return nil, errors.New("spec.forProvider.region: required: EC2 lists the instances of one region")
	}
	c, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Lister{c.EC2}, nil
}

// Clients are the clients of the APIs of AWS.
type Clients struct {
	EC2 *ec2.Client
	STS *sts.Client
}

// Connect returns the clients of an account. It makes no call.
func Connect(ctx context.Context, o Options) (Clients, error) {
	cfg, err := o.config(ctx)
	if err != nil {
		return Clients{}, err
	}
	if o.Role.ARN != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(o.sts(cfg), o.Role.ARN, func(a *stscreds.AssumeRoleOptions) {
			a.RoleSessionName, a.Duration = roleSession, time.Hour
			if o.Role.ExternalID != "" {
				a.ExternalID = &o.Role.ExternalID
			}
		}), func(c *aws.CredentialsCacheOptions) { c.ExpiryWindow = roleMargin })
	}
	return Clients{STS: o.sts(cfg), EC2: ec2.NewFromConfig(cfg, func(e *ec2.Options) {
		if o.Endpoint != "" {
			e.BaseEndpoint = &o.Endpoint
		}
	})}, nil
}

// config returns the configuration of the SDK.
func (o Options) config(ctx context.Context) (aws.Config, error) {
	if len(o.CABundle) > 0 {
		if _, err := trust.Config(o.CABundle); err != nil {
			return aws.Config{}, err
		}
	}
	static, err := o.static()
	if err != nil {
		return aws.Config{}, err
	}
	if static != nil && o.Client != nil {
		// Nothing of the pod's environment counts.
		return aws.Config{Region: o.Region, Credentials: aws.NewCredentialsCache(static), HTTPClient: o.Client, Retryer: o.retryer}, nil
	}
	load := []func(*config.LoadOptions) error{config.WithRegion(o.Region), config.WithRetryer(o.retryer)}
	if len(o.CABundle) > 0 {
		load = append(load, config.WithCustomCABundle(bytes.NewReader(o.CABundle)))
	}
	if static != nil {
		load = append(load, config.WithCredentialsProvider(static),
			// Files and profiles of the pod must not override the Secret.
			config.WithSharedConfigFiles([]string{}), config.WithSharedCredentialsFiles([]string{}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("cannot load the configuration of AWS: %w", err)
	}
	if o.Client != nil {
		cfg.HTTPClient = o.Client
	}
	return cfg, nil
}

// roleMargin is the time before the end of a session at which a role is assumed again.
const roleMargin = 5 * time.Minute

func (o Options) retryer() aws.Retryer {
	if o.Once {
		return aws.NopRetryer{}
	}
	return retry.NewStandard(func(s *retry.StandardOptions) { s.MaxAttempts, s.MaxBackoff = attempts, maxBackoff })
}

func (o Options) sts(cfg aws.Config) *sts.Client {
	return sts.NewFromConfig(cfg, func(s *sts.Options) {
		if o.STSEndpoint != "" {
			s.BaseEndpoint = &o.STSEndpoint
		}
	})
}

// static returns the credentials of the options, or nil if they have none.
func (o Options) static() (aws.CredentialsProvider, error) {
	switch {
	case o.Keys != nil:
		return credentials.NewStaticCredentialsProvider(o.Keys.AccessKeyID, o.Keys.SecretAccessKey, o.Keys.SessionToken), nil
	case o.Credentials != nil:
		return parseCredentials(o.Credentials)
	}
	return nil, nil
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

// A Lister lists the instances of an account in a region, and the resources beside them.
type Lister struct{ *ec2.Client }

var _ interface {
	inventory.ResourceLister
	inventory.Finder
} = &Lister{}

// states of instances that exist. EC2 shows an instance for an hour after its end.
var states = []string{"pending", "running", "stopping", "stopped"}

// List the instances of an installation.
func (l *Lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return l.describe(ctx, tagged(installation), Filter("instance-state-name", states...))
}

// Find the instances with IDs, whatever their tags.
func (l *Lister) Find(ctx context.Context, ids []string) ([]inventory.VM, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var all []inventory.VM
	for len(ids) > 0 {
		n := min(len(ids), maxValues)
		// A filter is used because an ID that EC2 does not have is no error then.
		vms, complete, err := l.describe(ctx, Filter("instance-id", ids[:n]...), Filter("instance-state-name", states...))
		if err != nil || !complete {
			return nil, false, err
		}
		all, ids = append(all, vms...), ids[n:]
	}
	return all, true, nil
}

func (l *Lister) describe(ctx context.Context, filters ...types.Filter) ([]inventory.VM, bool, error) {
	instances, err := l.Instances(ctx, filters...)
	if err != nil {
		return nil, false, err
	}
	var vms []inventory.VM
	for _, i := range instances {
		vms = append(vms, vmOf(i))
	}
	return vms, true, nil
}

// Instances that the filters select, in all states, from all pages.
func (l *Lister) Instances(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	pages := ec2.NewDescribeInstancesPaginator(l, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
	var all []types.Instance
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			all = append(all, r.Instances...)
		}
	}
	return all, nil
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
func (l *Lister) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
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

func (l *Lister) networkInterfaces(ctx context.Context, filters []types.Filter) ([]inventory.Resource, error) {
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

func (l *Lister) volumes(ctx context.Context, filters []types.Filter) ([]inventory.Resource, error) {
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
func (l *Lister) addresses(ctx context.Context, filters []types.Filter) ([]inventory.Resource, error) {
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
	return Filter("tag:"+machinev1alpha1.TagInstallation, installation)
}

// Filter selects by one of the values.
func Filter(name string, values ...string) types.Filter {
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
