package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/godo"
	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/digitaloceantest"
)

const secret = "dop_v1_s3cret"

// A world is an account and its API.
type world struct {
	*digitaloceantest.Server
	account digitaloceantest.Account
	tokens  map[string]digitaloceantest.Token
}

func newWorld(o digitaloceantest.Options) *world {
	w := &world{tokens: map[string]digitaloceantest.Token{secret: {}}}
	o.State = func() digitaloceantest.Account { return w.account }
	o.Tokens = func() map[string]digitaloceantest.Token { return w.tokens }
	w.Server = digitaloceantest.New(o)
	return w
}

func (w *world) lister(t *testing.T, credentials string) inventory.ResourceLister {
	t.Helper()
	l, err := New(t.Context(), Options{Credentials: []byte(credentials), Endpoint: "https://digitalocean", Transport: fakes.InMemory(w.Server)})
	if err != nil {
		t.Fatal(err)
	}
	return l.(inventory.ResourceLister)
}

func droplet(id int, installation, status string) godo.Droplet {
	return godo.Droplet{
		ID: id, Name: fmt.Sprintf("web-%d-abcde", id), Status: status, Created: "2030-01-02T03:04:05Z",
		Tags: []string{"web", "team:a", "drover-installation:" + installation, "drover-cluster:eu", "drover-namespace:fleet"},
	}
}

func TestTheDropletsOfAnInstallationAreListed(t *testing.T) {
	w := newWorld(digitaloceantest.Options{})
	w.account.Droplets = []godo.Droplet{
		droplet(1, "ours", "new"), droplet(2, "ours", "active"), droplet(3, "ours", "off"), droplet(4, "theirs", "active"),
		{ID: 5, Name: "by-hand", Status: "active", Created: "2030-01-02T03:04:05Z"}, droplet(6, "OURS", "active"), droplet(7, "ours", "hibernating"),
	}
	vms, complete, err := w.lister(t, secret).List(t.Context(), "ours")
	if err != nil || !complete {
		t.Fatalf("complete: %t, error %v", complete, err)
	}
	vm := func(id string, s inventory.State, text string) inventory.VM {
		return inventory.VM{
			ExternalName: id, ProviderID: "digitalocean://" + id, Name: "web-" + id + "-abcde", State: s, StateText: text,
			CreatedAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
			Tags:      map[string]string{"drover-installation": "ours", "drover-cluster": "eu", "drover-namespace": "fleet"},
		}
	}
	want := []inventory.VM{
		vm("1", inventory.StatePending, "status new"), vm("2", inventory.StateRunning, "status active"),
		vm("3", inventory.StateStopped, "status off"), vm("7", inventory.StateUnknown, "status hibernating"),
	}
	if d := cmp.Diff(want, vms); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDropletsAreFoundByTheirIDs(t *testing.T) {
	w := newWorld(digitaloceantest.Options{})
	w.account.Droplets = []godo.Droplet{{ID: 1, Name: "untagged", Status: "active", Created: "2030-01-02T03:04:05Z"}, droplet(2, "ours", "active")}
	l := w.lister(t, secret).(inventory.Finder)
	vms, complete, err := l.Find(t.Context(), []string{"1", "3", "no-id"})
	if err != nil || !complete || len(vms) != 1 || vms[0].ExternalName != "1" {
		t.Errorf("found %v, complete: %t, error %v", vms, complete, err)
	}
	w.Break(fakes.Fault{Status: http.StatusInternalServerError, Code: "server_error", Message: "Unexpected server-side error"})
	if vms, complete, err := l.Find(t.Context(), []string{"1"}); err == nil || complete || len(vms) > 0 {
		t.Errorf("of a call that fails: %v, complete: %t, error %v", vms, complete, err)
	}
}

func TestFiveHundredDropletsTakeThreeCalls(t *testing.T) {
	w := newWorld(digitaloceantest.Options{})
	for i := range 500 {
		w.account.Droplets = append(w.account.Droplets, droplet(i+1, "ours", "active"), droplet(i+1000, "theirs", "active"))
	}
	vms, complete, err := w.lister(t, secret).List(t.Context(), "ours")
	if calls, _ := w.Calls(); err != nil || !complete || len(vms) != 500 || calls["GET /v2/droplets"] != 3 {
		t.Errorf("%d VMs, complete: %t, calls %v, error %v", len(vms), complete, calls, err)
	}
}

func TestFromAListThatIsNotWholeNothingIsConcluded(t *testing.T) {
	second := func(times int, then func(*world)) func(*world) http.Handler {
		return func(w *world) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("page") == "2" && times > 0 {
					times--
					then(w)
				}
				w.ServeHTTP(rw, r)
			})
		}
	}
	cases := map[string]struct {
		handler func(*world) http.Handler
		err     string
	}{
		"ThePageAfterTheFirstFails": {second(1, func(w *world) {
			w.Break(fakes.Fault{Status: http.StatusInternalServerError, Code: "server_error", Message: "Unexpected server-side error"})
		}), "cannot read Droplets: GET https://digitalocean/v2/droplets?page=2&per_page=200&tag_name=drover-installation%3Aours: 500 Unexpected server-side error"},
		"TheConnectionBreaks": {second(1, func(w *world) { w.Break(fakes.Fault{Refused: true}) }), "unexpected EOF"},
		"ADropletIsDeletedBetweenTwoPages": {second(1, func(w *world) {
			w.account.Droplets = w.account.Droplets[1:]
		}), ""},
		"ADropletIsReplacedBetweenTwoPages": {second(1, func(w *world) {
			w.account.Droplets = append([]godo.Droplet{droplet(9999, "ours", "new")}, w.account.Droplets[:len(w.account.Droplets)-1]...)
		}), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(digitaloceantest.Options{})
			for i := range 250 {
				w.account.Droplets = append(w.account.Droplets, droplet(i+1, "ours", "active"))
			}
			l, err := New(t.Context(), Options{Credentials: []byte(secret), Endpoint: "https://digitalocean", Transport: fakes.InMemory(tc.handler(w))})
			if err != nil {
				t.Fatal(err)
			}
			vms, complete, err := l.List(t.Context(), "ours")
			if complete || len(vms) > 0 || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%d VMs, complete: %t, error %v, want %q", len(vms), complete, err, tc.err)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	cases := map[string]struct {
		credentials string
		tokens      map[string]digitaloceantest.Token
		newErr, err string
	}{
		"ATokenInJSON":           {credentials: `{"token": "` + secret + `"}`, tokens: map[string]digitaloceantest.Token{secret: {}}},
		"ATokenAlone":            {credentials: secret + "\n", tokens: map[string]digitaloceantest.Token{secret: {}}},
		"ATokenThatMayListAlone": {credentials: secret, tokens: map[string]digitaloceantest.Token{secret: {Scopes: []string{"droplet:read"}}}},
		"AWrongToken": {
			credentials: "dop_v1_s3cret-wrong", tokens: map[string]digitaloceantest.Token{secret: {}},
			err: "PermissionDenied: cannot read Droplets: GET https://digitalocean/v2/droplets?page=1&per_page=200&tag_name=drover-installation%3Aours: 401 Unable to authenticate you",
		},
		"ATokenThatMayNotList": {
			credentials: secret, tokens: map[string]digitaloceantest.Token{secret: {Scopes: []string{"image:read"}}},
			err: "403 You are missing the required permission droplet:read.",
		},
		"NoToken":          {credentials: " \n", newErr: "credentials: token: must not be empty"},
		"AnEmptyToken":     {credentials: `{"token": ""}`, newErr: "credentials: token: must not be empty"},
		"OtherJSON":        {credentials: `{"token": ["s3cret"]}`, newErr: `must be an API token or a JSON object {"token": "..."}`},
		"ATokenOfTwoLines": {credentials: "dop_v1_s3cret\nmore", newErr: "credentials: token: has a character that no token has at position 14"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(digitaloceantest.Options{})
			w.tokens = tc.tokens
			l, err := New(t.Context(), Options{Credentials: []byte(tc.credentials), Endpoint: "https://digitalocean", Transport: fakes.InMemory(w.Server)})
			if err == nil {
				var complete bool
				_, complete, err = l.List(t.Context(), "ours")
				if complete != (tc.err == "") {
					t.Errorf("complete: %t", complete)
				}
			}
			if want := tc.newErr + tc.err; (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("error %v, want %q and no token", err, want)
			}
		})
	}
}

func TestARotatedTokenCountsAtOnce(t *testing.T) {
	w := newWorld(digitaloceantest.Options{})
	old := w.lister(t, secret)
	w.tokens = map[string]digitaloceantest.Token{"new": {}}
	if _, _, err := old.List(t.Context(), "ours"); err == nil || !strings.HasPrefix(err.Error(), "PermissionDenied: ") {
		t.Errorf("with the old token: error %v", err)
	}
	if _, complete, err := w.lister(t, "new").List(t.Context(), "ours"); err != nil || !complete {
		t.Errorf("with the new token: complete %t, error %v", complete, err)
	}
}

func TestAWrongEndpointIsNamed(t *testing.T) {
	if _, err := New(t.Context(), Options{Credentials: []byte(secret), Endpoint: "digitalocean"}); err == nil || err.Error() != `endpoint: invalid value "digitalocean": must be a URL, such as https://api.digitalocean.com` {
		t.Errorf("error %v", err)
	}
}

func TestThrottlingIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(digitaloceantest.Options{RateLimit: 2, Refill: 5 * time.Second})
		for i := range 900 {
			w.account.Droplets = append(w.account.Droplets, droplet(i+1, "ours", "active"))
		}
		began := time.Now()
		vms, complete, err := w.lister(t, secret).List(t.Context(), "ours")
		if err != nil || !complete || len(vms) != 900 {
			t.Errorf("%d VMs, complete: %t, error %v", len(vms), complete, err)
		}
		if took := time.Since(began); took < 10*time.Second || took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestThrottlingForMinutesIsAnErrorInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(digitaloceantest.Options{})
		w.Break(fakes.Fault{Status: http.StatusTooManyRequests, Code: "too_many_requests", Message: "API rate limit exceeded.", RetryAfter: "600"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		vms, complete, err := w.lister(t, secret).List(ctx, "ours")
		if err == nil || ctx.Err() != nil || complete || len(vms) > 0 || !strings.Contains(err.Error(), "Throttled: too many requests to digitalocean: the next one is due in 10m0s") {
			t.Errorf("%d VMs, complete: %t, error %v, context %v", len(vms), complete, err, ctx.Err())
		}
	})
}

func TestResources(t *testing.T) {
	w := newWorld(digitaloceantest.Options{})
	ours, theirs := droplet(1, "ours", "active"), droplet(2, "theirs", "active")
	w.account = digitaloceantest.Account{
		Droplets: []godo.Droplet{ours, theirs},
		Volumes: []godo.Volume{
			{ID: "leaked", Tags: []string{"drover-installation:ours"}, CreatedAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)},
			{ID: "attached", DropletIDs: []int{1}},
			{ID: "theirs", DropletIDs: []int{2}},
			{ID: "tagged-theirs", Tags: []string{"drover-installation:theirs"}, DropletIDs: []int{1}},
			{ID: "by-hand"},
		},
		ReservedIPs: []godo.ReservedIP{{IP: "192.0.2.1", Droplet: &ours}, {IP: "192.0.2.2", Droplet: &theirs}, {IP: "192.0.2.3"}},
	}
	of := map[string]string{"drover-installation": "ours", "drover-cluster": "eu", "drover-namespace": "fleet"}
	want := []inventory.Resource{
		{Type: "Volume", ID: "leaked", Tags: map[string]string{"drover-installation": "ours"}, CreatedAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Type: "Volume", ID: "attached", Tags: of, AttachedTo: "1"},
		{Type: "ReservedIP", ID: "192.0.2.1", Tags: of, AttachedTo: "1"},
	}
	got, complete, err := w.lister(t, secret).ListResources(t.Context(), "ours")
	if err != nil || !complete {
		t.Fatalf("complete: %t, error %v", complete, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, call := range []string{"GET /v2/droplets", "GET /v2/volumes", "GET /v2/reserved_ips"} {
		mend := w.Break(fakes.Fault{Call: call, Status: http.StatusServiceUnavailable, Code: "service_unavailable", Message: "Service Unavailable"})
		if got, complete, err := w.lister(t, secret).ListResources(t.Context(), "ours"); err == nil || complete || len(got) > 0 {
			t.Errorf("%s fails: %d resources, complete %t, error %v", call, len(got), complete, err)
		}
		mend()
	}
}
