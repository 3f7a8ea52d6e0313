package azure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

func TestAListHasTheVMsOfAnInstallationInAllResourceGroups(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		elsewhere, foreign, untagged, deleting := vm("b"), vm("c"), vm("d"), vm("e")
		elsewhere.ResourceGroup = "other-nodes"
		foreign.Tags = tags(theirs)
		untagged.Tags = nil
		deleting.ProvisioningState = "Deleting"
		w.state.Set([]azuretest.VM{vm("a"), elsewhere, foreign, untagged, deleting})
		want := []inventory.VM{{
			ExternalName: "a", ProviderID: "azure:///subscriptions/" + subscription + "/resourceGroups/production-nodes/providers/Microsoft.Compute/virtualMachines/a",
			Tags: tags(ours), CreatedAt: noon, State: inventory.StateRunning, StateText: "provisioning state Succeeded, power state running",
		}, {
			ExternalName: "b", ProviderID: "azure:///subscriptions/" + subscription + "/resourceGroups/other-nodes/providers/Microsoft.Compute/virtualMachines/b",
			Tags: tags(ours), CreatedAt: noon, State: inventory.StateRunning, StateText: "provisioning state Succeeded, power state running",
		}}
		if d := cmp.Diff(want, mustList(t, w.lister(t), 2)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestTheStateOfAVM(t *testing.T) {
	cases := map[string]struct {
		provisioning, power string
		want                inventory.State
		text                string
	}{
		"AFailedAllocationIsFailed":                   {"Failed", "", inventory.StateFailed, "provisioning state Failed, power state unknown"},
		"AFailedAllocationThatIsStoppedIsFailed":      {"Failed", "stopped", inventory.StateFailed, "provisioning state Failed, power state stopped"},
		"AVMWhoseExtensionFailedRuns":                 {"Failed", "running", inventory.StateRunning, "provisioning state Failed, power state running"},
		"AVMThatIsBeingCreatedIsPending":              {"Creating", "", inventory.StatePending, "provisioning state Creating, power state unknown"},
		"AVMThatStartsIsPending":                      {"Creating", "starting", inventory.StatePending, "provisioning state Creating, power state starting"},
		"AVMThatRunsWhileItIsUpdatedRuns":             {"Updating", "running", inventory.StateRunning, "provisioning state Updating, power state running"},
		"AVMThatAUserStoppedIsStopped":                {"Succeeded", "stopped", inventory.StateStopped, "provisioning state Succeeded, power state stopped"},
		"ASpotVMThatWasEvictedIsStopped":              {"Succeeded", "deallocated", inventory.StateStopped, "provisioning state Succeeded, power state deallocated"},
		"AVMThatIsBeingDeallocatedIsStopped":          {"Updating", "deallocating", inventory.StateStopped, "provisioning state Updating, power state deallocating"},
		"AVMWithoutPowerStateIsUnknown":               {"Succeeded", "", inventory.StateUnknown, "provisioning state Succeeded, power state unknown"},
		"APowerStateThatIsNewIsUnknownAndIsReported":  {"Succeeded", "dreaming", inventory.StateUnknown, "provisioning state Succeeded, power state dreaming"},
		"AVMInAPowerStateOfUnknownAndFailedIsFailed":  {"Failed", "unknown", inventory.StateFailed, "provisioning state Failed, power state unknown"},
		"AVMThatFailedToStopKeepsRunningAsFarAsKnown": {"Failed", "starting", inventory.StatePending, "provisioning state Failed, power state starting"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
				one := vm("a")
				one.ProvisioningState, one.PowerState = tc.provisioning, tc.power
				w.state.Set([]azuretest.VM{one})
				got := mustList(t, w.lister(t), 1)[0]
				if got.State != tc.want || got.StateText != tc.text {
					t.Errorf("state %q: %q, want %q: %q", got.State, got.StateText, tc.want, tc.text)
				}
			})
		})
	}
}

func TestFiveHundredVMsCostOneQueryAndOneLookAtTheRights(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(500))
		l := w.lister(t)
		mustList(t, l, 500)
		mustList(t, l, 500)
		want := map[string]int{
			"GET /v2.0/.well-known/openid-configuration": 1, "POST /oauth2/v2.0/token": 1, // Once an hour.
			azuretest.Query: 2, azuretest.Permissions(subscription): 2,
		}
		calls, _ := w.Calls()
		if d := cmp.Diff(want, calls); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestAllPagesAreRead(t *testing.T) {
	inWorld(t, azuretest.Options{PageSize: 100}, func(t *testing.T, w *world) {
		w.state.Set(vms(450))
		seen := map[string]bool{}
		for _, v := range mustList(t, w.lister(t), 450) {
			seen[v.ExternalName] = true
		}
		if calls, _ := w.Calls(); len(seen) != 450 || calls[azuretest.Query] != 5 {
			t.Errorf("%d VMs by %d queries", len(seen), calls[azuretest.Query])
		}
	})
}

func TestNothingIsConcludedIfAPageFails(t *testing.T) {
	inWorld(t, azuretest.Options{PageSize: 100}, func(t *testing.T, w *world) {
		w.state.Set(vms(450))
		second := func(_ string, body []byte) bool { return strings.Contains(string(body), "$skipToken") }
		w.Break(fakes.Fault{Call: azuretest.Query, Match: second, Status: 500, Code: "InternalServerError", Message: "Encountered internal server error."})
		mustFail(t, t.Context(), w.lister(t), "500 InternalServerError: Encountered internal server error.")
		w.Mend()
		w.Break(fakes.Fault{Call: azuretest.Query, Match: second, Status: 500, Code: "InternalServerError", Times: 2})
		mustList(t, w.lister(t), 450) // Two failures are retried.
	})
}

func TestAListThatIsCutOffIsNotComplete(t *testing.T) {
	inWorld(t, azuretest.Options{Cut: 7}, func(t *testing.T, w *world) {
		w.state.Set(vms(10))
		if found, complete, err := w.lister(t).List(t.Context(), ours); err != nil || complete || len(found) > 0 {
			t.Errorf("%d VMs, complete: %t, error %v", len(found), complete, err)
		}
	})
}

// shrinking is a State of which the first VM is deleted between two looks.
type shrinking struct{ vms []azuretest.VM }

func (s *shrinking) Resources() []azuretest.Resource { return nil }
func (s *shrinking) VMs() []azuretest.VM {
	defer func() { s.vms = s.vms[1:] }()
	return s.vms
}

func TestAListOfWhichAVMIsDeletedBetweenTwoPagesIsNotComplete(t *testing.T) {
	inWorld(t, azuretest.Options{PageSize: 10, State: &shrinking{vms(30)}}, func(t *testing.T, w *world) {
		if found, complete, err := w.lister(t).List(t.Context(), ours); err != nil || complete || len(found) > 0 {
			t.Errorf("%d VMs, complete: %t, error %v", len(found), complete, err)
		}
	})
}

func TestAListWaitsUntilItsQuotaIsNew(t *testing.T) {
	inWorld(t, azuretest.Options{PageSize: 100, Quota: 1, Window: 5 * time.Second}, func(t *testing.T, w *world) {
		w.state.Set(vms(300))
		begin := time.Now()
		mustList(t, w.lister(t), 300)
		if d := time.Since(begin); d < 10*time.Second || d > 12*time.Second {
			t.Errorf("3 queries with one per 5 seconds took %s", d)
		}
	})
}

func TestAListThatIsThrottledForMinutesIsAnError(t *testing.T) {
	throttled := fakes.Fault{Call: azuretest.Query, Status: 429, Code: "TooManyRequests", Message: "The request is being throttled as the limit has been reached for operation type - Read."}
	t.Run("AtOnceIfAzureDemandsAWaitOfMinutes", func(t *testing.T) {
		inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
			throttled.RetryAfter = "240"
			w.Break(throttled)
			begin := time.Now()
			mustFail(t, t.Context(), w.lister(t), "Throttled: 429 TooManyRequests: The request is being throttled")
			if d := time.Since(begin); d > time.Second {
				t.Errorf("took %s", d)
			}
		})
	})
	t.Run("AtTheDeadlineIfAzureKeepsThrottling", func(t *testing.T) {
		inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
			throttled.RetryAfter = "10"
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
		inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
			throttled.RetryAfter = "10"
			w.Break(throttled)
			mustFail(t, t.Context(), w.lister(t), "Throttled: 429")
			if calls, _ := w.Calls(); calls[azuretest.Query] != 1+retries {
				t.Errorf("%d queries", calls[azuretest.Query])
			}
		})
	})
}

func TestTwoVMsOfOneNameAreAnError(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		other := vm("A")
		other.ResourceGroup = "other-nodes"
		w.state.Set([]azuretest.VM{vm("a"), other})
		err := mustFail(t, t.Context(), w.lister(t), "have the same name")
		for _, id := range []string{"/resourceGroups/production-nodes/providers/Microsoft.Compute/virtualMachines/a", "/resourceGroups/other-nodes/providers/Microsoft.Compute/virtualMachines/A"} {
			if !strings.Contains(fmt.Sprint(err), id) {
				t.Errorf("error %v, want %s in it", err, id)
			}
		}
		other.ProvisioningState = "Deleting"
		w.state.Set([]azuretest.VM{vm("a"), other})
		mustList(t, w.lister(t), 1)
	})
}

func TestVMsAreFoundByTheirNamesWhateverTheirTags(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		untagged, elsewhere, deleting := vm("b"), vm("b"), vm("c")
		untagged.Tags = nil
		elsewhere.ResourceGroup = "other-nodes"
		deleting.ProvisioningState = "Deleting"
		w.state.Set([]azuretest.VM{vm("a"), untagged, elsewhere, deleting, vm("d")})
		names := []string{"b", "c", "gone", "', 'd"}
		for i := range 300 {
			names = append(names, fmt.Sprintf("gone-%d", i))
		}
		found, complete, err := w.lister(t).(finder).Find(t.Context(), names)
		if err != nil || !complete || len(found) != 2 || found[0].ExternalName != "b" || found[1].ExternalName != "b" || found[0].ProviderID == found[1].ProviderID {
			t.Errorf("found %+v, complete: %t, error %v", found, complete, err)
		}
		if calls, _ := w.Calls(); calls[azuretest.Query] != 2 {
			t.Errorf("calls %v", calls)
		}
		w.Assign(client, azuretest.Assignment{ResourceGroup: "Production-Nodes", Actions: azuretest.Reader})
		if found, complete, err := w.lister(t).(finder).Find(t.Context(), names); len(found) > 0 || complete || err == nil {
			t.Errorf("found %+v, complete: %t, error %v", found, complete, err)
		}
	})
}

func TestAnInstallationIsNeverAPartOfTheQueryThatMeansSomething(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		for _, installation := range []string{"", "x' or '1' == '1", `x\`, strings.Repeat("x", 257)} {
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
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		machine := azuretest.ID(subscription, "nodes", "microsoft.compute/virtualmachines", "a")
		address := azuretest.ID(subscription, "nodes", azuretest.NetworkInterface, "a-nic") + "/ipConfigurations/internal"
		of := func(typ, name, attachedTo string) azuretest.Resource {
			return azuretest.Resource{Type: typ, Name: name, ResourceGroup: "nodes", Tags: tags(ours), CreatedAt: noon, AttachedTo: attachedTo}
		}
		foreign, deleting := of(azuretest.Disk, "foreign", ""), of(azuretest.Disk, "deleting", "")
		foreign.Tags = tags(theirs)
		deleting.ProvisioningState = "Deleting"
		w.state.Set([]azuretest.VM{vm("a")},
			of(azuretest.NetworkInterface, "a-nic", machine), of(azuretest.PublicIPAddress, "a-publicip", address), of(azuretest.Disk, "a-os", machine),
			of(azuretest.NetworkInterface, "b-nic", ""), of(azuretest.PublicIPAddress, "b-publicip", ""), of(azuretest.Disk, "b-os", ""), foreign, deleting)
		found, complete, err := w.lister(t).ListResources(t.Context(), ours)
		if err != nil || !complete {
			t.Fatalf("complete: %t, error %v", complete, err)
		}
		want := []inventory.Resource{
			{Type: "Disk", AttachedTo: machine, CreatedAt: noon, ID: azuretest.ID(subscription, "nodes", azuretest.Disk, "a-os")},
			{Type: "Disk", CreatedAt: noon, ID: azuretest.ID(subscription, "nodes", azuretest.Disk, "b-os")},
			{Type: "NetworkInterface", AttachedTo: machine, ID: azuretest.ID(subscription, "nodes", azuretest.NetworkInterface, "a-nic")},
			{Type: "NetworkInterface", ID: azuretest.ID(subscription, "nodes", azuretest.NetworkInterface, "b-nic")},
			{Type: "PublicIPAddress", AttachedTo: address, ID: azuretest.ID(subscription, "nodes", azuretest.PublicIPAddress, "a-publicip")},
			{Type: "PublicIPAddress", ID: azuretest.ID(subscription, "nodes", azuretest.PublicIPAddress, "b-publicip")},
		}
		for i := range want {
			want[i].Tags = tags(ours)
		}
		if d := cmp.Diff(want, found); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if calls, _ := w.Calls(); calls[azuretest.Query] != 1 || calls[azuretest.Permissions(subscription)] != 1 {
			t.Errorf("calls %v", calls)
		}
	})
}
