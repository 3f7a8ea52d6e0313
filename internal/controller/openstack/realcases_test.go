package openstack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	config "github.com/drover-dev/drover/config/openstack"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/openstack/real"
	"github.com/drover-dev/drover/test/patience"
)

// A realWorld is a project of the OpenStack of "make openstack", and a provider with a credential of it. Its time is the real
// one.
type realWorld struct {
	*world
	nova    *real.Cloud
	project *real.Project
}

func newRealWorld(t *testing.T) *realWorld {
	t.Helper()
	if !real.IsThere() {
		t.Skip("make openstack runs it")
	}
	nova, err := real.Open(t.Context())
	mustReal(t, err)
	t.Cleanup(nova.Close)
	p, err := nova.NewProject(t.Context(), "cases-"+rand.Text())
	mustReal(t, err)
	w := &realWorld{world: &world{api: http.DefaultTransport}, nova: nova, project: p}
	w.begin(t, nova.URL+"/identity/v3", secretOf(t, p.Member), config.Instance, v1alpha1.VirtualMachine_GroupVersionKind)
	return w
}

func secretOf(t *testing.T, c real.Credential) []byte {
	t.Helper()
	b, err := json.Marshal(credentials{ApplicationCredentialID: c.ID, ApplicationCredentialSecret: c.Secret})
	mustReal(t, err)
	return b
}

func realInstance(name string) *v1alpha1.VirtualMachine {
	vm := instance(name)
	vm.Spec.ForProvider.AvailabilityZone = ptr.To(real.Zone)
	return vm
}

// untilReady waits until an instance runs, and pins it as the Composition does.
func (w *realWorld) untilReady(vm *v1alpha1.VirtualMachine) {
	w.UntilCondition(patience.Limit(), vm, xpv2.TypeReady, xpv2.ReasonAvailable)
	w.Change(vm, func() {
		vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
	})
}

// untilRefused waits until the creation of an instance is refused with a text.
func (w *realWorld) untilRefused(t *testing.T, vm *v1alpha1.VirtualMachine, text string) {
	t.Helper()
	c := w.UntilCondition(patience.Limit(), vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
	if !strings.Contains(c.Message, text) {
		t.Errorf("Synced of %s: %q, want %q", vm.Name, c.Message, text)
	}
}

// remove deletes instances, and waits until Nova has none of the project.
func (w *realWorld) remove(t *testing.T, vms ...*v1alpha1.VirtualMachine) {
	t.Helper()
	for _, vm := range vms {
		w.Delete(vm)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		left, err := w.nova.Servers(ctx, w.project)
		if err != nil || len(left) > 0 {
			return fmt.Sprintf("%d servers are left: %v", len(left), err)
		}
		return ""
	})
}

// TestTheRefusalsOfARealOpenStack brings a project into states in which the OpenStack refuses a server, and out of them.
func TestTheRefusalsOfARealOpenStack(t *testing.T) {
	w := newRealWorld(t)
	ctx, huge := t.Context(), "flavor-of-"+w.project.Name
	for _, tc := range []struct {
		name, want  string
		refuse, end func() error
	}{
		{
			"quota", "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances",
			func() error { return w.nova.SetQuota(ctx, w.project, 0) }, func() error { return w.nova.SetQuota(ctx, w.project, 1) },
		},
		{"flavor", "Unable to find flavor with name " + huge, func() error { return nil }, func() error { return w.nova.AddFlavor(ctx, huge) }},
		{
			"right", "Policy doesn't allow os_compute_api:servers:create to be performed", func() error {
				w.credential(secretOf(t, w.project.Reader))
				return nil
			}, func() error {
				w.credential(secretOf(t, w.project.Member))
				return nil
			},
		},
		{
			"credential", "cannot log in", func() error {
				w.credential(secretOf(t, real.Credential{ID: w.project.Member.ID, Secret: "wrong"}))
				return nil
			}, func() error {
				w.credential(secretOf(t, w.project.Member))
				return nil
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vm := realInstance(tc.name)
			if tc.name == "flavor" {
				vm.Spec.ForProvider.FlavorName = ptr.To(huge)
			}
			mustReal(t, tc.refuse())
			w.Add(vm)
			w.untilRefused(t, vm, tc.want)
			mustReal(t, tc.end())
			w.untilReady(vm)
			w.remove(t, vm)
		})
	}
}

// TestAServerForWhichARealOpenStackHasNoHost: Nova accepts it, and then lets it fail.
func TestAServerForWhichARealOpenStackHasNoHost(t *testing.T) {
	w := newRealWorld(t)
	mustReal(t, w.nova.SetFull(t.Context(), w.project, true))
	vm := realInstance("full")
	w.Add(vm)
	if c := w.UntilCondition(patience.Limit(), vm, xpv2.TypeReady, xpv2.ReasonUnavailable); !strings.Contains(c.Message, "No valid host was found") {
		t.Errorf("Ready: %q", c.Message)
	}
	w.remove(t, vm)
	mustReal(t, w.nova.SetFull(t.Context(), w.project, false))
}

// TestAnInstanceOfARealOpenStack is created with its metadata and user data, rebooted once per request, also if its provider is
// killed, and missing once its server is deleted by hand.
func TestAnInstanceOfARealOpenStack(t *testing.T) {
	w := newRealWorld(t)
	ctx := t.Context()
	vm := realInstance("a")
	w.Add(vm)
	w.untilReady(vm)
	id := meta.GetExternalName(vm)
	found, err := w.nova.Servers(ctx, w.project)
	mustReal(t, err)
	if len(found) != 1 || found[0].ID != id || found[0].Name != "a" || found[0].Metadata[machinev1alpha1.TagMachineUID] != "uid-of-machine-a" || string(found[0].UserData) != "#cloud-config\n" {
		t.Errorf("Nova has %+v, want the server %s", found, id)
	}

	var want []string
	wantReboots := func(request string, statuses ...string) {
		t.Helper()
		mode, _, _ := strings.Cut(request, "/")
		want = append(want, strings.ToUpper(mode))
		got, err := w.nova.Reboots(ctx, id)
		mustReal(t, err)
		var kinds []string
		for _, r := range got {
			kinds = append(kinds, r.Kind)
		}
		if !slices.Equal(kinds, want) || !slices.Equal(got[len(got)-1].Statuses, statuses) {
			t.Errorf("after %s Nova has the reboots %+v, want %s, the last one by %s", request, got, want, statuses)
		}
		t.Logf("%s: %+v", request, got[len(got)-1])
	}
	for _, request := range []string{"Soft/one", "Hard/one"} {
		w.RequestReboot(vm, request)
		w.UntilRebooted(patience.Limit(), vm, request, corev1.ConditionTrue, "accepted")
		wantReboots(request, map[string]string{"Soft/one": "REBOOT", "Hard/one": "HARD_REBOOT"}[request], active)
	}
	killed := make(chan struct{})
	w.nova.Break(fakes.Fault{Call: action, Lost: true, Times: 1, Then: func() { w.Kill(); close(killed) }})
	w.RequestReboot(vm, "Soft/killed")
	<-killed
	w.UntilCondition(patience.Limit(), vm, xpv2.TypeReady, xpv2.ReasonAvailable)
	w.WantSound(vm)
	wantReboots("Soft/killed", "REBOOT", active)
	mustReal(t, w.nova.Stop(ctx, id))
	w.RequestReboot(vm, "Soft/stopped")
	w.UntilRebooted(patience.Limit(), vm, "Soft/stopped", corev1.ConditionFalse, "while it is in vm_state stopped")
	w.RequestReboot(vm, "Hard/stopped")
	w.UntilRebooted(patience.Limit(), vm, "Hard/stopped", corev1.ConditionTrue, "accepted")
	wantReboots("Hard/stopped", shutoff, active)
	w.UntilCondition(patience.Limit(), vm, xpv2.TypeReady, xpv2.ReasonAvailable)

	mustReal(t, w.nova.Delete(ctx, id))
	w.UntilCondition(patience.Limit(), vm, xpv2.TypeReady, machinev1alpha1.ReasonMissing)
	w.remove(t, vm)
}

var realInstances = flag.Int("real-instances", 30, "number of instances of TestKillsDuringCreationsOfARealOpenStackLeaveOneInstanceEach")

// TestKillsDuringCreationsOfARealOpenStackLeaveOneInstanceEach creates instances at once in a project whose quota they use up.
// The provider is killed four times when Nova has accepted a server, and loses the responses to all creations in flight.
func TestKillsDuringCreationsOfARealOpenStackLeaveOneInstanceEach(t *testing.T) {
	w := newRealWorld(t)
	ctx, many := t.Context(), *realInstances
	mustReal(t, w.nova.SetQuota(ctx, w.project, many))
	at := []int{many / 6, many * 2 / 5, many * 3 / 5, many * 5 / 6}
	var creations, kills atomic.Int32
	w.nova.Break(fakes.Fault{
		Call: create, Lost: true, Then: func() { kills.Add(1); w.Kill() },
		Match: func(project string, _ []byte) bool {
			return project == w.project.Name && slices.Contains(at, int(creations.Add(1)))
		},
	})
	began := time.Now()
	var vms []*v1alpha1.VirtualMachine
	for i := range many {
		vms = append(vms, realInstance(fmt.Sprintf("a-%d", i)))
		w.Add(vms[i])
	}
	patience.Eventually(t, func(context.Context) string {
		ready := 0
		for _, vm := range vms {
			if w.Get(vm); vm.GetCondition(xpv2.TypeReady).Reason == xpv2.ReasonAvailable {
				ready++
			}
		}
		if ready < many {
			return fmt.Sprintf("%d instances are ready, %d were requested", ready, creations.Load())
		}
		return ""
	})
	t.Logf("%d instances were ready after %s: %d creations, %d kills", many, time.Since(began).Round(time.Second), creations.Load(), kills.Load())
	if int(kills.Load()) != len(at) || int(creations.Load()) != many {
		t.Errorf("the provider was killed %d times and requested %d servers, want %d and %d", kills.Load(), creations.Load(), len(at), many)
	}
	servers, err := w.nova.Servers(ctx, w.project)
	mustReal(t, err)
	unused := map[string]bool{}
	for _, s := range servers {
		unused[s.ID] = true
	}
	for _, vm := range vms {
		if id := meta.GetExternalName(vm); !unused[id] {
			t.Errorf("instance %s has the server %q, which does not exist or is another's", vm.Name, id)
		} else {
			delete(unused, id)
		}
	}
	if len(servers) != many || len(unused) > 0 {
		t.Errorf("Nova has %d servers, want %d; of no instance: %v", len(servers), many, unused)
	}
	w.remove(t, vms...)
}
