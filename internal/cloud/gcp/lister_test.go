package gcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/gcptest"
)

func TestAListHasTheVMsOfAnInstallationInAllZones(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		elsewhere, foreign, unlabelled := vm("b"), vm("c"), vm("d")
		elsewhere.Zone = "us-central1-f"
		foreign.Labels = labels(theirs)
		unlabelled.Labels = nil
		w.state.Set([]gcptest.VM{vm("a"), elsewhere, foreign, unlabelled})
		want := map[string]inventory.VM{
			"a": {ExternalName: "a", ProviderID: "gce://my-project/europe-west4-a/a", Tags: labels(ours), CreatedAt: noon, State: inventory.StateRunning, StateText: "RUNNING"},
			"b": {ExternalName: "b", ProviderID: "gce://my-project/us-central1-f/b", Tags: labels(ours), CreatedAt: noon, State: inventory.StateRunning, StateText: "RUNNING"},
		}
		got := map[string]inventory.VM{}
		for _, v := range mustList(t, w.lister(t), 2) {
			got[v.ExternalName] = v
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestTheStateOfAVM(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		for status, want := range map[string]inventory.State{
			"PENDING": inventory.StatePending, "PROVISIONING": inventory.StatePending, "STAGING": inventory.StatePending, "REPAIRING": inventory.StatePending,
			"RUNNING":      inventory.StateRunning,
			"PENDING_STOP": inventory.StateStopped, "STOPPING": inventory.StateStopped, "STOPPED": inventory.StateStopped, "SUSPENDING": inventory.StateStopped,
			"SUSPENDED": inventory.StateStopped, "TERMINATED": inventory.StateStopped, "DEPROVISIONING": inventory.StateStopped,
			"DREAMING": inventory.StateUnknown,
		} {
			one := vm("a")
			one.Status, one.StatusMessage = status, "Instance was preempted."
			w.state.Set([]gcptest.VM{one})
			if got := mustList(t, w.lister(t), 1)[0]; got.State != want || got.StateText != status+": Instance was preempted." {
				t.Errorf("%s: state %q, text %q, want %q", status, got.State, got.StateText, want)
			}
		}
	})
}

func TestFiveHundredVMsCostOneCall(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(500))
		l := w.lister(t)
		mustList(t, l, 500)
		mustList(t, l, 500)
		calls, _ := w.Calls()
		if d := cmp.Diff(map[string]int{gcptest.TokenCall: 1, w.ListCall("instances"): 2}, calls); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestAllPagesAreRead(t *testing.T) {
	inWorld(t, gcptest.Options{PageSize: 100}, func(t *testing.T, w *world) {
		w.state.Set(vms(450))
		seen := map[string]bool{}
		for _, v := range mustList(t, w.lister(t), 450) {
			seen[v.ProviderID] = true
		}
		if calls, _ := w.Calls(); len(seen) != 450 || calls[w.ListCall("instances")] != 5 {
			t.Errorf("%d VMs, calls %v", len(seen), calls)
		}
	})
}

// wiretap reads all answers.
type wiretap struct {
	next http.RoundTripper
	read strings.Builder
}

func (w *wiretap) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(resp.Body)
	w.read.Write(b)
	resp.Body = io.NopCloser(strings.NewReader(string(b)))
	return resp, err
}

func TestUserDataIsNotRead(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(3))
		tap := &wiretap{next: w.Transport()}
		mustList(t, w.lister(t, func(o *Options) { o.Transport = tap }), 3)
		if got := tap.read.String(); strings.Contains(got, "user-data") || !strings.Contains(got, "vm-002") {
			t.Errorf("read %s", got)
		}
	})
}

func TestNothingIsConcludedIfAPageFails(t *testing.T) {
	inWorld(t, gcptest.Options{PageSize: 100}, func(t *testing.T, w *world) {
		w.state.Set(vms(450))
		second := func(_ string, query []byte) bool { return strings.Contains(string(query), "pageToken") }
		w.Break(fakes.Fault{Call: w.ListCall("instances"), Match: second, Status: 503, Code: "backendError", Message: "Internal error. Please try again or contact Google Support."})
		mustFail(t, t.Context(), w.lister(t), "503 backendError: Internal error.")
		w.Mend()
		w.Break(fakes.Fault{Call: w.ListCall("instances"), Match: second, Lost: true})
		mustFail(t, t.Context(), w.lister(t), "cannot reach Google Cloud: unexpected EOF")
		w.Mend()
		w.Break(fakes.Fault{Call: w.ListCall("instances"), Match: second, Status: 503, Code: "backendError", Times: 2})
		mustList(t, w.lister(t), 450) // Two failures are retried.
	})
}

func TestAListWithoutAZoneIsNotComplete(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(30))
		w.Silence("zones/europe-west4-b")
		if found, complete, err := w.lister(t).List(t.Context(), ours); err != nil || complete || len(found) > 0 {
			t.Errorf("%d VMs, complete: %t, error %v", len(found), complete, err)
		}
		w.Silence("regions/europe-west4")
		if found, complete, err := w.lister(t).ListResources(t.Context(), ours); err != nil || complete || len(found) > 0 {
			t.Errorf("%d resources, complete: %t, error %v", len(found), complete, err)
		}
		w.Silence()
		mustList(t, w.lister(t), 30)
	})
}

func TestEachSignOfAGapMakesAListIncomplete(t *testing.T) {
	cases := map[string]struct {
		body string
		want bool
	}{
		"AZoneWithoutVMs":             {`{"items": {"zones/a": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}}`, true},
		"AZoneThatIsUnreachable":      {`{"items": {"zones/a": {"warning": {"code": "UNREACHABLE"}}}}`, false},
		"AnUnreachableScope":          {`{"items": {}, "unreachables": ["zones/a"]}`, false},
		"APartialSuccess":             {`{"items": {}, "warning": {"code": "PARTIAL_SUCCESS"}}`, false},
		"AFilterThatTookTooMuch":      {`{"items": {"zones/a": {"warning": {"code": "LIST_OVERHEAD_QUOTA_EXCEED"}}}}`, false},
		"AnAnswerWithoutAnyZoneAtAll": {`{}`, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
				l := w.lister(t, func(o *Options) { o.Transport = answering{w.Transport(), w.ListCall("instances"), tc.body} })
				if _, complete, err := l.List(t.Context(), ours); err != nil || complete != tc.want {
					t.Errorf("complete: %t, error %v", complete, err)
				}
			})
		})
	}
}

// answering answers one call with a body.
type answering struct {
	next       http.RoundTripper
	call, body string
}

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method+" "+req.URL.Path != a.call {
		return a.next.RoundTrip(req)
	}
	return &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func TestAListWaitsForTheRateLimit(t *testing.T) {
	inWorld(t, gcptest.Options{PageSize: 100, RateLimit: 1, Refill: 3 * time.Second}, func(t *testing.T, w *world) {
		w.state.Set(vms(300))
		begin := time.Now()
		mustList(t, w.lister(t), 300)
		// After a second, and after two more.
		if d := time.Since(begin); d != 6*time.Second {
			t.Errorf("3 calls with one per 3 seconds took %s", d)
		}
	})
}

func TestAListThatIsThrottledForMinutesIsAnError(t *testing.T) {
	throttled := fakes.Fault{Status: 429, Code: "rateLimitExceeded", Message: "Rate Limit Exceeded"}
	t.Run("AtOnceIfGoogleDemandsAWaitOfMinutes", func(t *testing.T) {
		inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
			throttled.Call, throttled.RetryAfter = w.ListCall("instances"), "240"
			w.Break(throttled)
			begin := time.Now()
			mustFail(t, t.Context(), w.lister(t), "Throttled: 429 rateLimitExceeded: Rate Limit Exceeded")
			if d := time.Since(begin); d > 0 {
				t.Errorf("took %s", d)
			}
		})
	})
	t.Run("AtTheDeadlineIfGoogleKeepsThrottling", func(t *testing.T) {
		inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
			throttled.Call, throttled.RetryAfter = w.ListCall("instances"), "10"
			w.Break(throttled)
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			defer cancel()
			begin := time.Now()
			err := mustFail(t, ctx, w.lister(t), "")
			if d := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || d != 25*time.Second {
				t.Errorf("took %s, error %v", d, err)
			}
		})
	})
	t.Run("AfterSomeRetriesWithoutADeadline", func(t *testing.T) {
		inWorld(t, gcptest.Options{RateLimit: 1, Refill: time.Hour}, func(t *testing.T, w *world) {
			l := w.lister(t)
			mustList(t, l, 0)
			begin := time.Now()
			mustFail(t, t.Context(), l, "Throttled: 403 rateLimitExceeded: Quota exceeded for quota metric 'Read requests'")
			if calls, _ := w.Calls(); calls[w.ListCall("instances")] != 2+retries || time.Since(begin) != 31*time.Second {
				t.Errorf("calls %v in %s", calls, time.Since(begin))
			}
		})
	})
}

func TestTwoVMsOfOneNameAreAnError(t *testing.T) {
	inWorld(t, gcptest.Options{PageSize: 1}, func(t *testing.T, w *world) {
		other := vm("a")
		other.Zone = "us-central1-f"
		w.state.Set([]gcptest.VM{vm("a"), other})
		mustFail(t, t.Context(), w.lister(t), "gce://my-project/europe-west4-a/a and gce://my-project/us-central1-f/a have the same name")
	})
}

func TestVMsAreFoundByTheirNamesWhateverTheirLabels(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		unlabelled, elsewhere := vm("b"), vm("b")
		unlabelled.Labels = nil
		elsewhere.Zone = "us-central1-f"
		w.state.Set([]gcptest.VM{vm("a"), unlabelled, elsewhere, vm("d")})
		names := []string{"b", "gone", `") OR (name = "d`}
		for i := range 30 {
			names = append(names, fmt.Sprintf("gone-%d", i))
		}
		found, complete, err := w.lister(t).(finder).Find(t.Context(), names)
		if err != nil || !complete || len(found) != 2 || found[0].ProviderID != "gce://my-project/europe-west4-a/b" || found[1].ProviderID != "gce://my-project/us-central1-f/b" {
			t.Errorf("found %+v, complete: %t, error %v", found, complete, err)
		}
		if calls, _ := w.Calls(); calls[w.ListCall("instances")] != 2 {
			t.Errorf("calls %v", calls)
		}
		w.Silence("zones/europe-west4-a")
		if found, complete, err := w.lister(t).(finder).Find(t.Context(), names); len(found) > 0 || complete || err != nil {
			t.Errorf("found %+v, complete: %t, error %v", found, complete, err)
		}
	})
}

func TestAnInstallationIsNeverAPartOfTheFilterThatMeansSomething(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		for _, installation := range []string{"", `x" OR name != "`, "UPPER", strings.Repeat("x", 64)} {
			found, complete, err := w.lister(t).List(t.Context(), installation)
			if len(found) > 0 || complete || err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("installation: invalid value %q: must be ", installation)) {
				t.Errorf("%q: %d VMs, complete: %t, error %v", installation, len(found), complete, err)
			}
		}
		if _, n := w.Calls(); n > 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestLeakedResourcesAreListedWithWhatTheyAreAttachedTo(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		of := func(typ, name, location, user string) gcptest.Resource {
			return gcptest.Resource{Type: typ, Name: name, Location: location, Labels: labels(ours), CreatedAt: noon, User: user}
		}
		foreign, deleting := of(gcptest.Disk, "foreign", "europe-west4-a", ""), of(gcptest.Disk, "deleting", "europe-west4-a", "")
		foreign.Labels = labels(theirs)
		deleting.Status = "DELETING"
		machine := gcptest.Link(projectOfTest, "europe-west4-a", "a")
		w.state.Set([]gcptest.VM{vm("a")},
			of(gcptest.Disk, "a", "europe-west4-a", machine), of(gcptest.Disk, "b", "europe-west4-b", ""), of(gcptest.Disk, "b", "europe-west4-c", ""),
			of(gcptest.Address, "a", "europe-west4", machine), of(gcptest.Address, "b", "us-central1", ""), foreign, deleting)
		found, complete, err := w.lister(t).ListResources(t.Context(), ours)
		if err != nil || !complete {
			t.Fatalf("complete: %t, error %v", complete, err)
		}
		user := "projects/my-project/zones/europe-west4-a/instances/a"
		want := []inventory.Resource{
			{Type: "Address", ID: "projects/my-project/regions/europe-west4/addresses/a", AttachedTo: user},
			{Type: "Address", ID: "projects/my-project/regions/us-central1/addresses/b"},
			{Type: "Disk", ID: "projects/my-project/zones/europe-west4-a/disks/a", AttachedTo: user},
			{Type: "Disk", ID: "projects/my-project/zones/europe-west4-b/disks/b"},
			{Type: "Disk", ID: "projects/my-project/zones/europe-west4-c/disks/b"},
		}
		for i := range want {
			want[i].Tags, want[i].CreatedAt = labels(ours), noon
		}
		if d := cmp.Diff(want, found); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if calls, n := w.Calls(); n != 3 { // A token, and two lists.
			t.Errorf("calls %v", calls)
		}
	})
}
