package vsphere

import (
	"encoding/pem"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/idle"
)

func requestOf(n k8stypes.NamespacedName) reconcile.Request {
	return reconcile.Request{NamespacedName: n}
}

// sessionsOf returns the provider's sessions at the vCenter.
func (w *world) sessionsOf() []string {
	w.t.Helper()
	var m mo.SessionManager
	w.must(w.admin.RetrieveOne(w.t.Context(), *w.admin.ServiceContent.SessionManager, []string{"sessionList"}, &m))
	var out []string
	for _, s := range m.SessionList {
		if s.UserName == user {
			out = append(out, s.Key)
		}
	}
	return out
}

func (w *world) rotate(secret string) {
	w.t.Helper()
	w.must(w.kube.Update(w.t.Context(), credentialsSecret(secret)))
}

func TestWrongCredentials(t *testing.T) {
	w := newWorld(t)
	w.rotate("wrong")
	w.create()
	w.reconcile()
	wantCondition(t, w, xpv2.TypeSynced, "Synced=False", `ClusterProviderConfig "default": PermissionDenied: cannot log in to vCenter 127.0.0.1`, user)
	if s := w.says(xpv2.TypeSynced); strings.Contains(s, "wrong") {
		t.Errorf("the condition shows the password: %s", s)
	}
	for range 10 {
		w.reconcile()
	}
	if n := w.called("Login"); n != 2 { // one is the test's own
		t.Errorf("%d logins: a vCenter locks the account", n-1)
	}
	w.rotate(password)
	w.untilReady()
}

func TestAPasswordThatIsMendedAtTheVCenterIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.password = "another"
	w.create()
	w.reconcile()
	w.mu.Lock()
	w.password = password
	w.mu.Unlock()
	w.clock.pass(refusedMin)
	w.untilReady()
}

func TestNoVMIsLostWithItsCredentials(t *testing.T) {
	cases := map[string]struct {
		take, give func(*world)
		want       string
	}{
		"ASecretThatIsMissing": {
			func(w *world) { w.must(w.kube.Delete(w.t.Context(), credentialsSecret(""))) },
			func(w *world) { w.must(w.kube.Create(w.t.Context(), credentialsSecret(password))) },
			`ClusterProviderConfig "default": spec.credentials.secretRef of the provider config: cannot get Secret system/vcenter`,
		},
		"APasswordThatIsWrong": {
			func(w *world) { w.rotate("wrong") }, func(w *world) { w.rotate(password) },
			`ClusterProviderConfig "default": PermissionDenied: cannot log in`,
		},
		"RightsThatAreTakenAway": {
			func(w *world) {
				w.fault("RetrievePropertiesEx", &types.NoPermission{PrivilegeId: "System.Read"}, 0)
				w.fault("RetrieveProperties", &types.NoPermission{PrivilegeId: "System.Read"}, 0)
			},
			func(w *world) { w.model.Service.ClearFaultRules() },
			`ClusterProviderConfig "default": PermissionDenied: cannot observe the VM: `,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			before := w.untilReady()
			w.change(pin)
			tc.take(w)
			for range 3 {
				w.reconcile()
			}
			wantCondition(t, w, xpv2.TypeSynced, "Synced=False", tc.want)
			wantCondition(t, w, xpv2.TypeReady, "Ready=True")
			tc.give(w)
			w.until("in sync", func(vm *v1alpha1.VirtualMachine) bool { return vm.GetCondition(xpv2.TypeSynced).Status == "True" })
			if got := w.get().Status.AtProvider.ProviderID; got != before.Status.AtProvider.ProviderID || w.clone().Runtime.PowerState != on {
				t.Errorf("providerID %s, want %s", got, before.Status.AtProvider.ProviderID)
			}
		})
	}
}

func TestASessionThatEndedIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.reconcile()
	w.must(session.NewManager(w.admin.Client).TerminateSession(t.Context(), w.sessionsOf()))
	w.untilReady()
	w.must(session.NewManager(w.admin.Client).TerminateSession(t.Context(), w.sessionsOf()))
	w.reconcile()
	wantCondition(t, w, xpv2.TypeSynced, "Synced=True")
	if n := len(w.sessionsOf()); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

func TestOneSessionServesAllAndIdleOnesEnd(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.untilReady()
	if n := len(w.sessionsOf()); n != 1 {
		t.Fatalf("%d sessions, want 1", n)
	}
	w.clock.pass(idle.After - time.Second)
	w.control.pool.Sweep(t.Context(), idle.After)
	if n := len(w.sessionsOf()); n != 1 {
		t.Fatalf("%d sessions, want the one in use", n)
	}
	w.clock.pass(time.Second)
	w.control.pool.Sweep(t.Context(), idle.After)
	if n := len(w.sessionsOf()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	w.reconcile()
	wantCondition(t, w, xpv2.TypeSynced, "Synced=True")
}

func TestTheCertificateOfTheVCenterIsChecked(t *testing.T) {
	w := newWorld(t)
	secure := func(ca []byte) {
		pc := &v1alpha1.ClusterProviderConfig{}
		w.must(w.kube.Get(t.Context(), k8stypes.NamespacedName{Name: "default"}, pc))
		pc.Spec.InsecureSkipVerify, pc.Spec.CABundle = nil, ca
		w.must(w.kube.Update(t.Context(), pc))
	}
	secure(nil)
	w.create()
	w.reconcile()
	wantCondition(t, w, xpv2.TypeSynced, "Synced=False", "certificate")
	secure(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw}))
	w.untilReady()
}
