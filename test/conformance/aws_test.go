package conformance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/aws"
	"github.com/drover-dev/drover/test/fakes/awsmodel"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// amazon is AWS: the provider from its package, and a fake of EC2 and of the Security Token Service. Amazon's models judge each
// request of the provider and each response of the fake.
type amazon struct {
	ec2like
	cloud      *aws.Cloud
	violations violations
}

// violations are what Amazon's models refused.
type violations struct {
	mu   sync.Mutex
	list []string
}

func (v *violations) add(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = append(v.list, err.Error())
}

// check fails the test if there are any.
func (v *violations) check(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, text := range v.list {
		t.Errorf("Amazon's model refuses: %s", text)
	}
}

func init() {
	register(&amazon{ec2like: ec2like{
		entry: "aws", refusals: awsRefusals,
		credentials: func(keyID, secret string) map[string]string {
			return map[string]string{"accessKeyID": keyID, "secretAccessKey": secret}
		},
	}})
}

// Backing returns judgedAPI: see the package awsmodel.
func (*amazon) Backing() Backing { return judgedAPI }

func (a *amazon) Install(ctx context.Context, p *kit.Plane) error {
	models, err := awsmodel.Read()
	if err != nil {
		return err
	}
	a.host = newHost(p)
	a.cloud = aws.New(aws.Options{Step: 500 * time.Millisecond, ShownAfter: 200 * time.Millisecond, Boot: a.boot, Stop: a.stop, Reboot: a.reboot})
	a.fake, a.instances = a.cloud, a.list
	a.server = httptest.NewServer(awsmodel.NewJudge(models, a.cloud, a.violations.add))
	return installLifted(ctx, p, "aws")
}

func (a *amazon) list() []ec2Instance {
	var out []ec2Instance
	for _, i := range a.cloud.Instances() {
		out = append(out, ec2Instance{i.ID, i.Account, i.Tags, i.UserData, i.Reboots})
	}
	return out
}

func (a *amazon) boot(b aws.Booted) string {
	texts := map[string]string{"/latest/meta-data/placement/availability-zone": b.Zone, "/latest/meta-data/instance-id": b.ID}
	return a.start(guest.Request{
		ID: a.guestOf(b.ID), Name: b.Name, UserData: b.UserData, ProviderID: "aws:///" + b.Zone + "/" + b.ID,
		Metadata: sessionMetadata(b.ID, "X-aws-ec2-metadata", http.StatusUnauthorized, texts),
	})
}

func (a *amazon) stop(b aws.Booted) { a.end(a.guestOf(b.ID)) }

func (a *amazon) reboot(b aws.Booted) { a.restart(a.guestOf(b.ID)) }

// Account returns an account with the name of the fleet. The fake has no other calls than those that the policy of the example
// allows.
func (a *amazon) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	t.Cleanup(func() { a.violations.check(t) })
	a.cloud.SetKey(keyOf(f.Namespace), aws.Key{Secret: secretOf(f.Namespace), Account: f.Namespace})
	return &amazonAccount{ec2Account: a.newAccount(t, f, awsRegion), cloud: a.cloud}
}

type amazonAccount struct {
	*ec2Account
	cloud *aws.Cloud
}

var (
	_ OrphanAccount     = &amazonAccount{}
	_ ConsoleAccount    = &amazonAccount{}
	_ SpotAccount       = &amazonAccount{}
	_ RebootAccount     = &amazonAccount{}
	_ RestartAccount    = &amazonAccount{}
	_ ThrottlingAccount = &amazonAccount{}
	_ AllocationAccount = &amazonAccount{}
)

// Class returns the class of the example in the account of the fake, for spot VMs with a public address and an IPv6 address.
func (a *amazonAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/aws/machineclass.yaml", a.ProviderConfig())
	for field, value := range map[string]any{
		"imageID": "ami-ubuntu", "subnetID": "subnet-a", "securityGroupIDs": []string{"sg-nodes"}, "iamInstanceProfile": "nodes", "keyName": "ops",
		"subnets":                  []map[string]string{{"availabilityZone": awsRegion + "a", "subnetID": "subnet-a"}, {"availabilityZone": awsRegion + "b", "subnetID": "subnet-b"}},
		"associatePublicIPAddress": true, "ipv6AddressCount": 1, "sourceDestCheck": false,
	} {
		setForProvider(t, c, field, value)
	}
	return c
}

// awsRefusals are the error responses of EC2, by class.
var awsRefusals = map[fn.ErrorCode]aws.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusInternalServerError, Code: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient m7i.large capacity in the Availability Zone you requested (eu-west-1a). Our system will be working on provisioning additional capacity."},
	fn.ErrorQuotaExceeded:     {Status: http.StatusBadRequest, Code: "VcpuLimitExceeded", Message: "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to."},
	fn.ErrorInvalidRequest:    {Status: http.StatusBadRequest, Code: "InvalidGroup.NotFound", Message: "The security group 'sg-nodes' does not exist"},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. Encoded authorization failure message: 4GkN-EXAMPLE"},
	fn.ErrorThrottled:         {Status: http.StatusServiceUnavailable, Code: "RequestLimitExceeded", Message: "Request limit exceeded."},
}

// ShowsFailure returns true: EC2 shows for an hour why it terminated an instance.
func (*amazonAccount) ShowsFailure() bool { return true }

// FailAllocation has RunInstances succeed, and terminates the instance.
func (a *amazonAccount) FailAllocation(_ *testing.T, machine string) {
	a.mend[machine] = a.cloud.Fail(a.fleet.Namespace, machinev1alpha1.TagMachine, machine, "Server.InsufficientInstanceCapacity", "Insufficient capacity to satisfy instance request")
}

// Interrupt announces that EC2 takes back a spot instance, two minutes before it does.
func (a *amazonAccount) Interrupt(_ *testing.T, id string) { a.cloud.Mark(id) }
