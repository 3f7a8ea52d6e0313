package openstack

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/openstack"
)

const create = "POST /compute/v2.1/servers"

func TestAnInstanceIsMadeAndDeleted(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 5 * time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		made := w.cloud.Servers("ours")["a"]
		if got := meta.GetExternalName(vm); got != made.ID {
			t.Errorf("external name %q, want %q", got, made.ID)
		}
		if made.UserData != "#cloud-config\n" || made.Zone != "zone-b" {
			t.Errorf("made %+v", made)
		}
		if d := cmp.Diff(vm.Spec.ForProvider.Metadata, made.Metadata); d != "" {
			t.Errorf("metadata (-want +got):\n%s", d)
		}
		if at := vm.Status.AtProvider; *at.AccessIPV4 != made.IP || *at.Network[0].FixedIPV4 != made.IP || *at.AvailabilityZone != "zone-b" || *at.PowerState != "active" {
			t.Errorf("observed %+v", at)
		}
		b, err := json.Marshal(vm)
		if err != nil {
			t.Fatal(err)
		}
		noSecret(t, string(b))
		if strings.Contains(string(b), "cloud-config") {
			t.Error("the object shows the user data")
		}
		calls, _ := w.cloud.Calls()
		for call := range calls {
			if strings.HasPrefix(call, "PUT") || strings.HasPrefix(call, "POST") && call != create && !strings.HasPrefix(call, "POST /identity/") {
				t.Errorf("the server was changed: %s", call)
			}
		}

		w.Delete(vm)
		w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
		if left := w.cloud.Servers("ours"); len(left) != 0 || w.posts() != 1 {
			t.Errorf("left: %v, after %d creations", left, w.posts())
		}
	})
}

func TestAProviderThatStartsAnewKnowsItsInstances(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		version := vm.ResourceVersion
		w.Restart()
		time.Sleep(time.Hour)
		w.Get(vm)
		if r, s := vm.GetCondition(xpv2.TypeReady), vm.GetCondition(xpv2.TypeSynced); r.Reason != xpv2.ReasonAvailable || s.Reason != xpv2.ReasonReconcileSuccess {
			t.Errorf("Ready: %+v, Synced: %+v", r, s)
		}
		if w.posts() != 1 || vm.ResourceVersion != version {
			t.Errorf("%d servers were made, and the object was written: %t", w.posts(), vm.ResourceVersion != version)
		}
	})
}

func TestATokenThatExpiresIsRenewed(t *testing.T) {
	inWorld(t, fakecloud.Options{TokenLife: 10 * time.Minute}, func(t *testing.T, w *world) {
		vm := w.running("a")
		time.Sleep(2 * time.Hour)
		w.Get(vm)
		if c := vm.GetCondition(xpv2.TypeSynced); c.Reason != xpv2.ReasonReconcileSuccess {
			t.Errorf("Synced: %+v", c)
		}
		if calls, _ := w.cloud.Calls(); calls["POST /identity/v3/auth/tokens"] > 14 {
			t.Errorf("%d logins in two hours", calls["POST /identity/v3/auth/tokens"])
		}
		if warnings := w.Warnings(); len(warnings) > 0 {
			t.Errorf("warnings %q", warnings)
		}
	})
}

// TestALostAnswerMakesNoSecondInstance: names are not unique in OpenStack. The provider finds the server by its name and
// its metadata, and creates another one only if there is none.
func TestALostAnswerMakesNoSecondInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		fault fakecloud.Fault
		posts int
	}{
		"TheConnectionIsCut":        {fakecloud.Fault{Call: create, Lost: true}, 1},
		"TheGatewayGivesUp":         {fakecloud.Fault{Call: create, Status: 504, Code: "error", Message: "gateway timeout"}, 2},
		"NovaHasAnUnexpectedError":  {fakecloud.Fault{Call: create, Status: 500, Code: "computeFault", Message: "Unexpected API Error."}, 2},
		"NothingIsBehindTheGateway": {fakecloud.Fault{Call: create, Status: 503, Code: "error", Message: "no server is available"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				tc.fault.Times = 1
				w.cloud.Break(tc.fault)
				vm := instance("a")
				w.Add(vm)
				w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
				w.Restart()
				time.Sleep(time.Hour)
				if n := len(w.cloud.Servers("ours")); n != 1 || w.posts() != tc.posts {
					t.Errorf("%d servers after %d creations, want one after %d", n, w.posts(), tc.posts)
				}
				w.Delete(vm)
				w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
			})
		})
	}
}

// TestAnInstanceThatIsMadeLateIsFound: Nova creates it after the gateway has given up. Servers of the same name, and
// those of the Machine of another installation, are not the Machine's.
func TestAnInstanceThatIsMadeLateIsFound(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		vm := instance("a")
		w.cloud.Create("ours", "a", nil)
		w.cloud.Create("ours", "a", map[string]string{machinev1alpha1.TagInstallation: "another", machinev1alpha1.TagMachineUID: "uid-of-machine-a"})
		w.cloud.Create("ours", "aa", vm.Spec.ForProvider.Metadata)
		w.cloud.Break(fakecloud.Fault{Call: create, Status: 504, Code: "error", Message: "gateway timeout", Times: 1})
		w.Add(vm)
		w.Until(soon, "the provider searches", func() bool {
			w.Get(vm)
			return strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "it may still be created")
		})
		id := w.cloud.Create("ours", "a", vm.Spec.ForProvider.Metadata)
		w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
		if meta.GetExternalName(vm) != id || w.posts() != 1 {
			t.Errorf("external name %q, want %q; %d creations", meta.GetExternalName(vm), id, w.posts())
		}
	})
}

// TestAProviderThatIsKilledInACreation: a new process finds the server whose creation has no recorded answer, and deletes
// it if its Machine is deleted meanwhile.
func TestAProviderThatIsKilledInACreation(t *testing.T) {
	for name, deleted := range map[string]bool{"TheServerIsUsed": false, "TheServerIsDeleted": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
				vm := instance("a")
				meta.SetExternalCreatePending(vm, time.Now())
				vm.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
				id := w.cloud.Create("ours", "a", vm.Spec.ForProvider.Metadata)
				w.Add(vm)
				if deleted {
					w.Delete(vm)
					w.Until(10*time.Minute, "it is gone", func() bool { return w.Gone(vm) })
					if left := w.cloud.Servers("ours"); len(left) > 0 {
						t.Errorf("left: %v", left)
					}
					return
				}
				w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
				if meta.GetExternalName(vm) != id || w.posts() != 0 {
					t.Errorf("external name %q, want %q; %d creations", meta.GetExternalName(vm), id, w.posts())
				}
			})
		})
	}
}

// TestKillsDuringCreationsLeaveOneInstanceEach kills the provider four times while it creates instances, and as often while it
// deletes them. Nova takes seconds to accept a server, so each kill loses the responses to several creations, some of which Nova
// carries out after the provider has restarted.
func TestKillsDuringCreationsLeaveOneInstanceEach(t *testing.T) {
	const n, kills = 30, 4
	inWorld(t, fakecloud.Options{Step: 5 * time.Second, Accept: 4 * time.Second, ServerLimit: n}, func(t *testing.T, w *world) {
		random := rand.New(rand.NewSource(1))
		vms := make([]*v1alpha1.VirtualMachine, n)
		for i := range vms {
			vms[i] = instance(fmt.Sprintf("a-%d", i))
			w.Add(vms[i])
		}
		w.KillAtRandom(kills, 6*time.Second, random)
		w.Until(10*time.Minute, "all run", func() bool {
			return !slices.ContainsFunc(vms, func(vm *v1alpha1.VirtualMachine) bool {
				w.Get(vm)
				return vm.GetCondition(xpv2.TypeReady).Reason != xpv2.ReasonAvailable
			})
		})
		time.Sleep(2 * settleTime)
		servers := w.cloud.Servers("ours")
		for _, vm := range vms {
			if id := meta.GetExternalName(vm); servers[vm.GetName()].ID != id || id == "" {
				t.Errorf("instance %s has the server %q, and Nova has %q", vm.GetName(), id, servers[vm.GetName()].ID)
			}
		}
		if len(servers) != n || w.posts() != n {
			t.Errorf("%d servers after %d creations, want %d", len(servers), w.posts(), n)
		}
		for _, vm := range vms {
			w.Delete(vm)
		}
		w.KillAtRandom(kills, 2*time.Second, random)
		w.Until(10*time.Minute, "all are gone", func() bool {
			return !slices.ContainsFunc(vms, func(vm *v1alpha1.VirtualMachine) bool { return !w.Gone(vm) })
		})
		if left := w.cloud.Servers("ours"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestACreationThatHadNoEffectIsTriedAgain(t *testing.T) {
	for name, f := range map[string]fakecloud.Fault{
		"NobodyIsBehindTheGateway": {Call: create, Status: 503, Code: "error", Message: "no server is available"},
		"TheCatalogueIsAway":       {Call: "GET /compute/v2.1/flavors/detail", Refused: true},
		"TheNetworksAreAway":       {Call: "GET /network/v2.0/networks", Status: 500, Code: "NeutronError", Message: "sorry"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
				f.Times = 3
				w.cloud.Break(f)
				w.running("a")
				if n := len(w.cloud.Servers("ours")); n != 1 {
					t.Errorf("%d servers", n)
				}
			})
		})
	}
}

func TestAnInstanceThatFailsSaysWhyAndIsKnown(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 5 * time.Second}, func(t *testing.T, w *world) {
		w.cloud.SetFull(true)
		vm := instance("a")
		w.Add(vm)
		c := w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonUnavailable)
		if c.Message != "power state: error: No valid host was found. " {
			t.Errorf("Ready: %s", c.Message)
		}
		if id := w.cloud.Servers("ours")["a"].ID; meta.GetExternalName(vm) != id || ptr.Deref(vm.Status.AtProvider.PowerState, "") != "error" || w.posts() != 1 {
			t.Errorf("external name %q, want %q; power state %v; %d creations", meta.GetExternalName(vm), id, vm.Status.AtProvider.PowerState, w.posts())
		}
		w.Delete(vm)
		w.Until(soon, "it is gone", func() bool { return w.Gone(vm) && len(w.cloud.Servers("ours")) == 0 })
	})
}

// TestAnInstanceBeyondTheQuotaFails: Nova accepts servers that are requested at once, and checks the quota again later.
func TestAnInstanceBeyondTheQuotaFails(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 5 * time.Second, ServerLimit: 1}, func(t *testing.T, w *world) {
		first, second := instance("a"), instance("b")
		w.Add(first)
		w.Until(soon, "it is accepted", func() bool { return w.posts() == 1 })
		w.Add(second)
		w.UntilCondition(soon, first, xpv2.TypeReady, xpv2.ReasonAvailable)
		c := w.UntilCondition(soon, second, xpv2.TypeReady, xpv2.ReasonUnavailable)
		if c.Message != "power state: error: Quota exceeded for instances: Requested 1, but already used 1 of 1 instances" {
			t.Errorf("Ready: %s", c.Message)
		}
		w.Delete(second)
		w.Until(soon, "it is gone", func() bool { return w.Gone(second) && len(w.cloud.Servers("ours")) == 1 })
	})
}

func TestAnInstanceThatVanishesIsMissing(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Lose(meta.GetExternalName(vm))
		w.UntilCondition(soon, vm, xpv2.TypeReady, machinev1alpha1.ReasonMissing)
		time.Sleep(10 * time.Minute)
		w.Delete(vm)
		w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
		if w.posts() != 1 {
			t.Errorf("it was made again, %d times", w.posts()-1)
		}
	})
}

func TestAnInstanceThatIsShutOffIsNotReady(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.PowerOff(meta.GetExternalName(vm))
		if c := w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonUnavailable); c.Message != "power state: shutoff" {
			t.Errorf("Ready: %+v", c)
		}
	})
}

func TestWhatOpenStackRefusesIsSaidAndTriedAgain(t *testing.T) {
	cases := map[string]struct {
		options fakecloud.Options
		before  func(*world)
		vm      func(*v1alpha1.VirtualMachineParameters)
		want    string
	}{
		"Quota":   {options: fakecloud.Options{ServerLimit: 1}, before: func(w *world) { w.running("first") }, want: "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances"},
		"Flavor":  {vm: func(p *v1alpha1.VirtualMachineParameters) { p.FlavorName = ptr.To("huge") }, want: "Unable to find flavor with name huge"},
		"Image":   {vm: func(p *v1alpha1.VirtualMachineParameters) { p.ImageName = ptr.To("beos") }, want: "Unable to find image with name beos"},
		"NoImage": {vm: func(p *v1alpha1.VirtualMachineParameters) { p.ImageName = nil }, want: "Neither a boot device, image ID, or image name were able to be determined"},
		"Network": {vm: func(p *v1alpha1.VirtualMachineParameters) { p.Network[0].Name = ptr.To("none") }, want: "Could not find any matching network for name none"},
		"Zone":    {vm: func(p *v1alpha1.VirtualMachineParameters) { p.AvailabilityZone = ptr.To("moon") }, want: "The requested availability zone is not available"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.options, func(t *testing.T, w *world) {
				if tc.before != nil {
					tc.before(w)
				}
				vm := instance("a")
				if tc.vm != nil {
					tc.vm(&vm.Spec.ForProvider)
				}
				w.Add(vm)
				c := w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
				if !strings.Contains(c.Message, tc.want) || !strings.Contains(c.Message, `ClusterProviderConfig "default"`) {
					t.Errorf("Synced: %s", c.Message)
				}
				if s, there := w.cloud.Servers("ours")["a"]; there {
					t.Errorf("there is %+v", s)
				}
			})
		})
	}
}

func TestFiftyInstancesUnderARateLimit(t *testing.T) {
	const n = 50
	inWorld(t, fakecloud.Options{Step: 5 * time.Second, RateLimit: 100, Refill: 500 * time.Millisecond}, func(t *testing.T, w *world) {
		begin := time.Now()
		vms := make([]*v1alpha1.VirtualMachine, n)
		for i := range vms {
			vms[i] = instance(fmt.Sprintf("a-%d", i))
			w.Add(vms[i])
		}
		w.Until(time.Hour, "all run", func() bool {
			for _, vm := range vms {
				if w.Get(vm); vm.GetCondition(xpv2.TypeReady).Reason != xpv2.ReasonAvailable {
					return false
				}
			}
			return true
		})
		calls, sum := w.cloud.Calls()
		t.Logf("%d servers in %s, %d calls, %.1f a server:\n%s", n, time.Since(begin).Round(time.Second), sum, float64(sum)/n, fakes.Table(calls))
		if len(w.cloud.Servers("ours")) != n {
			t.Errorf("%d servers", len(w.cloud.Servers("ours")))
		}
		if warnings := w.Warnings(); len(warnings) > n {
			t.Errorf("%d warnings, the first %q", len(warnings), warnings[0])
		}
	})
}
