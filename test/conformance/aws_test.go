package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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
	entry
	guests
	cloud  *aws.Cloud
	server *httptest.Server

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

func init() { register(&amazon{entry: "aws"}) }

// Backing returns judgedAPI: see the package awsmodel.
func (*amazon) Backing() Backing { return judgedAPI }

// ShowsInterruption returns true: EC2 announces that it takes back a spot instance.
func (*amazon) ShowsInterruption() bool { return true }

func (a *amazon) Install(ctx context.Context, p *kit.Plane) error {
	models, err := awsmodel.Read()
	if err != nil {
		return err
	}
	a.host = newHost(p)
	a.cloud = aws.New(aws.Options{Step: 500 * time.Millisecond, ShownAfter: 200 * time.Millisecond, Boot: a.boot, Stop: a.stop, Reboot: a.reboot})
	a.server = httptest.NewServer(awsmodel.NewJudge(models, a.cloud, a.violations.add))
	return installLifted(ctx, p, "aws")
}

func (a *amazon) Close() {
	if a.server != nil {
		a.server.Close()
	}
}

func (a *amazon) boot(b aws.Booted) string {
	return a.start(guest.Request{
		ID: "aws/" + b.ID, Name: b.Name, UserData: b.UserData, ProviderID: "aws:///" + b.Zone + "/" + b.ID, Metadata: imds(b),
	})
}

func (a *amazon) stop(b aws.Booted) { a.end("aws/" + b.ID) }

func (a *amazon) reboot(b aws.Booted) { a.restart("aws/" + b.ID) }

// imds is the metadata service of an instance that requires a session token, as the class of the example requests it.
func imds(b aws.Booted) http.Handler {
	token := "token-of-" + b.ID
	texts := map[string]string{"/latest/meta-data/placement/availability-zone": b.Zone, "/latest/meta-data/instance-id": b.ID}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[r.URL.Path]
		switch {
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "":
			_, _ = fmt.Fprint(w, token)
		case !ok:
			http.NotFound(w, r)
		case r.Header.Get("X-aws-ec2-metadata-token") != token:
			http.Error(w, "401 - Unauthorized", http.StatusUnauthorized)
		default:
			_, _ = fmt.Fprint(w, text)
		}
	})
}

// Account returns an account with the name of the fleet. The fake has no other calls than those that the policy of the example
// allows.
func (a *amazon) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	out := &amazonAccount{amazon: a}
	t.Cleanup(func() { a.violations.check(t) })
	a.cloud.SetKey(awsKeyOf(f.Namespace), aws.Key{Secret: "secret-of-" + f.Namespace, Account: f.Namespace})
	out.liftedAccount = newLiftedAccount(t, f, "aws", map[string]any{"region": awsRegion, "endpoint": a.server.URL, "stsEndpoint": a.server.URL})
	out.SetCredentials(t, CredentialsRight)
	return out
}

func awsKeyOf(fleet string) string { return "AKIA-" + fleet }

type amazonAccount struct {
	*amazon
	*liftedAccount
}

var (
	_ OrphanAccount     = &amazonAccount{}
	_ ConsoleAccount    = &amazonAccount{}
	_ SpotAccount       = &amazonAccount{}
	_ RebootAccount     = &amazonAccount{}
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

func (a *amazonAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, i := range a.cloud.Instances() {
		if i.Account == a.fleet.Namespace {
			out = append(out, VM{ID: i.ID, Tags: i.Tags, UserData: i.UserData})
		}
	}
	return out, nil
}

// awsRefusals are the error responses of EC2, by class.
var awsRefusals = map[fn.ErrorCode]aws.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusInternalServerError, Code: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient m7i.large capacity in the Availability Zone you requested (eu-west-1a). Our system will be working on provisioning additional capacity."},
	fn.ErrorQuotaExceeded:     {Status: http.StatusBadRequest, Code: "VcpuLimitExceeded", Message: "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to."},
	fn.ErrorInvalidRequest:    {Status: http.StatusBadRequest, Code: "InvalidGroup.NotFound", Message: "The security group 'sg-nodes' does not exist"},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. Encoded authorization failure message: 4GkN-EXAMPLE"},
	fn.ErrorThrottled:         {Status: http.StatusServiceUnavailable, Code: "RequestLimitExceeded", Message: "Request limit exceeded."},
}

func (a *amazonAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	fault := awsRefusals[code]
	fault.Call, fault.Match = "RunInstances", func(account string, body []byte) bool {
		return account == a.fleet.Namespace && hasEC2Tag(body, machinev1alpha1.TagMachine, machine)
	}
	a.mend[machine] = a.cloud.Break(fault)
}

// hasEC2Tag reports whether a form has a tag.
func hasEC2Tag(form []byte, key, value string) bool {
	params, err := url.ParseQuery(string(form))
	if err != nil {
		return false
	}
	for k := range params {
		if n, ok := strings.CutSuffix(k, ".Key"); ok && params.Get(k) == key && params.Get(n+".Value") == value {
			return true
		}
	}
	return false
}

// ShowsFailure returns true: EC2 shows for an hour why it terminated an instance.
func (*amazonAccount) ShowsFailure() bool { return true }

// FailAllocation has RunInstances succeed, and terminates the instance.
func (a *amazonAccount) FailAllocation(_ *testing.T, machine string) {
	a.mend[machine] = a.cloud.Fail(a.fleet.Namespace, machinev1alpha1.TagMachine, machine, "Server.InsufficientInstanceCapacity", "Insufficient capacity to satisfy instance request")
}

// Lose terminates an instance, and deletes its Node as the cloud-controller-manager of AWS does it.
func (a *amazonAccount) Lose(t *testing.T, id string) {
	t.Helper()
	a.cloud.Lose(id)
	a.deleteNode(t, "aws/"+id)
}

func (a *amazonAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := "secret-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		secret = "not-the-secret-of-any-key"
	}
	a.setSecret(t, c, map[string]string{"accessKeyID": awsKeyOf(a.fleet.Namespace), "secretAccessKey": secret})
}

func (a *amazonAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	return a.cloud.Create(a.fleet.Namespace, name, tags)
}

// DieAtCreation kills the provider when EC2 has accepted the instance.
func (a *amazonAccount) DieAtCreation(*testing.T) {
	a.cloud.Break(aws.Fault{Call: "RunInstances", Times: 1, Lost: true, Then: a.kill, Match: func(account string, _ []byte) bool {
		return account == a.fleet.Namespace
	}})
}

// Leaks returns 0: the provider finds the instance by its tag.
func (*amazon) Leaks() int { return 0 }

func (a *amazonAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.cloud.Break(a.throttled(awsRefusals[fn.ErrorThrottled], n))
	return func() int { return int(n.Load()) }, end
}

func (a *amazonAccount) Write(id, line string) { a.cloud.SetConsole(id, line+"\n") }

func (a *amazonAccount) ConsoleReads(_ context.Context, id string) (int, error) {
	return a.cloud.ConsoleReads(id), nil
}

func (*amazonAccount) CanInterrupt() bool { return true }

// Interrupt announces that EC2 takes back a spot instance, two minutes before it does.
func (a *amazonAccount) Interrupt(_ *testing.T, id string) { a.cloud.Mark(id) }

func (a *amazonAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	for _, i := range a.cloud.Instances() {
		if i.ID == id {
			return modesOf(i.Reboots), nil
		}
	}
	return nil, fmt.Errorf("there is no instance %s", id)
}
