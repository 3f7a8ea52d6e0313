package hcloud

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/hcloud"
)

func TestAServerIsMadeAndDeleted(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 3 * time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		made := w.cloud.Servers("ours")["a"]
		if got, want := meta.GetExternalName(vm), fmt.Sprint(made.ID); got != want {
			t.Errorf("external name %q, want %q", got, want)
		}
		if got := w.cloud.UserData(made.ID); got != "#cloud-config\n" {
			t.Errorf("user data %q", got)
		}
		if d := cmp.Diff(vm.Spec.ForProvider.Labels, made.Labels); d != "" {
			t.Errorf("labels (-want +got):\n%s", d)
		}
		if made.Location.Name != "nbg1" || made.PlacementGroup == nil || len(made.PublicNet.Firewalls) != 1 {
			t.Errorf("made %+v", made)
		}
		at := vm.Status.AtProvider
		if *at.IPv4Address != made.PublicNet.IPv4.IP || !strings.HasPrefix(*at.IPv6Address, "2001:db8:") || *at.Network[0].IP != made.PrivateNet[0].IP {
			t.Errorf("addresses %s, %s, %s", *at.IPv4Address, *at.IPv6Address, *at.Network[0].IP)
		}
		b, err := json.Marshal(vm)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"cloud-config", goodToken} {
			if strings.Contains(string(b), secret) {
				t.Errorf("the object shows %q", secret)
			}
		}
		calls, _ := w.cloud.Calls()
		for call := range calls {
			if strings.HasPrefix(call, "PUT") || strings.HasPrefix(call, "POST") && call != "POST /servers" && call != "POST /servers/{id}/actions/attach_to_network" {
				t.Errorf("the server was changed: %s", call)
			}
		}

		w.Delete(vm)
		w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
		if left := w.cloud.Servers("ours"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if n := w.posts(); n != 1 {
			t.Errorf("%d servers were made", n)
		}
	})
}

func TestAServerWithoutPublicAddressesIsStartedInItsNetwork(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := server("a")
		vm.Spec.ForProvider.PublicNet = []v1alpha1.PublicNetParameters{{IPv4Enabled: ptr.To(false), IPv6Enabled: ptr.To(false)}}
		w.Add(vm)
		w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
		at := vm.Status.AtProvider
		if ptr.Deref(at.IPv4Address, "") != "" || ptr.Deref(at.IPv6Address, "") != "" || ptr.Deref(at.Network[0].IP, "") == "" {
			t.Errorf("addresses %+v", at)
		}
	})
}

func TestAServerAtRestCostsOneCallAPoll(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		time.Sleep(5 * time.Minute)
		_, before := w.cloud.Calls()
		w.Get(vm)
		version := vm.ResourceVersion
		time.Sleep(time.Hour)
		_, after := w.cloud.Calls()
		if n := after - before; n > 61 {
			t.Errorf("%d calls in an hour, want one a minute", n)
		}
		if w.Get(vm); vm.ResourceVersion != version {
			t.Error("it was written to although nothing happened")
		}
	})
}

func TestAPollIntervalOfItsOwnSpendsNotTheCallsOfAProject(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.Change(vm, func() { meta.AddAnnotations(vm, map[string]string{meta.AnnotationKeyPollInterval: "100ms"}) })
		time.Sleep(5 * time.Minute)
		_, before := w.cloud.Calls()
		time.Sleep(10 * time.Minute)
		_, after := w.cloud.Calls()
		if n := after - before; n < 55 || n > 61 {
			t.Errorf("%d calls in 10 minutes, want one in 10 seconds", n)
		}
	})
}

func TestAProviderThatStartsAnewKnowsItsServers(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.Restart()
		time.Sleep(5 * time.Minute)
		w.Get(vm)
		if c := vm.GetCondition(xpv2.TypeReady); c.Reason != xpv2.ReasonAvailable {
			t.Errorf("Ready: %+v", c)
		}
		if c := vm.GetCondition(xpv2.TypeSynced); c.Reason != xpv2.ReasonReconcileSuccess {
			t.Errorf("Synced: %+v", c)
		}
		if n := w.posts(); n != 1 {
			t.Errorf("%d servers were made", n)
		}
	})
}

func TestALostAnswerMakesNoSecondServer(t *testing.T) {
	cases := map[string]func(*world){
		"TheAnswerOfTheCreation": func(w *world) { w.cloud.Break(fakecloud.Fault{Call: "POST /servers", Lost: true, Times: 1}) },
		"TheCallItself":          func(w *world) { w.cloud.Break(fakecloud.Fault{Call: "POST /servers", Refused: true, Times: 1}) },
		"AnErrorOfTheBackend": func(w *world) {
			w.cloud.Break(fakecloud.Fault{Call: "POST /servers", Status: 503, Code: "service_error", Message: "unavailable", Times: 1})
		},
		"TheActionsThatFollow": func(w *world) { w.cloud.Break(fakecloud.Fault{Call: "GET /actions", Refused: true, Times: 1}) },
		"AndWhatWouldReportItToo": func(w *world) {
			w.cloud.Break(fakecloud.Fault{Call: "POST /servers", Lost: true, Times: 1})
			w.cloud.Break(fakecloud.Fault{Call: "GET /servers", Refused: true, Times: 3})
		},
	}
	for name, breakIt := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				breakIt(w)
				vm := w.running("a")
				if n := len(w.cloud.Servers("ours")); n != 1 || meta.GetExternalName(vm) != fmt.Sprint(w.cloud.Servers("ours")["a"].ID) {
					t.Errorf("%d servers, external name %q", n, meta.GetExternalName(vm))
				}
				if meta.ExternalCreateIncomplete(vm) {
					t.Error("its creation is not recorded")
				}
			})
		})
	}
}

// TestAProviderThatDiesInACreationFindsItsServer has the annotations of a process that
// was killed between the call and its record.
func TestAProviderThatDiesInACreationFindsItsServer(t *testing.T) {
	for name, deleted := range map[string]bool{"AndKeepsIt": false, "AndDeletesItWithItsResource": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				w.cloud.Break(fakecloud.Fault{Call: "POST /servers", Lost: true, Times: 1})
				w.cloud.Break(fakecloud.Fault{Call: "GET /servers", Refused: true})
				vm := server("a")
				w.Add(vm)
				w.Until(soon, "a creation is pending", func() bool { w.Get(vm); return meta.ExternalCreateIncomplete(vm) && w.posts() == 1 })
				w.Restart()
				if deleted {
					w.Delete(vm)
				}
				w.cloud.Mend()
				if deleted {
					w.Until(soon, "it is gone", func() bool { return w.Gone(vm) && len(w.cloud.Servers("ours")) == 0 })
				} else {
					w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
				}
				if n := w.posts(); n != 1 {
					t.Errorf("%d servers were made", n)
				}
			})
		})
	}
}

func TestAServerOfAnotherMachineIsNotTaken(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		w.running("a")
		vm := server("a")
		vm.Name, vm.UID = "b", "uid-of-b"
		vm.Spec.ForProvider.Labels["drover-machine-uid"] = "of another machine"
		w.Add(vm)
		c := w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
		if !strings.Contains(c.Message, "uniqueness_error") || meta.GetExternalName(vm) != "" {
			t.Errorf("Synced: %s; external name %q", c.Message, meta.GetExternalName(vm))
		}
	})
}

func TestAServerThatVanishesIsMissing(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Lose(w.cloud.Servers("ours")["a"].ID)
		w.UntilCondition(soon, vm, xpv2.TypeReady, machinev1alpha1.ReasonMissing)
		time.Sleep(time.Hour)
		if n := w.posts(); n != 1 {
			t.Errorf("it was made again, %d times", n-1)
		}
		w.Delete(vm)
		w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
	})
}

func TestAServerThatIsPoweredOffIsNotReady(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.PowerOff(w.cloud.Servers("ours")["a"].ID)
		if c := w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonUnavailable); c.Message != "status: off" {
			t.Errorf("Ready: %+v", c)
		}
	})
}

func TestWhatHetznerRefusesIsSaidAndTriedAgain(t *testing.T) {
	cases := map[string]struct {
		options fakecloud.Options
		before  func(*world)
		vm      func(*v1alpha1.VirtualMachineParameters)
		want    string
	}{
		"Quota":          {options: fakecloud.Options{ServerLimit: 1}, before: func(w *world) { w.running("first") }, want: "server limit exceeded (resource_limit_exceeded)"},
		"Capacity":       {before: func(w *world) { w.cloud.SellOut("cpx31", "nbg1") }, want: "error during placement (resource_unavailable)"},
		"ServerType":     {vm: func(p *v1alpha1.VirtualMachineParameters) { p.ServerType = ptr.To("huge") }, want: "server type huge not found"},
		"Image":          {vm: func(p *v1alpha1.VirtualMachineParameters) { p.Image = ptr.To("beos") }, want: "image beos for architecture x86 not found"},
		"SSHKey":         {vm: func(p *v1alpha1.VirtualMachineParameters) { p.SSHKeys = []*string{ptr.To("nobody")} }, want: "SSH key not found: nobody"},
		"Location":       {vm: func(p *v1alpha1.VirtualMachineParameters) { p.Location = ptr.To("moon1") }, want: "invalid input in field 'location' (invalid_input): [location => [location not found]]"},
		"PlacementGroup": {vm: func(p *v1alpha1.VirtualMachineParameters) { p.PlacementGroupID = ptr.To[int64](8) }, want: "placement group not found: 8"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.options, func(t *testing.T, w *world) {
				if tc.before != nil {
					tc.before(w)
				}
				vm := server("a")
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
				_, before := w.cloud.Calls()
				time.Sleep(10 * time.Minute)
				if _, after := w.cloud.Calls(); after-before > 150 || after == before {
					t.Errorf("%d calls in ten minutes for one that is refused", after-before)
				}
			})
		})
	}
}

// TestFiftyServersUnderARateLimit has a project whose rate limit is nearly exhausted.
func TestFiftyServersUnderARateLimit(t *testing.T) {
	const n = 50
	inWorld(t, fakecloud.Options{Step: 5 * time.Second, RateLimit: 100, Refill: time.Second}, func(t *testing.T, w *world) {
		begin := time.Now()
		vms := make([]*v1alpha1.VirtualMachine, n)
		for i := range vms {
			vms[i] = server(fmt.Sprintf("a-%d", i))
			vms[i].Spec.ForProvider.PlacementGroupID = nil // It holds ten.
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
		if w.posts() != n || len(w.cloud.Servers("ours")) != n {
			t.Errorf("%d creations, %d servers", w.posts(), len(w.cloud.Servers("ours")))
		}
		if warnings := w.Warnings(); len(warnings) > n {
			t.Errorf("%d warnings, the first %q", len(warnings), warnings[0])
		}
	})
}
