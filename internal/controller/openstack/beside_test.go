package openstack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	config "github.com/drover-dev/drover/config/openstack"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/openstack"
)

const (
	createPort       = "POST /network/v2.0/ports"
	createFloatingIP = "POST /network/v2.0/floatingips"
)

// descriptionOf is the description that the Composition renders for a Machine.
func descriptionOf(machine string) string {
	return "drover installation uid-of-" + machine + " ns/" + machine
}

func port(name string) *v1alpha1.Port {
	p := &v1alpha1.Port{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-port-" + name)}}
	p.Spec.ForProvider = v1alpha1.PortParameters{
		Name: ptr.To(name), Description: ptr.To(descriptionOf(name)), NetworkID: ptr.To(fakecloud.NetworkID),
	}
	p.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	p.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	return p
}

func floatingIP(name, portID string) *v1alpha1.FloatingIP {
	f := &v1alpha1.FloatingIP{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-floatingip-" + name)}}
	f.Spec.ForProvider = v1alpha1.FloatingIPParameters{Description: ptr.To(descriptionOf(name)), Pool: ptr.To(fakecloud.PublicNetwork), PortID: &portID}
	f.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	f.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	return f
}

func withPorts(t *testing.T, o fakecloud.Options, test func(*testing.T, *world)) {
	t.Helper()
	inWorldOf(t, o, config.Port, v1alpha1.Port_GroupVersionKind, test)
}

func withFloatingIPs(t *testing.T, o fakecloud.Options, test func(*testing.T, *world)) {
	t.Helper()
	inWorldOf(t, o, config.FloatingIP, v1alpha1.FloatingIP_GroupVersionKind, test)
}

// calls returns the number of calls of a name.
func (w *world) calls(name string) int {
	calls, _ := w.cloud.Calls()
	return calls[name]
}

func TestPortCreateAndDelete(t *testing.T) {
	withPorts(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		p := port("a")
		p.Spec.ForProvider.FixedIP = []v1alpha1.FixedIPParameters{{SubnetID: ptr.To(fakecloud.OtherSubnetID)}}
		p.Spec.ForProvider.SecurityGroupIds = []*string{ptr.To(fakecloud.GroupID)}
		p.Spec.ForProvider.AllowedAddressPairs = []v1alpha1.AllowedAddressPairsParameters{{IPAddress: ptr.To("10.244.0.0/16")}}
		p.Spec.ForProvider.Binding = []v1alpha1.BindingParameters{{VnicType: ptr.To("direct")}}
		p.Spec.ForProvider.Tags = []*string{ptr.To("team=platform")}
		w.Add(p)
		w.UntilCondition(soon, p, xpv2.TypeReady, xpv2.ReasonAvailable)
		id := meta.GetExternalName(p)
		want := fakecloud.Port{
			ID: id, Name: "a", Description: descriptionOf("a"), Network: fakecloud.NetworkID, Subnet: fakecloud.OtherSubnetID, VNIC: "direct", Security: true,
			Groups: []string{fakecloud.GroupID}, Pairs: []fakecloud.AddressPair{{IP: "10.244.0.0/16"}}, Tags: []string{"team=platform"},
		}
		made := w.cloud.Ports("ours")[id]
		if d := cmp.Diff(want, made, cmpopts.IgnoreFields(fakecloud.Port{}, "IP")); d != "" {
			t.Errorf("created (-want +got):\n%s", d)
		}
		if at := p.Status.AtProvider; len(at.AllFixedIps) != 1 || *at.AllFixedIps[0] != made.IP || made.IP == "" {
			t.Errorf("addresses %v, want %s", at.AllFixedIps, made.IP)
		}
		time.Sleep(time.Hour)
		calls, _ := w.cloud.Calls()
		for call := range calls {
			if strings.HasPrefix(call, "PUT") && call != "PUT /network/v2.0/ports/{id}/tags" {
				t.Errorf("the port was changed: %s", call)
			}
		}
		w.Delete(p)
		w.Until(soon, "it is deleted", func() bool { return w.Gone(p) })
		if left := w.cloud.Ports("ours"); len(left) != 0 || w.calls(createPort) != 1 {
			t.Errorf("left: %v, after %d creations", left, w.calls(createPort))
		}
	})
}

func TestPortWithoutPortSecurity(t *testing.T) {
	withPorts(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		p := port("a")
		p.Spec.ForProvider.PortSecurityEnabled = ptr.To(false)
		p.Spec.ForProvider.NoSecurityGroups = ptr.To(true)
		w.Add(p)
		w.UntilCondition(soon, p, xpv2.TypeReady, xpv2.ReasonAvailable)
		if made := w.cloud.Ports("ours")[meta.GetExternalName(p)]; made.Security || len(made.Groups) > 0 {
			t.Errorf("created %+v", made)
		}
	})
}

func TestFloatingIPCreateAndDelete(t *testing.T) {
	withFloatingIPs(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		portID := w.cloud.CreatePort("ours", "of a user")
		f := floatingIP("a", portID)
		w.Add(f)
		w.UntilCondition(soon, f, xpv2.TypeReady, xpv2.ReasonAvailable)
		made := w.cloud.FloatingIPs("ours")[meta.GetExternalName(f)]
		if made.Port != portID || made.Description != descriptionOf("a") || ptr.Deref(f.Status.AtProvider.Address, "") != made.Address || made.Address == "" {
			t.Errorf("created %+v, observed %v", made, ptr.Deref(f.Status.AtProvider.Address, ""))
		}
		w.cloud.LosePort(portID)
		if c := w.UntilCondition(soon, f, xpv2.TypeReady, xpv2.ReasonUnavailable); c.Message != "the floating IP leads to no port" {
			t.Errorf("Ready: %s", c.Message)
		}
		w.Delete(f)
		w.Until(soon, "it is deleted", func() bool { return w.Gone(f) })
		if left := w.cloud.FloatingIPs("ours"); len(left) != 0 || w.calls(createFloatingIP) != 1 {
			t.Errorf("left: %v, after %d creations", left, w.calls(createFloatingIP))
		}
	})
}

// A besideCase is a kind that is identified by its description.
type besideCase struct {
	run    func(*testing.T, fakecloud.Options, func(*testing.T, *world))
	create string
	get    string
	// make returns a resource, given the ID of a port.
	make func(name, portID string) resource.Managed
	// made returns the IDs of what the cloud has of Machines.
	made func(*world) []string
}

var besideCases = map[string]besideCase{
	"Port": {withPorts, createPort, "GET /network/v2.0/ports/{id}", func(name, _ string) resource.Managed { return port(name) }, func(w *world) []string {
		all := w.cloud.Ports("ours")
		maps.DeleteFunc(all, func(_ string, p fakecloud.Port) bool { return !strings.HasPrefix(p.Description, besidePrefix) })
		return slices.Sorted(maps.Keys(all))
	}},
	"FloatingIP": {withFloatingIPs, createFloatingIP, "GET /network/v2.0/floatingips/{id}", func(name, port string) resource.Managed { return floatingIP(name, port) }, func(w *world) []string {
		all := w.cloud.FloatingIPs("ours")
		maps.DeleteFunc(all, func(_ string, f fakecloud.FloatingIP) bool { return !strings.HasPrefix(f.Description, besidePrefix) })
		return slices.Sorted(maps.Keys(all))
	}},
}

// TestDeletionOfAPinnedResource: Drover pins a companion to Observe and Delete when its VM exists. Its deletion
// creates nothing, and has no error.
func TestDeletionOfAPinnedResource(t *testing.T) {
	for kind, b := range besideCases {
		t.Run(kind, func(t *testing.T) {
			b.run(t, fakecloud.Options{}, func(t *testing.T, w *world) {
				portID := w.cloud.CreatePort("ours", "of a user")
				r := b.make("a", portID)
				w.Add(r)
				w.UntilCondition(soon, r, xpv2.TypeReady, xpv2.ReasonAvailable)
				w.Change(r, func() {
					r.(resource.ModernManaged).SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
				})
				w.Restart()
				time.Sleep(10 * time.Minute)
				w.Delete(r)
				w.Until(soon, "it is deleted", func() bool { return w.Gone(r) })
				if made, warnings := b.made(w), w.Warnings(); len(made) > 0 || len(warnings) > 0 || w.calls(b.create) != 1 {
					t.Errorf("left: %v after %d creations, warnings %q", made, w.calls(b.create), warnings)
				}
			})
		})
	}
}

// TestLostAnswerCreatesOne loses the answer to a creation, with and without an effect: afterwards there is
// one port or floating IP.
func TestLostAnswerCreatesOne(t *testing.T) {
	for kind, b := range besideCases {
		for name, tc := range map[string]struct {
			fault fakecloud.Fault
			posts int
		}{
			"TheConnectionIsCut":        {fakecloud.Fault{Call: b.create, Lost: true}, 1},
			"TheGatewayTimesOut":        {fakecloud.Fault{Call: b.create, Status: 504, Code: "error", Message: "gateway timeout"}, 2},
			"NeutronHasAnInternalError": {fakecloud.Fault{Call: b.create, Status: 500, Code: "NeutronError/HTTPInternalServerError", Message: "Request Failed: internal server error while processing your request."}, 2},
			"NothingIsBehindTheGateway": {fakecloud.Fault{Call: b.create, Status: 503, Code: "error", Message: "no server is available"}, 2},
			"TheReadAfterItFails":       {fakecloud.Fault{Call: b.get, Status: 500, Code: "NeutronError/HTTPInternalServerError", Message: "Request Failed"}, 1},
			"TheReadAfterItIsCut":       {fakecloud.Fault{Call: b.get, Refused: true}, 1},
		} {
			t.Run(kind+name, func(t *testing.T) {
				b.run(t, fakecloud.Options{}, func(t *testing.T, w *world) {
					portID := w.cloud.CreatePort("ours", "of a user")
					tc.fault.Times = 1
					w.cloud.Break(tc.fault)
					r := b.make("a", portID)
					w.Add(r)
					w.UntilCondition(10*time.Minute, r, xpv2.TypeReady, xpv2.ReasonAvailable)
					time.Sleep(time.Hour)
					if made := b.made(w); len(made) != 1 || made[0] != meta.GetExternalName(r) || w.calls(b.create) != tc.posts {
						t.Errorf("created %v with %d calls, want one, %q, with %d calls", made, w.calls(b.create), meta.GetExternalName(r), tc.posts)
					}
				})
			})
		}
	}
}

// TestLateCreationIsFound: Neutron creates it after the gateway has given up, while the provider searches.
func TestLateCreationIsFound(t *testing.T) {
	withPorts(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		w.cloud.Break(fakecloud.Fault{Call: createPort, Status: 504, Code: "error", Message: "gateway timeout", Times: 1})
		p := port("a")
		w.Add(p)
		w.Until(soon, "the provider searches for the port", func() bool {
			w.Get(p)
			return strings.Contains(p.GetCondition(xpv2.TypeSynced).Message, "it may still be created")
		})
		id := w.cloud.CreatePort("ours", descriptionOf("a"))
		w.cloud.NamePort(id, "a")
		w.UntilCondition(10*time.Minute, p, xpv2.TypeReady, xpv2.ReasonAvailable)
		if meta.GetExternalName(p) != id || w.calls(createPort) != 1 {
			t.Errorf("external name %s, want %s; %d creations", meta.GetExternalName(p), id, w.calls(createPort))
		}
	})
}

// TestRestartBetweenCreateAndName: the provider is killed after Neutron created the port or floating IP. A
// new process finds it, and deletes it if its Machine is deleted meanwhile.
func TestRestartBetweenCreateAndName(t *testing.T) {
	for kind, b := range besideCases {
		for name, deleted := range map[string]bool{"IsFound": false, "IsDeleted": true} {
			t.Run(kind+name, func(t *testing.T) {
				b.run(t, fakecloud.Options{}, func(t *testing.T, w *world) {
					portID := w.cloud.CreatePort("ours", "of a user")
					r := b.make("a", portID)
					// The annotations of a provider that was killed in the call, whose effect the cloud has.
					meta.SetExternalCreatePending(r, time.Now())
					id := w.cloud.CreatePort("ours", descriptionOf("a"))
					w.cloud.NamePort(id, "a")
					if kind == "FloatingIP" {
						id = w.cloud.CreateFloatingIP("ours", descriptionOf("a"), portID)
					}
					r.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
					w.Add(r)
					if deleted {
						w.Delete(r)
						w.Until(10*time.Minute, "it is deleted", func() bool { return w.Gone(r) })
						if made := b.made(w); slices.Contains(made, id) {
							t.Errorf("%s %s is left", kind, id)
						}
						return
					}
					w.UntilCondition(10*time.Minute, r, xpv2.TypeReady, xpv2.ReasonAvailable)
					if meta.GetExternalName(r) != id || w.calls(b.create) != 0 {
						t.Errorf("external name %q, want %q; %d creations", meta.GetExternalName(r), id, w.calls(b.create))
					}
				})
			})
		}
	}
}

func TestNeutronRefusals(t *testing.T) {
	cases := map[string]struct {
		options fakecloud.Options
		port    func(*v1alpha1.PortParameters)
		want    string
	}{
		"Quota":         {options: fakecloud.Options{PortLimit: 1}, want: "Quota exceeded for resources: ['port']."},
		"Addresses":     {options: fakecloud.Options{PortAddresses: 1}, want: "No more IP addresses available on network " + fakecloud.NetworkID},
		"Network":       {port: func(p *v1alpha1.PortParameters) { p.NetworkID = ptr.To("none") }, want: "Network none could not be found."},
		"Subnet":        {port: func(p *v1alpha1.PortParameters) { p.FixedIP = []v1alpha1.FixedIPParameters{{SubnetID: ptr.To("none")}} }, want: "Subnet none could not be found."},
		"SecurityGroup": {port: func(p *v1alpha1.PortParameters) { p.SecurityGroupIds = []*string{ptr.To("none")} }, want: "Security group none does not exist"},
		"PairsWithoutPortSecurity": {port: func(p *v1alpha1.PortParameters) {
			p.PortSecurityEnabled, p.AllowedAddressPairs = ptr.To(false), []v1alpha1.AllowedAddressPairsParameters{{IPAddress: ptr.To("10.244.0.0/16")}}
		}, want: "Port Security must be enabled in order to have allowed address pairs on a port."},
		"Profile": {port: func(p *v1alpha1.PortParameters) {
			p.Binding = []v1alpha1.BindingParameters{{Profile: ptr.To(`{"capabilities": ["switchdev"]}`), VnicType: ptr.To("direct")}}
		}, want: "is disallowed by policy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			withPorts(t, tc.options, func(t *testing.T, w *world) {
				user := w.cloud.CreatePort("ours", "of a user")
				p := port("a")
				if tc.port != nil {
					tc.port(&p.Spec.ForProvider)
				}
				w.Add(p)
				c := w.UntilCondition(soon, p, xpv2.TypeSynced, xpv2.ReasonReconcileError)
				if !strings.Contains(c.Message, tc.want) || !strings.Contains(c.Message, `ClusterProviderConfig "default"`) {
					t.Errorf("Synced: %s", c.Message)
				}
				if len(w.cloud.Ports("ours")) != 1 {
					t.Errorf("ports: %+v", w.cloud.Ports("ours"))
				}
				// An error that is repaired at the cloud needs no other port.
				if tc.options.PortLimit+tc.options.PortAddresses > 0 {
					w.cloud.LosePort(user)
					w.UntilCondition(5*time.Minute, p, xpv2.TypeReady, xpv2.ReasonAvailable)
				}
				w.Delete(p)
				w.Until(10*time.Minute, "it is deleted", func() bool { return w.Gone(p) })
			})
		})
	}
}

func TestFloatingIPRefusals(t *testing.T) {
	cases := map[string]struct {
		options fakecloud.Options
		before  func(*world, string)
		ip      func(*v1alpha1.FloatingIPParameters)
		want    string
	}{
		"Quota":     {options: fakecloud.Options{FloatingIPLimit: 1}, before: func(w *world, _ string) { w.cloud.CreateBeside("ours", "of a user") }, want: "Quota exceeded for resources: ['floatingip']."},
		"Addresses": {options: fakecloud.Options{FloatingIPs: 1}, before: func(w *world, _ string) { w.cloud.CreateBeside("ours", "of a user") }, want: "Unable to find any IP address on external network " + fakecloud.PublicNetworkID},
		"Pool":      {ip: func(p *v1alpha1.FloatingIPParameters) { p.Pool = ptr.To("none") }, want: "No network found with name: none"},
		"Internal":  {ip: func(p *v1alpha1.FloatingIPParameters) { p.Pool = ptr.To(fakecloud.Network) }, want: "is not a valid external network"},
		"InUse":     {before: func(w *world, port string) { w.cloud.CreateFloatingIP("ours", "of a user", port) }, want: "as that fixed IP already has a floating IP on external network"},
		"Port":      {ip: func(p *v1alpha1.FloatingIPParameters) { p.PortID = ptr.To("none") }, want: "Port none could not be found."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			withFloatingIPs(t, tc.options, func(t *testing.T, w *world) {
				portID := w.cloud.CreatePort("ours", "of a user")
				if tc.before != nil {
					tc.before(w, portID)
				}
				f := floatingIP("a", portID)
				if tc.ip != nil {
					tc.ip(&f.Spec.ForProvider)
				}
				w.Add(f)
				c := w.UntilCondition(soon, f, xpv2.TypeSynced, xpv2.ReasonReconcileError)
				if !strings.Contains(c.Message, tc.want) {
					t.Errorf("Synced: %s", c.Message)
				}
				if made := besideCases["FloatingIP"].made(w); len(made) > 0 {
					t.Errorf("floating IPs of Drover: %v", made)
				}
			})
		})
	}
}

func TestVanishedPortIsMissing(t *testing.T) {
	withPorts(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		p := port("a")
		w.Add(p)
		w.UntilCondition(soon, p, xpv2.TypeReady, xpv2.ReasonAvailable)
		w.cloud.LosePort(meta.GetExternalName(p))
		w.UntilCondition(soon, p, xpv2.TypeReady, machinev1alpha1.ReasonMissing)
		time.Sleep(10 * time.Minute)
		w.Delete(p)
		w.Until(soon, "it is deleted", func() bool { return w.Gone(p) })
		if w.calls(createPort) != 1 {
			t.Errorf("it was created again, %d times", w.calls(createPort)-1)
		}
	})
}

// TestPortOfAnotherProject: credentials of another project do not show the port, which must not count as
// missing.
func TestPortOfAnotherProject(t *testing.T) {
	withPorts(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		p := port("a")
		w.Add(p)
		w.UntilCondition(soon, p, xpv2.TypeReady, xpv2.ReasonAvailable)
		w.credential(credential(other))
		w.Until(soon, "it is reported", func() bool {
			w.Get(p)
			return strings.Contains(p.GetCondition(xpv2.TypeSynced).Message, "are they those of another project")
		})
		if c := p.GetCondition(xpv2.TypeReady); c.Reason == machinev1alpha1.ReasonMissing {
			t.Errorf("Ready: %+v", c)
		}
		w.credential(credential(good))
		w.UntilCondition(soon, p, xpv2.TypeSynced, xpv2.ReasonReconcileSuccess)
	})
}

func TestFiftyPortsUnderARateLimit(t *testing.T) {
	const n = 50
	withPorts(t, fakecloud.Options{RateLimit: 100, Refill: 500 * time.Millisecond}, func(t *testing.T, w *world) {
		begin := time.Now()
		all := make([]*v1alpha1.Port, n)
		for i := range all {
			all[i] = port(fmt.Sprintf("a-%d", i))
			w.Add(all[i])
		}
		w.Until(time.Hour, "all exist", func() bool {
			return !slices.ContainsFunc(all, func(p *v1alpha1.Port) bool {
				w.Get(p)
				return p.GetCondition(xpv2.TypeReady).Reason != xpv2.ReasonAvailable
			})
		})
		calls, sum := w.cloud.Calls()
		t.Logf("%d ports in %s, %d calls, %.1f per port:\n%s", n, time.Since(begin).Round(time.Second), sum, float64(sum)/n, fakes.Table(calls))
		if len(w.cloud.Ports("ours")) != n || calls[createPort] > n+n/2 {
			t.Errorf("%d ports with %d creations", len(w.cloud.Ports("ours")), calls[createPort])
		}
	})
}

func TestInventoryListsPortsAndFloatingIPs(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		w.cloud.Create("ours", "of-a-user", nil) // Nova creates its port.
		for i := range 25 {                      // More than a page.
			w.cloud.CreatePort("ours", fmt.Sprintf("of user %d", i))
		}
		w.cloud.CreateBeside("ours", "drover another-installation uid-of-b ns/b")
		portID, ip := w.cloud.CreateBeside("ours", descriptionOf("a"))
		tags := map[string]string{
			machinev1alpha1.TagInstallation: "installation", machinev1alpha1.TagMachineUID: "uid-of-a", machinev1alpha1.TagNamespace: "ns", machinev1alpha1.TagMachine: "a",
		}
		list := func(attachedTo string) {
			t.Helper()
			got, complete, err := w.lister(t).ListResources(t.Context(), "installation")
			if err != nil || !complete {
				t.Fatalf("complete: %t, error %v", complete, err)
			}
			want := []inventory.Resource{{Type: "Port", ID: portID, Tags: tags, AttachedTo: attachedTo}, {Type: "FloatingIP", ID: ip, Tags: tags, AttachedTo: attachedTo}}
			if d := cmp.Diff(want, got, cmpopts.IgnoreFields(inventory.Resource{}, "CreatedAt")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		}
		list("")
		w.cloud.Attach(portID, "server-1")
		list("server-1")
		w.cloud.Break(fakecloud.Fault{Call: "GET /network/v2.0/floatingips", Status: 500, Code: "NeutronError", Message: "sorry"})
		if got, complete, err := w.lister(t).ListResources(t.Context(), "installation"); err == nil || complete || len(got) > 0 {
			t.Errorf("%v, complete: %t, error %v", got, complete, err)
		}
	})
}
