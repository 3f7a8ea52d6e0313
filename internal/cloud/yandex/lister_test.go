package yandex

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	compute "github.com/yandex-cloud/go-genproto/yandex/cloud/compute/v1"
	iam "github.com/yandex-cloud/go-genproto/yandex/cloud/iam/v1"
	vpc "github.com/yandex-cloud/go-genproto/yandex/cloud/vpc/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/yandextest"
)

const (
	listInstances = compute.InstanceService_List_FullMethodName
	createToken   = iam.IamTokenService_Create_FullMethodName
	folder        = "b1g-ours"
)

// Making an RSA key takes long: all tests share two.
var (
	privateKey = sync.OnceValue(func() *rsa.PrivateKey { return newKey() })
	otherKey   = sync.OnceValue(func() *rsa.PrivateKey { return newKey() })
)

func newKey() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
}

// A world is a folder and its API.
type world struct {
	*yandextest.Server
	content yandextest.Folder
	keys    map[string]yandextest.Key
	now     func() time.Time
}

func newWorld(t *testing.T, o yandextest.Options) *world {
	t.Helper()
	w := &world{now: time.Now, keys: map[string]yandextest.Key{"aje-1": {ServiceAccount: "aje-sa", Public: &privateKey().PublicKey, Folders: []string{folder}}}}
	o.State = func(f string) yandextest.Folder {
		if f != folder {
			return yandextest.Folder{}
		}
		return w.content
	}
	o.Keys = func() map[string]yandextest.Key { return w.keys }
	o.Now = func() time.Time { return w.now() }
	s, err := yandextest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	w.Server = s
	return w
}

// credentials of a key, with the line that Yandex Cloud puts before it.
func credentialsOf(t *testing.T, id string, k *rsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]string{
		"id": id, "service_account_id": "aje-sa", "key_algorithm": "RSA_2048", "created_at": "2030-01-01T00:00:00Z",
		"private_key": "PLEASE DO NOT REMOVE THIS LINE! Yandex.Cloud SA Key ID <" + id + ">\n" + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// options of a Lister in the world, changed by a test.
func (w *world) options(t *testing.T) Options {
	t.Helper()
	return Options{Credentials: credentialsOf(t, "aje-1", privateKey()), FolderID: folder, Endpoint: w.Address, CABundle: w.CACertificates}
}

func (w *world) lister(t *testing.T, o Options) *lister {
	t.Helper()
	l, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	l.(*lister).pause, l.(*lister).now = time.Millisecond, func() time.Time { return w.now() }
	return l.(*lister)
}

var created = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func instance(id, installation string, s compute.Instance_Status) *compute.Instance {
	i := &compute.Instance{Id: id, FolderId: folder, Name: "web-" + id, Status: s, CreatedAt: timestamppb.New(created), Metadata: map[string]string{"user-data": "s3cret"}}
	if installation != "" {
		i.Labels = labels(installation)
	}
	return i
}

func labels(installation string) map[string]string {
	return map[string]string{"drover-installation": installation, "drover-cluster": "eu", "drover-namespace": "fleet", "drover-machine": "web", "drover-machine-uid": "u-1"}
}

func TestTheInstancesOfAnInstallationAreListed(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	w.content.Instances = []*compute.Instance{
		instance("a", "ours", compute.Instance_PROVISIONING), instance("b", "ours", compute.Instance_RUNNING), instance("c", "ours", compute.Instance_STOPPED),
		instance("d", "ours", compute.Instance_ERROR), instance("e", "ours", compute.Instance_DELETING), instance("f", "ours", compute.Instance_CRASHED),
		instance("g", "ours", compute.Instance_UPDATING), instance("h", "theirs", compute.Instance_RUNNING), instance("i", "", compute.Instance_RUNNING),
	}
	vms, complete, err := w.lister(t, w.options(t)).List(t.Context(), "ours")
	if err != nil || !complete {
		t.Fatalf("complete: %t, error %v", complete, err)
	}
	vm := func(id string, s inventory.State, text string) inventory.VM {
		return inventory.VM{ExternalName: id, ProviderID: "yandex://" + id, Name: "web-" + id, Tags: labels("ours"), CreatedAt: created, State: s, StateText: "status " + text}
	}
	want := []inventory.VM{
		vm("a", inventory.StatePending, "PROVISIONING"), vm("b", inventory.StateRunning, "RUNNING"), vm("c", inventory.StateStopped, "STOPPED"),
		vm("d", inventory.StateFailed, "ERROR"), vm("f", inventory.StatePending, "CRASHED"), vm("g", inventory.StateUnknown, "UPDATING"),
	}
	if d := cmp.Diff(want, vms); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestInstancesAreFoundByTheirIDs(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	w.content.Instances = []*compute.Instance{instance("a", "", compute.Instance_RUNNING), instance("b", "ours", compute.Instance_RUNNING), instance("c", "ours", compute.Instance_DELETING)}
	l := w.lister(t, w.options(t))
	vms, complete, err := l.Find(t.Context(), []string{"a", "c", "gone"})
	if err != nil || !complete || len(vms) != 1 || vms[0].ExternalName != "a" {
		t.Errorf("found %v, complete: %t, error %v", vms, complete, err)
	}
	w.Break(fakes.Fault{Call: listInstances, Status: int(codes.Internal), Message: "Internal error"})
	if vms, complete, err := l.Find(t.Context(), []string{"a"}); err == nil || complete || len(vms) > 0 {
		t.Errorf("of a list that fails: %v, complete: %t, error %v", vms, complete, err)
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://api.cloud.yandex.net": "api.cloud.yandex.net:443", "https://api.example.org:8443/": "api.example.org:8443",
		"127.0.0.1:8443": "127.0.0.1:8443", "api.cloud.yandex.net": "api.cloud.yandex.net:443", "https://[::1]": "[::1]:443",
		"http://api.cloud.yandex.net": "", "https://user@api.example.org": "", "https://api.example.org/path": "", "https://": "",
	} {
		got, err := addressOf(endpoint)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, want %q, error %v", endpoint, got, want, err)
		}
	}
}

func TestTheNumberOfCalls(t *testing.T) {
	cases := map[string]struct{ instances, calls int }{
		"FiveHundredInstancesTakeOneList":        {500, 1},
		"TwoAndAHalfThousandInstancesTakeThree":  {2500, 3},
		"AFolderWithoutInstancesTakesOneAnyway":  {0, 1},
		"AFullPageIsNotFollowedByAnEmptyRequest": {1000, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, yandextest.Options{})
			for i := range tc.instances {
				w.content.Instances = append(w.content.Instances, instance(fmt.Sprintf("fhm%05d", i), "ours", compute.Instance_RUNNING))
			}
			l := w.lister(t, w.options(t))
			for range 2 {
				if vms, complete, err := l.List(t.Context(), "ours"); err != nil || !complete || len(vms) != tc.instances {
					t.Fatalf("%d VMs, complete: %t, error %v", len(vms), complete, err)
				}
			}
			if calls, _ := w.Calls(); calls[listInstances] != 2*tc.calls || calls[createToken] != 1 {
				t.Errorf("calls of two lists: %v", calls)
			}
		})
	}
}

func TestFromAListThatIsNotWholeNothingIsConcluded(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	for i := range 1500 {
		w.content.Instances = append(w.content.Instances, instance(fmt.Sprintf("fhm%05d", i), "ours", compute.Instance_RUNNING))
	}
	lists := 0
	w.Break(fakes.Fault{Call: listInstances, Status: int(codes.Internal), Message: "Internal error", Match: func(string, []byte) bool {
		lists++
		return lists == 2
	}})
	vms, complete, err := w.lister(t, w.options(t)).List(t.Context(), "ours")
	if err == nil || complete || len(vms) > 0 || err.Error() != "cannot list Instances of folder b1g-ours: Internal: Internal error" {
		t.Errorf("%d VMs, complete: %t, error %v", len(vms), complete, err)
	}
}

func TestCredentials(t *testing.T) {
	ours := func(t *testing.T) []byte { return credentialsOf(t, "aje-1", privateKey()) }
	cases := map[string]struct {
		change func(*testing.T, *world, *Options)
		err    string
	}{
		"AnAuthorizedKey": {func(t *testing.T, _ *world, o *Options) { o.Credentials = ours(t) }, ""},
		"AKeyThatWasDeleted": {
			func(_ *testing.T, w *world, _ *Options) { w.keys = nil },
			"PermissionDenied: cannot get an IAM token for service account aje-sa: Unauthenticated: The JWT is invalid: token is unverifiable: error while executing keyfunc: Public key aje-1 not found",
		},
		"AWrongPrivateKey": {func(t *testing.T, _ *world, o *Options) { o.Credentials = credentialsOf(t, "aje-1", otherKey()) }, "Unauthenticated: The JWT is invalid: token signature is invalid"},
		"AClockThatIsWrong": {func(_ *testing.T, w *world, _ *Options) {
			calls := 0
			w.now = func() time.Time { // The lister asks first.
				calls++
				return created.Add(time.Duration(calls-1) * 48 * time.Hour)
			}
		}, "token is expired"},
		"AFolderOfAnother": {func(_ *testing.T, _ *world, o *Options) { o.FolderID = "b1g-theirs" }, "PermissionDenied: cannot list Instances of folder b1g-theirs: PermissionDenied: Permission denied to folder b1g-theirs"},
		"NoFolder":         {func(_ *testing.T, _ *world, o *Options) { o.FolderID = "" }, "folderID: must not be empty"},
		"NoJSON":           {func(_ *testing.T, _ *world, o *Options) { o.Credentials = []byte("s3cret") }, "credentials: must be the JSON of an authorized key"},
		"NoKeyID":          {func(t *testing.T, _ *world, o *Options) { o.Credentials = credentialsOf(t, "", privateKey()) }, "credentials: id: must not be empty"},
		"APrivateKeyThatIsNone": {
			func(_ *testing.T, _ *world, o *Options) {
				o.Credentials = []byte(`{"id": "a", "service_account_id": "b", "private_key": "s3cret"}`)
			},
			"credentials: private_key: must be an RSA private key in PEM format",
		},
		"NoCertificates":           {func(_ *testing.T, _ *world, o *Options) { o.CABundle = []byte("none") }, "caBundle: must be certificates in PEM format"},
		"AnEndpointNotToBeTrusted": {func(_ *testing.T, _ *world, o *Options) { o.CABundle = nil }, "Unavailable: connection error: desc = \"transport: authentication handshake failed: tls: failed to verify certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, yandextest.Options{})
			o := w.options(t)
			tc.change(t, w, &o)
			l, err := New(t.Context(), o)
			if err == nil {
				var complete bool
				_, complete, err = w.lister(t, o).List(t.Context(), "ours")
				if complete != (tc.err == "") {
					t.Errorf("complete: %t", complete)
				}
			}
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("%v: error %v, want %q", l != nil, err, tc.err)
			}
		})
	}
}

func TestARotatedKeyCountsWithTheNextLister(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	o := w.options(t)
	if _, _, err := w.lister(t, o).List(t.Context(), "ours"); err != nil {
		t.Fatal(err)
	}
	w.keys = map[string]yandextest.Key{"aje-2": {ServiceAccount: "aje-sa", Public: &otherKey().PublicKey, Folders: []string{folder}}}
	if _, _, err := w.lister(t, o).List(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "Public key aje-1 not found") {
		t.Errorf("with the old key: error %v", err)
	}
	o.Credentials = credentialsOf(t, "aje-2", otherKey())
	if _, complete, err := w.lister(t, o).List(t.Context(), "ours"); err != nil || !complete {
		t.Errorf("with the new key: complete %t, error %v", complete, err)
	}
}

func TestIAMTokens(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	now := time.Now()
	w.now = func() time.Time { return now }
	l := w.lister(t, w.options(t))
	list := func(want int, what string) {
		t.Helper()
		_, _, err := l.List(t.Context(), "ours")
		if calls, _ := w.Calls(); err != nil || calls[createToken] != want {
			t.Errorf("%s: %d IAM tokens, want %d, error %v", what, calls[createToken], want, err)
		}
	}
	list(1, "the first list")
	now = now.Add(11 * time.Hour)
	list(1, "while the token is valid")
	now = now.Add(56 * time.Minute)
	list(2, "shortly before it expires")
	w.Revoke()
	if _, _, err := l.List(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "PermissionDenied: cannot list Instances of folder b1g-ours: Unauthenticated: The token is invalid") {
		t.Errorf("with a revoked token: error %v", err)
	}
	list(3, "after it was refused")
}

func TestTheServiceAccountOfTheVM(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	var answer func(http.ResponseWriter)
	metadata := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" || r.Header.Get("Metadata-Flavor") != "Google" {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		answer(rw)
	}))
	defer metadata.Close()
	o := w.options(t)
	o.Credentials, o.MetadataURL = nil, metadata.URL
	l := w.lister(t, o)
	answer = func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusNotFound) }
	if _, _, err := l.List(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "PermissionDenied: ") || !strings.Contains(err.Error(), "404 Not Found; does the VM have a service account?") {
		t.Errorf("without a service account: error %v", err)
	}
	answer = func(rw http.ResponseWriter) {
		token, expires := w.Issue(folder)
		_, _ = fmt.Fprintf(rw, `{"access_token": %q, "expires_in": %d, "token_type": "Bearer"}`, token, int(time.Until(expires).Seconds()))
	}
	if _, complete, err := l.List(t.Context(), "ours"); err != nil || !complete {
		t.Errorf("with one: complete %t, error %v", complete, err)
	}
	metadata.Close()
	if _, _, err := w.lister(t, o).List(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "without a service account on its VMs a Secret is required") {
		t.Errorf("without a metadata service: error %v", err)
	}
}

func TestThrottlingIsWaitedFor(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	w.Break(fakes.Fault{Call: listInstances, Times: 3, Status: int(codes.ResourceExhausted), Message: "Request rate limit exceeded"})
	w.Break(fakes.Fault{Call: createToken, Times: 2, Status: int(codes.Unavailable), Message: "Service unavailable"})
	_, complete, err := w.lister(t, w.options(t)).List(t.Context(), "ours")
	if calls, _ := w.Calls(); err != nil || !complete || calls[listInstances] != 4 || calls[createToken] != 3 {
		t.Errorf("complete: %t, error %v, calls %v", complete, err, calls)
	}
}

func TestThrottlingForMinutesIsAnErrorInTime(t *testing.T) {
	w := newWorld(t, yandextest.Options{RateLimit: 1, Refill: time.Hour})
	l := w.lister(t, w.options(t))
	if _, _, err := l.List(t.Context(), "ours"); err != nil {
		t.Fatal(err)
	}
	_, complete, err := l.List(t.Context(), "ours")
	if err == nil || complete || err.Error() != "Throttled: cannot list Instances of folder b1g-ours: ResourceExhausted: Request rate limit exceeded" {
		t.Errorf("after all attempts: complete %t, error %v", complete, err)
	}
	l.pause = time.Hour // The deadline comes before the second attempt.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, complete, err := l.List(ctx, "ours"); err == nil || complete || !strings.Contains(err.Error(), "DeadlineExceeded") {
		t.Errorf("at the deadline: complete %t, error %v", complete, err)
	}
}

func TestResources(t *testing.T) {
	w := newWorld(t, yandextest.Options{})
	user := instance("fhm1", "ours", compute.Instance_RUNNING)
	user.NetworkInterfaces = []*compute.NetworkInterface{{PrimaryV4Address: &compute.PrimaryAddress{Address: "10.0.0.5", OneToOneNat: &compute.OneToOneNat{Address: "192.0.2.1"}}}}
	external := func(a string) *vpc.Address_ExternalIpv4Address {
		return &vpc.Address_ExternalIpv4Address{ExternalIpv4Address: &vpc.ExternalIpv4Address{Address: a}}
	}
	w.content = yandextest.Folder{
		Instances: []*compute.Instance{user, instance("fhm2", "theirs", compute.Instance_RUNNING)},
		Disks: []*compute.Disk{
			{Id: "d-attached", InstanceIds: []string{"fhm1"}, CreatedAt: timestamppb.New(created)},
			{Id: "d-by-hand"},
			{Id: "d-deleting", Labels: labels("ours"), Status: compute.Disk_DELETING},
			{Id: "d-leaked", Labels: labels("ours")},
			{Id: "d-theirs", InstanceIds: []string{"fhm2"}},
		},
		Addresses: []*vpc.Address{
			{Id: "e-attached", Reserved: true, Used: true, Address: external("192.0.2.1")},
			{Id: "e-ephemeral", Used: true, Labels: labels("ours"), Address: external("192.0.2.1")},
			{Id: "e-leaked", Reserved: true, Labels: labels("ours"), Address: external("192.0.2.2"), CreatedAt: timestamppb.New(created)},
			{Id: "e-of-a-balancer", Reserved: true, Used: true, Labels: labels("ours"), Address: external("192.0.2.3")},
			{Id: "e-theirs", Reserved: true, Labels: labels("theirs"), Address: external("192.0.2.4")},
		},
	}
	want := []inventory.Resource{
		{Type: "Disk", ID: "d-attached", Tags: labels("ours"), CreatedAt: created, AttachedTo: "fhm1"},
		{Type: "Disk", ID: "d-leaked", Tags: labels("ours")},
		{Type: "Address", ID: "e-attached", Tags: labels("ours"), AttachedTo: "fhm1"},
		{Type: "Address", ID: "e-leaked", Tags: labels("ours"), CreatedAt: created},
		{Type: "Address", ID: "e-of-a-balancer", Tags: labels("ours"), AttachedTo: "in use"},
	}
	l := w.lister(t, w.options(t))
	got, complete, err := l.ListResources(t.Context(), "ours")
	if err != nil || !complete {
		t.Fatalf("complete: %t, error %v", complete, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, call := range []string{listInstances, compute.DiskService_List_FullMethodName, vpc.AddressService_List_FullMethodName} {
		mend := w.Break(fakes.Fault{Call: call, Status: int(codes.Internal), Message: "Internal error"})
		if got, complete, err := l.ListResources(t.Context(), "ours"); err == nil || complete || len(got) > 0 {
			t.Errorf("%s fails: %d resources, complete %t, error %v", call, len(got), complete, err)
		}
		mend()
	}
}
