package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/cloud"
	"github.com/drover-dev/drover/cluster/cloud/internal/guest"
	"github.com/drover-dev/drover/cluster/cloud/internal/real"
)

type noGuests struct{}

func (noGuests) Start(guest.VM, guest.Host) {}
func (noGuests) Stop(string)                {}

type noMachines struct{}

func (noMachines) ImageNames() ([]string, error) { return nil, nil }
func (noMachines) Start(real.VM, real.Host)      {}
func (noMachines) Stop(string)                   {}
func (noMachines) Delete(string)                 {}
func (noMachines) Keep([]string) error           { return nil }

func serve(t *testing.T) (url string, client *localcloud.Client, clock *clocktesting.FakeClock) {
	t.Helper()
	clock = clocktesting.NewFakeClock(time.Unix(1e9, 0))
	log := slog.New(slog.DiscardHandler)
	c, err := cloud.Open(t.TempDir(), localcloud.Settings{BootTime: localcloud.Duration(2 * time.Second)}, noGuests{}, noMachines{}, clock, log)
	must(t, err)
	srv := httptest.NewServer(New(c, "secret", clock, log))
	t.Cleanup(srv.Close)
	client, err = localcloud.NewClient(srv.URL, "secret")
	must(t, err)
	return srv.URL, client, clock
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachCallOfTheSDK(t *testing.T) {
	ctx := context.Background()
	_, c, clock := serve(t)
	vm, err := c.CreateVM(ctx, localcloud.CreateVMRequest{Name: "a", Image: localcloud.ImageDebian12, Size: localcloud.SizeSmall,
		Zone: "zone-b", UserData: []byte("secret"), Tags: map[string]string{"k": "v=w"}})
	must(t, err)
	got, err := c.GetVM(ctx, vm.ID)
	must(t, err)
	if got.Name != "a" || got.Zone != "zone-b" || got.ProviderID != "local:///zone-b/"+vm.ID || got.State != localcloud.StateRunning {
		t.Errorf("VM %+v", got)
	}
	list, err := c.ListVMs(ctx, localcloud.ListVMsOptions{Name: "a", Tags: map[string]string{"k": "v=w"}})
	must(t, err)
	if d := cmp.Diff([]localcloud.VM{*got}, list); d != "" {
		t.Errorf("list (-want +got):\n%s", d)
	}
	tagged, err := c.UpdateVM(ctx, vm.ID, localcloud.UpdateVMRequest{Tags: map[string]string{"new": "1"}})
	must(t, err)
	if d := cmp.Diff(map[string]string{"new": "1"}, tagged.Tags); d != "" {
		t.Errorf("tags (-want +got):\n%s", d)
	}
	console, err := c.Console(ctx, vm.ID)
	must(t, err)
	if !strings.Contains(console, "created VM "+vm.ID) {
		t.Errorf("console %q", console)
	}
	// The VM has not booted for the first time yet.
	if err := c.RebootVM(ctx, vm.ID); localcloud.CodeOf(err) != localcloud.CodeInvalidRequest {
		t.Errorf("error %v, want InvalidRequest", err)
	}
	clock.Step(time.Minute)
	must(t, c.RebootVM(ctx, vm.ID))
	must(t, c.DeleteVM(ctx, vm.ID))
	if _, err := c.GetVM(ctx, vm.ID); !localcloud.IsNotFound(err) {
		t.Errorf("error %v, want NotFound", err)
	}

	images, err := c.ListImages(ctx)
	must(t, err)
	if len(images) != 2 || images[0].Name != localcloud.ImageDebian12 {
		t.Errorf("images %v", images)
	}
	quota, err := c.SetQuota(ctx, localcloud.Quota{VMs: 3})
	must(t, err)
	if again, err := c.GetQuota(ctx); err != nil || *again != *quota || quota.VMs != 3 {
		t.Errorf("quota %v, then %v, %v", quota, again, err)
	}
	set, err := c.SetSettings(ctx, localcloud.Settings{CreateTime: localcloud.Duration(time.Minute), RateLimit: 9})
	must(t, err)
	if again, err := c.GetSettings(ctx); err != nil || *again != *set || set.RateLimit != 9 || set.BootTime != 0 {
		t.Errorf("settings %v, then %v, %v", set, again, err)
	}
	fault, err := c.CreateFault(ctx, localcloud.Fault{Kind: localcloud.FaultNeverBoots})
	must(t, err)
	if faults, err := c.ListFaults(ctx); err != nil || len(faults) != 1 || faults[0].ID != fault.ID || faults[0].Count != 1 {
		t.Errorf("faults %v, error %v", faults, err)
	}
	must(t, c.DeleteFault(ctx, fault.ID))
	if err := c.DeleteFault(ctx, fault.ID); !localcloud.IsNotFound(err) {
		t.Errorf("error %v, want NotFound", err)
	}
}

func TestAnswersToRawRequests(t *testing.T) {
	cases := map[string]struct {
		method, path, body string
		token              string
		status             int
		want               string
	}{
		"NoToken":        {"GET", "/v1/vms", "", "", 401, `"code":"Unauthenticated"`},
		"WrongToken":     {"GET", "/v1/vms", "", "wrong", 401, `"code":"Unauthenticated"`},
		"HealthIsOpen":   {"GET", "/healthz", "", "", 200, "ok"},
		"EmptyList":      {"GET", "/v1/vms", "", "secret", 200, `{"items":[]}`},
		"UnknownCall":    {"GET", "/v1/volumes", "", "secret", 404, `{"code":"NotFound","message":"there is no call GET /v1/volumes"}`},
		"UnknownVM":      {"DELETE", "/v1/vms/vm-1", "", "secret", 404, `{"code":"NotFound","message":"VM \"vm-1\" does not exist"}`},
		"UnknownConsole": {"GET", "/v1/vms/vm-1/console", "", "secret", 404, `{"code":"NotFound"`},
		"RebootOfNoVM":   {"POST", "/v1/vms/vm-1/reboot", "", "secret", 404, `{"code":"NotFound"`},
		"BadTag":         {"GET", "/v1/vms?tag=k", "", "secret", 400, `{"code":"InvalidRequest","message":"tag: invalid value \"k\": must be key=value"}`},
		"BadQuery":       {"GET", "/v1/vms?state=x", "", "secret", 400, `query: unknown parameter \"state\": must be name or tag`},
		"NoJSON":         {"POST", "/v1/vms", "{", "secret", 400, `body: unexpected EOF`},
		"TwoValues":      {"PUT", "/v1/quota", "{}{}", "secret", 400, `body: more than one JSON value`},
		"UnknownField":   {"POST", "/v1/vms", `{"nom":"a"}`, "secret", 400, `body: unknown field \"nom\"`},
		"BadDuration":    {"PUT", "/v1/settings", `{"bootTime":"soon"}`, "secret", 400, `invalid duration \"soon\": must be like \"1m30s\"`},
		"BadUserData":    {"POST", "/v1/vms", `{"userData":"!"}`, "secret", 400, `body: illegal base64 data`},
		"HugeBody":       {"POST", "/v1/vms", `{"name":"` + strings.Repeat("a", maxBody) + `"}`, "secret", 400, `body: http: request body too large`},
		"PartOfSettings": {"PUT", "/v1/settings", `{"rateLimit":7}`, "secret", 200, `{"createTime":"0s","bootTime":"2s","shutdownTime":"0s","rateLimit":7}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url, _, _ := serve(t)
			status, _, body := raw(t, tc.method, url+tc.path, tc.token, tc.body)
			if status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("%d %s\nwant %d %s", status, body, tc.status, tc.want)
			}
		})
	}
}

func TestTheLargestUserDataFits(t *testing.T) {
	url, _, _ := serve(t)
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), localcloud.MaxUserDataBytes))
	status, _, body := raw(t, "POST", url+"/v1/vms", "secret", fmt.Sprintf(`{"name":"a","image":"debian-12","size":"small","userData":%q}`, data))
	if status != 201 || strings.Contains(body, "userData") {
		t.Errorf("%d %s", status, body)
	}
}

func TestALostAnswerLeavesAVM(t *testing.T) {
	ctx := context.Background()
	_, c, _ := serve(t)
	_, err := c.CreateFault(ctx, localcloud.Fault{Kind: localcloud.FaultCreateAnswerLost})
	must(t, err)
	_, err = c.CreateVM(ctx, localcloud.CreateVMRequest{Name: "a", Image: localcloud.ImageDebian12, Size: localcloud.SizeSmall})
	if err == nil || localcloud.CodeOf(err) != "" {
		t.Errorf("error %v, want one that is no answer", err)
	}
	if vms, err := c.ListVMs(ctx, localcloud.ListVMsOptions{Name: "a"}); err != nil || len(vms) != 1 {
		t.Errorf("VMs %v, error %v, want one", vms, err)
	}
}

func TestCallsBeyondTheRateAreThrottled(t *testing.T) {
	ctx := context.Background()
	_, c, clock := serve(t)
	_, err := c.SetSettings(ctx, localcloud.Settings{RateLimit: 2})
	must(t, err)
	throttled := func() bool {
		_, err := c.ListVMs(ctx, localcloud.ListVMsOptions{})
		var e *localcloud.Error
		if errors.As(err, &e) && e.Code == localcloud.CodeThrottled {
			if e.StatusCode != http.StatusTooManyRequests || e.RetryAfter != time.Second {
				t.Errorf("error %+v, want 429 and to retry after 1s", e)
			}
			return true
		}
		must(t, err)
		return false
	}
	for i, want := range []bool{false, false, true, true} {
		if got := throttled(); got != want {
			t.Errorf("call %d throttled: %v", i, got)
		}
	}
	clock.Step(500 * time.Millisecond)
	if throttled() || !throttled() {
		t.Error("half a second is worth one call")
	}
	_, err = c.SetSettings(ctx, localcloud.Settings{}) // This call itself is never throttled.
	must(t, err)
	if throttled() {
		t.Error("throttled without a limit")
	}
}

func raw(t *testing.T, method, url, token, body string) (status int, header http.Header, answer string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	must(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, resp.Header, string(b)
}
