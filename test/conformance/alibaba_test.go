package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
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
	entry
	guests
	cloud  *alibaba.Cloud
	server *httptest.Server
}

func init() { register(&alibabaCloud{entry: "alibaba"}) }

// ShowsInterruption returns true: an instance that ECS takes back has the lock Recycling.
func (*alibabaCloud) ShowsInterruption() bool { return true }

func (a *alibabaCloud) Install(ctx context.Context, p *kit.Plane) error {
	a.host = newHost(p)
	a.cloud = alibaba.New(alibaba.Options{Step: 500 * time.Millisecond, ListedAfter: 200 * time.Millisecond, Boot: a.boot, Stop: a.stop, Reboot: a.reboot})
	a.server = httptest.NewServer(a.cloud)
	return installLifted(ctx, p, "alibaba")
}

func (a *alibabaCloud) Close() {
	if a.server != nil {
		a.server.Close()
	}
}

func (a *alibabaCloud) boot(b alibaba.Booted) string {
	return a.start(guest.Request{
		ID: "alibaba/" + b.ID, Name: b.Name, UserData: []byte(b.UserData), ProviderID: b.Region + "." + b.ID, Metadata: ecsMetadata(b),
	})
}

func (a *alibabaCloud) stop(b alibaba.Booted) { a.end("alibaba/" + b.ID) }

func (a *alibabaCloud) reboot(b alibaba.Booted) { a.restart("alibaba/" + b.ID) }

// ecsMetadata is the metadata service of an instance with httpTokens required, as the class of the example requests
// it.
func ecsMetadata(b alibaba.Booted) http.Handler {
	token := "token-of-" + b.ID
	texts := map[string]string{"/latest/meta-data/region-id": b.Region, "/latest/meta-data/instance-id": b.ID, "/latest/meta-data/zone-id": b.Zone}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[r.URL.Path]
		switch {
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && r.Header.Get("X-aliyun-ecs-metadata-token-ttl-seconds") != "":
			_, _ = fmt.Fprint(w, token)
		case !ok:
			http.NotFound(w, r)
		case r.Header.Get("X-aliyun-ecs-metadata-token") != token:
			http.Error(w, "403 - Forbidden", http.StatusForbidden)
		default:
			_, _ = fmt.Fprint(w, text)
		}
	})
}

// Account returns an account with the name of the fleet. Its RAM user has the rights that
// docs/providers/alibaba.md lists: the fake has no other calls.
func (a *alibabaCloud) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	out := &alibabaAccount{alibabaCloud: a}
	a.cloud.SetKey(accessKeyOf(f.Namespace), alibaba.Key{Secret: "secret-of-" + f.Namespace, Account: f.Namespace})
	out.liftedAccount = newLiftedAccount(t, f, "alibaba", map[string]any{"region": "cn-hangzhou", "endpoint": a.server.URL, "stsEndpoint": a.server.URL})
	out.SetCredentials(t, CredentialsRight)
	return out
}

func accessKeyOf(fleet string) string { return "LTAI-" + fleet }

type alibabaAccount struct {
	*alibabaCloud
	*liftedAccount
}

var (
	_ OrphanAccount  = &alibabaAccount{}
	_ ConsoleAccount = &alibabaAccount{}
	_ SpotAccount    = &alibabaAccount{}
	_ RebootAccount  = &alibabaAccount{}
)

// Class returns the class of the example, for spot VMs with a public address and an IPv6 address.
func (a *alibabaAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/alibaba/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "internetMaxBandwidthOut", 10)
	setForProvider(t, c, "ipv6AddressCount", 1)
	return c
}

func (a *alibabaAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, i := range a.cloud.Instances() {
		if i.Account == a.fleet.Namespace {
			out = append(out, VM{ID: i.ID, Tags: i.Tags, UserData: []byte(i.UserData)})
		}
	}
	return out, nil
}

// alibabaRefusals are the error responses of ECS, by class.
var alibabaRefusals = map[fn.ErrorCode]alibaba.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusForbidden, Code: "OperationDenied.NoStock", Message: "Sales of this resource are temporarily suspended in the specified zone. We recommend that you use the multi-zone creation function to avoid the risk of insufficient resource."},
	fn.ErrorQuotaExceeded:     {Status: http.StatusBadRequest, Code: "QuotaExceed.AfterpayInstance", Message: "The maximum number of Pay-As-You-Go instances is exceeded: create ecs vcpu quota per region limited by user quota [0]."},
	fn.ErrorInvalidRequest:    {Status: http.StatusNotFound, Code: "InvalidSecurityGroupId.NotFound", Message: "The specified SecurityGroupId does not exist."},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Code: "Forbidden.RAM", Message: "User not authorized to operate on the specified resource, or this API doesn't support RAM."},
	fn.ErrorThrottled:         {Status: http.StatusBadRequest, Code: "Throttling.User", Message: "Request was denied due to user flow control."},
}

func (a *alibabaAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	fault := alibabaRefusals[code]
	fault.Call, fault.Match = "RunInstances", func(project string, body []byte) bool {
		return project == a.fleet.Namespace && hasTag(body, machinev1alpha1.TagMachine, machine)
	}
	a.mend[machine] = a.cloud.Break(fault)
}

// hasTag reports whether a form has a tag.
func hasTag(form []byte, key, value string) bool {
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

// Lose deletes an instance, and its Node as the cloud-controller-manager of Alibaba Cloud does it.
func (a *alibabaAccount) Lose(t *testing.T, id string) {
	t.Helper()
	a.cloud.Lose(id)
	a.deleteNode(t, "alibaba/"+id)
}

func (a *alibabaAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := "secret-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		secret = "not-the-secret-of-any-key"
	}
	a.setSecret(t, c, map[string]string{"accessKeyID": accessKeyOf(a.fleet.Namespace), "accessKeySecret": secret})
}

func (a *alibabaAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	return a.cloud.Create(a.fleet.Namespace, name, tags)
}

// DieAtCreation kills the provider when ECS has accepted the instance.
func (a *alibabaAccount) DieAtCreation(*testing.T) {
	a.cloud.Break(alibaba.Fault{Call: "RunInstances", Times: 1, Lost: true, Then: a.kill, Match: func(project string, _ []byte) bool {
		return project == a.fleet.Namespace
	}})
}

// Leaks returns 0: the provider finds the instance by its tag.
func (*alibabaCloud) Leaks() int { return 0 }

func (a *alibabaAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.cloud.Break(a.throttled(alibabaRefusals[fn.ErrorThrottled], n))
	return func() int { return int(n.Load()) }, end
}

func (a *alibabaAccount) Write(id, line string) { a.cloud.SetConsole(id, line+"\n") }

func (a *alibabaAccount) ConsoleReads(_ context.Context, id string) (int, error) {
	return a.cloud.ConsoleReads(id), nil
}

func (*alibabaAccount) CanInterrupt() bool { return true }

// Interrupt locks a spot instance, as ECS does it before it removes the instance.
func (a *alibabaAccount) Interrupt(_ *testing.T, id string) { a.cloud.Lock(id, "Recycling") }

func (a *alibabaAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	for _, i := range a.cloud.Instances() {
		if i.ID == id {
			return modesOf(i.Reboots), nil
		}
	}
	return nil, fmt.Errorf("there is no instance %s", id)
}
