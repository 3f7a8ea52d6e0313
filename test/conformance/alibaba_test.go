package conformance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/alibaba"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// alibabaCloud is Alibaba Cloud: the provider from its package, and a fake of ECS and of the Security Token Service.
type alibabaCloud struct {
	ec2like
	cloud *alibaba.Cloud
}

func init() {
	register(&alibabaCloud{ec2like: ec2like{
		entry: "alibaba", refusals: alibabaRefusals,
		credentials: func(keyID, secret string) map[string]string {
			return map[string]string{"accessKeyID": keyID, "accessKeySecret": secret}
		},
	}})
}

func (a *alibabaCloud) Install(ctx context.Context, p *kit.Plane) error {
	a.host = newHost(p)
	a.cloud = alibaba.New(alibaba.Options{Step: 500 * time.Millisecond, ListedAfter: 200 * time.Millisecond, Boot: a.boot, Stop: a.stop, Reboot: a.reboot})
	a.fake, a.instances = a.cloud, a.list
	a.server = httptest.NewServer(a.cloud)
	return installLifted(ctx, p, "alibaba")
}

func (a *alibabaCloud) list() []ec2Instance {
	var out []ec2Instance
	for _, i := range a.cloud.Instances() {
		out = append(out, ec2Instance{i.ID, i.Account, i.Tags, []byte(i.UserData), i.Reboots})
	}
	return out
}

func (a *alibabaCloud) boot(b alibaba.Booted) string {
	texts := map[string]string{"/latest/meta-data/region-id": b.Region, "/latest/meta-data/instance-id": b.ID, "/latest/meta-data/zone-id": b.Zone}
	return a.start(guest.Request{
		ID: a.guestOf(b.ID), Name: b.Name, UserData: []byte(b.UserData), ProviderID: b.Region + "." + b.ID,
		Metadata: sessionMetadata(b.ID, "X-aliyun-ecs-metadata", http.StatusForbidden, texts),
	})
}

func (a *alibabaCloud) stop(b alibaba.Booted) { a.end(a.guestOf(b.ID)) }

func (a *alibabaCloud) reboot(b alibaba.Booted) { a.restart(a.guestOf(b.ID)) }

// Account returns an account with the name of the fleet. Its RAM user has the rights that
// docs/providers/alibaba.md lists: the fake has no other calls.
func (a *alibabaCloud) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a.cloud.SetKey(keyOf(f.Namespace), alibaba.Key{Secret: secretOf(f.Namespace), Account: f.Namespace})
	return &alibabaAccount{ec2Account: a.newAccount(t, f, "cn-hangzhou"), cloud: a.cloud}
}

type alibabaAccount struct {
	*ec2Account
	cloud *alibaba.Cloud
}

var (
	_ OrphanAccount     = &alibabaAccount{}
	_ ConsoleAccount    = &alibabaAccount{}
	_ SpotAccount       = &alibabaAccount{}
	_ RebootAccount     = &alibabaAccount{}
	_ RestartAccount    = &alibabaAccount{}
	_ ThrottlingAccount = &alibabaAccount{}
)

// Class returns the class of the example, for spot VMs with a public address and an IPv6 address.
func (a *alibabaAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/alibaba/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "internetMaxBandwidthOut", 10)
	setForProvider(t, c, "ipv6AddressCount", 1)
	return c
}

// alibabaRefusals are the error responses of ECS, by class.
var alibabaRefusals = map[fn.ErrorCode]alibaba.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusForbidden, Code: "OperationDenied.NoStock", Message: "Sales of this resource are temporarily suspended in the specified zone. We recommend that you use the multi-zone creation function to avoid the risk of insufficient resource."},
	fn.ErrorQuotaExceeded:     {Status: http.StatusBadRequest, Code: "QuotaExceed.AfterpayInstance", Message: "The maximum number of Pay-As-You-Go instances is exceeded: create ecs vcpu quota per region limited by user quota [0]."},
	fn.ErrorInvalidRequest:    {Status: http.StatusNotFound, Code: "InvalidSecurityGroupId.NotFound", Message: "The specified SecurityGroupId does not exist."},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Code: "Forbidden.RAM", Message: "User not authorized to operate on the specified resource, or this API doesn't support RAM."},
	fn.ErrorThrottled:         {Status: http.StatusBadRequest, Code: "Throttling.User", Message: "Request was denied due to user flow control."},
}

// Interrupt locks a spot instance, as ECS does it before it removes the instance.
func (a *alibabaAccount) Interrupt(_ *testing.T, id string) { a.cloud.Lock(id, "Recycling") }
