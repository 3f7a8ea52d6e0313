package aws

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes/awstest"
)

const (
	region  = "eu-central-1"
	account = "111122223333"
	good    = "[default]\naws_access_key_id = AKIAGOOD\naws_secret_access_key = s3cret-good\n"
)

var launched = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func instance(id, state, installation string) awstest.Instance {
	return awstest.Instance{
		ID: id, Zone: region + "a", State: state, LaunchTime: launched,
		Tags: map[string]string{"drover-installation": installation, "drover-machine": "m-" + id},
	}
}

type world struct {
	*awstest.Memory
	server *awstest.Server
	url    string
}

func newWorld(t *testing.T, o awstest.Options) *world {
	t.Helper()
	// The pod has no identity that could stand in for the Secret's.
	for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(v, "")
	}
	w := &world{Memory: &awstest.Memory{}}
	w.server = awstest.New(w.Memory, o)
	w.server.Admit("AKIAGOOD", awstest.Account{ID: account, Secret: "s3cret-good"})
	s := httptest.NewServer(w.server)
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

func (w *world) lister(t *testing.T, credentials string) inventory.Lister {
	t.Helper()
	l, err := New(t.Context(), Options{Credentials: []byte(credentials), Endpoint: w.url, Region: region})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestListHasTheInstancesThatExistInAllTheirStates(t *testing.T) {
	w := newWorld(t, awstest.Options{})
	stopped := instance("i-stopped", "stopped", "ours")
	stopped.StateReason = "Client.UserInitiatedShutdown: User initiated shutdown"
	w.Set(account, region, instance("i-pending", "pending", "ours"), instance("i-running", "running", "ours"), instance("i-stopping", "stopping", "ours"), stopped,
		instance("i-going", "shutting-down", "ours"), instance("i-gone", "terminated", "ours"), instance("i-theirs", "running", "theirs"))
	w.Set(account, "us-east-1", instance("i-elsewhere", "running", "ours"))
	vms, complete, err := w.lister(t, good).List(t.Context(), "ours")
	if err != nil || !complete {
		t.Fatalf("complete %t, error %v", complete, err)
	}
	var got []string
	for _, vm := range vms {
		got = append(got, fmt.Sprintf("%s %s %s", vm.ExternalName, vm.State, vm.StateText))
		if vm.ProviderID != "aws:///eu-central-1a/"+vm.ExternalName || vm.Tags["drover-machine"] != "m-"+vm.ExternalName || !vm.CreatedAt.Equal(launched) {
			t.Errorf("%+v", vm)
		}
	}
	want := []string{
		"i-pending Pending instance state pending", "i-running Running instance state running", "i-stopping Stopped instance state stopping",
		"i-stopped Stopped instance state stopped: Client.UserInitiatedShutdown: User initiated shutdown",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lists\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func many(n int) []awstest.Instance {
	var out []awstest.Instance
	for i := range n {
		out = append(out, instance(fmt.Sprintf("i-%04d", i), "running", "ours"))
	}
	return out
}

func TestListReadsEveryPage(t *testing.T) {
	w := newWorld(t, awstest.Options{})
	w.Set(account, region, many(2*pageSize+1)...)
	vms, complete, err := w.lister(t, good).List(t.Context(), "ours")
	if err != nil || !complete || len(vms) != 2*pageSize+1 || w.server.Calls()["DescribeInstances"] != 3 {
		t.Errorf("%d VMs by %v, complete %t, error %v", len(vms), w.server.Calls(), complete, err)
	}
}

func TestAPageThatFailsLeavesNoPart(t *testing.T) {
	w := newWorld(t, awstest.Options{})
	w.Set(account, region, many(pageSize+1)...)
	w.server.Break(awstest.Fault{Action: "DescribeInstances", After: 1, Status: http.StatusInternalServerError, Code: "InternalError", Message: "An internal error has occurred"})
	vms, complete, err := w.lister(t, good).List(t.Context(), "ours")
	if err == nil || complete || vms != nil || !strings.Contains(err.Error(), "InternalError") {
		t.Errorf("%d VMs, complete %t, error %v", len(vms), complete, err)
	}
}

func TestAThrottledCallIsRetried(t *testing.T) {
	w := newWorld(t, awstest.Options{})
	w.Set(account, region, many(1)...)
	w.server.Break(awstest.Fault{Action: "DescribeInstances", Times: 1, Status: http.StatusServiceUnavailable, Code: "RequestLimitExceeded", Message: "Request limit exceeded."})
	if vms, _, err := w.lister(t, good).List(t.Context(), "ours"); err != nil || len(vms) != 1 {
		t.Errorf("%d VMs, error %v", len(vms), err)
	}
}

func TestAnAccountThatIsThrottledAllTheTimeIsReported(t *testing.T) {
	w := newWorld(t, awstest.Options{Burst: 1, Refill: time.Hour})
	l := w.lister(t, good)
	_, _, _ = l.List(t.Context(), "ours")
	if _, complete, err := l.List(t.Context(), "ours"); err == nil || complete || !strings.Contains(err.Error(), "RequestLimitExceeded") {
		t.Errorf("complete %t, error %v", complete, err)
	}
}

func TestFindIgnoresTagsAndMoreThanAFilterTakes(t *testing.T) {
	w := newWorld(t, awstest.Options{})
	all := many(maxValues + 50)
	all[0].Tags, all[1].State = nil, "terminated"
	w.Set(account, region, all...)
	var ids []string
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	finder, ok := w.lister(t, good).(inventory.Finder)
	if !ok {
		t.Fatal("it finds no VM by its name")
	}
	vms, complete, err := finder.Find(t.Context(), append(ids, "i-never"))
	if err != nil || !complete || len(vms) != len(all)-1 || vms[0].ExternalName != "i-0000" {
		t.Errorf("%d VMs, complete %t, error %v", len(vms), complete, err)
	}
}

func TestResourcesBesideInstances(t *testing.T) {
	w := newWorld(t, awstest.Options{})
	ours, theirs := map[string]string{"drover-installation": "ours"}, map[string]string{"drover-installation": "theirs"}
	set := func(kind string) []awstest.Attachable {
		return []awstest.Attachable{{ID: kind + "-free", Tags: ours, CreatedAt: launched}, {ID: kind + "-used", AttachedTo: "i-1", Tags: ours, CreatedAt: launched}, {ID: kind + "-theirs", Tags: theirs}}
	}
	w.SetBeside(account, region, awstest.Beside{NetworkInterfaces: set("eni"), Volumes: set("vol"), Addresses: set("eipalloc")})
	rl, ok := w.lister(t, good).(inventory.ResourceLister)
	if !ok {
		t.Fatal("it lists no resources")
	}
	found, complete, err := rl.ListResources(t.Context(), "ours")
	if err != nil || !complete {
		t.Fatal(complete, err)
	}
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprintf("%s %s %q", r.Type, r.ID, r.AttachedTo))
	}
	want := []string{`NetworkInterface eni-free ""`, `NetworkInterface eni-used "i-1"`, `Volume vol-free ""`, `Volume vol-used "i-1"`, `Address eipalloc-free ""`, `Address eipalloc-used "i-1"`}
	if !slices.Equal(got, want) {
		t.Errorf("lists %q", got)
	}
}

func TestCredentialsOfAWS(t *testing.T) {
	cases := map[string]struct {
		credentials, err string
	}{
		"AreRight":              {good, ""},
		"OfAnUnknownKey":        {strings.Replace(good, "AKIAGOOD", "AKIABAD", 1), "AuthFailure: AWS was not able to validate the provided access credentials"},
		"WithAWrongSecret":      {strings.Replace(good, "s3cret-good", "s3cret-bad", 1), "SignatureDoesNotMatch"},
		"WithATokenTooMuch":     {good + "aws_session_token = s3cret-token\n", "AuthFailure"},
		"OfATemporarySession":   {"[default]\naws_access_key_id=AKIATEMP\naws_secret_access_key=s3cret-temp\naws_session_token=s3cret-token\n", ""},
		"WhoseRightsAreMissing": {"[default]\naws_access_key_id=AKIADENIED\naws_secret_access_key=s3cret-good\n", "UnauthorizedOperation"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, awstest.Options{})
			w.server.Admit("AKIATEMP", awstest.Account{ID: account, Secret: "s3cret-temp", SessionToken: "s3cret-token"})
			w.server.Admit("AKIADENIED", awstest.Account{ID: account, Secret: "s3cret-good", Denied: []string{"DescribeInstances"}})
			_, complete, err := w.lister(t, tc.credentials).List(t.Context(), "ours")
			if (tc.err == "") != (err == nil) || complete != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("complete %t, error %v, want %q", complete, err, tc.err)
			}
		})
	}
}

func TestWhatIsNoFileOfCredentialsIsRefusedWithoutItsContent(t *testing.T) {
	for name, content := range map[string]string{
		"Empty": "", "JSON": `{"token": "s3cret"}`, "WithoutAProfile": "aws_access_key_id = s3cret", "WithoutASecret": "[default]\naws_access_key_id = s3cret",
		"AnotherProfile": strings.Replace(good, "default", "other", 1),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(t.Context(), Options{Credentials: []byte(content), Region: region})
			if err == nil || !strings.Contains(err.Error(), "must be a file of credentials with the profile default") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestARegionIsRequired(t *testing.T) {
	if _, err := New(t.Context(), Options{Credentials: []byte(good)}); err == nil || !strings.Contains(err.Error(), "spec.forProvider.region: required") {
		t.Errorf("error %v", err)
	}
}
