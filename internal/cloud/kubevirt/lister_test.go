package kubevirt

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/kubevirttest"
)

const secret = "s3cret"

// A world is a cluster with KubeVirt, and its API server.
type world struct {
	*kubevirttest.Server
	url, ca string
	objects map[string][]unstructured.Unstructured
	users   map[string]kubevirttest.User
	// before is called with each request.
	before func(*http.Request)
}

func newWorld(t *testing.T, o kubevirttest.Options) *world {
	t.Helper()
	w := &world{objects: map[string][]unstructured.Unstructured{}, users: map[string]kubevirttest.User{secret: {Name: "system:serviceaccount:drover:inventory"}}, before: func(*http.Request) {}}
	o.State = func(kind string) []unstructured.Unstructured { return w.objects[kind] }
	o.Users = func() map[string]kubevirttest.User { return w.users }
	w.Server = kubevirttest.New(o)
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.before(r)
		w.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	w.url, w.ca = s.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return w
}

func (w *world) kubeconfig(token string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
		clusters: [{name: k, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: {token: %q}}]}`, w.url, w.ca, token)
}

func (w *world) lister(t *testing.T, token, namespace string) inventory.ResourceLister {
	t.Helper()
	l, err := New(t.Context(), Options{Credentials: []byte(w.kubeconfig(token)), Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	return l.(inventory.ResourceLister)
}

var created = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func object(namespace, name, installation string) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID("uid-of-" + name))
	o.SetCreationTimestamp(metav1.NewTime(created))
	if installation != "" {
		o.SetLabels(labelsOf(installation))
	}
	return o
}

func labelsOf(installation string) map[string]string {
	return map[string]string{"drover-installation": installation, "drover-cluster": "eu", "drover-namespace": "fleet", "drover-machine": "web", "drover-machine-uid": "u-1"}
}

func virtualMachine(name, installation, status string) unstructured.Unstructured {
	o := object("fleet", name, installation)
	if status != "" {
		o.Object["status"] = map[string]any{"printableStatus": status}
	}
	return o
}

func TestTheVirtualMachinesOfAnInstallationAreListed(t *testing.T) {
	w := newWorld(t, kubevirttest.Options{})
	deleting, elsewhere := virtualMachine("deleting", "ours", "Terminating"), virtualMachine("elsewhere", "ours", "Running")
	deleting.SetDeletionTimestamp(&metav1.Time{Time: created})
	elsewhere.SetNamespace("other") // Its label names the namespace fleet.
	w.objects["VirtualMachine"] = []unstructured.Unstructured{
		virtualMachine("a", "ours", "Provisioning"), virtualMachine("b", "ours", "Running"), virtualMachine("c", "ours", "Stopped"), virtualMachine("d", "ours", ""),
		virtualMachine("e", "ours", "ErrorUnschedulable"), virtualMachine("f", "ours", "Migrating"), virtualMachine("g", "ours", "Paused"), virtualMachine("h", "ours", "New"),
		virtualMachine("theirs", "theirs", "Running"), virtualMachine("by-hand", "", "Running"), deleting, elsewhere,
	}
	vms, complete, err := w.lister(t, secret, "").List(t.Context(), "ours")
	if err != nil || !complete {
		t.Fatalf("complete: %t, error %v", complete, err)
	}
	vm := func(name string, s inventory.State, text string) inventory.VM {
		return inventory.VM{ExternalName: name, ProviderID: "kubevirt://" + name, Name: name, Tags: labelsOf("ours"), CreatedAt: created, State: s, StateText: "printable status " + text}
	}
	other := vm("elsewhere", inventory.StateRunning, "Running")
	other.Tags["drover-namespace"] = "other"
	want := []inventory.VM{
		vm("a", inventory.StatePending, "Provisioning"), vm("b", inventory.StateRunning, "Running"), vm("c", inventory.StateStopped, "Stopped"),
		vm("d", inventory.StateUnknown, "unknown"), vm("e", inventory.StatePending, "ErrorUnschedulable"), vm("f", inventory.StateRunning, "Migrating"),
		vm("g", inventory.StateStopped, "Paused"), vm("h", inventory.StateUnknown, "New"), other,
	}
	if d := cmp.Diff(want, vms); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	vms, _, err = w.lister(t, secret, "other").List(t.Context(), "ours")
	if d := cmp.Diff([]inventory.VM{other}, vms); d != "" || err != nil {
		t.Errorf("of one namespace: error %v, (-want +got):\n%s", err, d)
	}
}

func TestVirtualMachinesAreFoundByTheirNames(t *testing.T) {
	w := newWorld(t, kubevirttest.Options{})
	deleting := virtualMachine("deleting", "ours", "Terminating")
	deleting.SetDeletionTimestamp(&metav1.Time{Time: created})
	w.objects["VirtualMachine"] = []unstructured.Unstructured{virtualMachine("unlabelled", "", "Running"), virtualMachine("b", "ours", "Running"), deleting}
	l := w.lister(t, secret, "fleet").(inventory.Finder)
	vms, complete, err := l.Find(t.Context(), []string{"unlabelled", "deleting", "gone"})
	if err != nil || !complete || len(vms) != 1 || vms[0].ExternalName != "unlabelled" {
		t.Errorf("found %v, complete: %t, error %v", vms, complete, err)
	}
	w.users = nil
	if vms, complete, err := l.Find(t.Context(), []string{"b"}); err == nil || complete || len(vms) > 0 {
		t.Errorf("of a call that fails: %v, complete: %t, error %v", vms, complete, err)
	}
}

func TestTheNumberOfCalls(t *testing.T) {
	cases := map[string]struct{ machines, calls int }{
		"FiveHundredTakeOneCall":              {500, 1},
		"OneMoreTakesTwo":                     {501, 2},
		"ThoseOfOthersAreNotSent":             {0, 1},
		"TwelveHundredTakeThreeOfFiveHundred": {1200, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, kubevirttest.Options{})
			for i := range 1200 {
				installation := "ours"
				if i >= tc.machines {
					installation = "theirs"
				}
				w.objects["VirtualMachine"] = append(w.objects["VirtualMachine"], virtualMachine(fmt.Sprintf("web-%04d", i), installation, "Running"))
			}
			vms, complete, err := w.lister(t, secret, "").List(t.Context(), "ours")
			if calls, _ := w.Calls(); err != nil || !complete || len(vms) != tc.machines || calls["GET virtualmachines"] != tc.calls {
				t.Errorf("%d VMs, complete: %t, calls %v, error %v", len(vms), complete, calls, err)
			}
		})
	}
}

func TestFromAListThatIsNotWholeNothingIsConcluded(t *testing.T) {
	cases := map[string]struct {
		then func(*world)
		err  string
	}{
		"TheSecondChunkFails": {func(w *world) {
			w.Break(fakes.Fault{Status: http.StatusInternalServerError, Code: "InternalError", Message: "Internal error occurred: etcdserver: request timed out"})
		}, "cannot list virtualmachines.kubevirt.io: Internal error occurred: etcdserver: request timed out"},
		"TheFirstChunkIsTooOld":          {func(w *world) { w.Compact() }, "cannot list virtualmachines.kubevirt.io: The provided continue parameter is too old"},
		"TheRightsAreTakenMeanwhile":     {func(w *world) { w.users = nil }, "PermissionDenied: cannot list virtualmachines.kubevirt.io: Unauthorized"},
		"ButAVMThatIsDeletedMeanwhileIs": {func(w *world) { w.objects = nil }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, kubevirttest.Options{})
			for i := range 700 {
				w.objects["VirtualMachine"] = append(w.objects["VirtualMachine"], virtualMachine(fmt.Sprintf("web-%04d", i), "ours", "Running"))
			}
			w.before = func(r *http.Request) {
				if r.URL.Query().Get("continue") != "" {
					tc.then(w)
				}
			}
			vms, complete, err := w.lister(t, secret, "").List(t.Context(), "ours")
			if tc.err == "" && (err != nil || !complete || len(vms) != 700) || tc.err != "" && (err == nil || complete || len(vms) > 0 || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%d VMs, complete: %t, error %v, want %q", len(vms), complete, err, tc.err)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	cases := map[string]struct {
		options func(*world) Options
		err     string
	}{
		"AKubeconfig":  {func(w *world) Options { return Options{Credentials: []byte(w.kubeconfig(secret))} }, ""},
		"AnotherToken": {func(w *world) Options { return Options{Credentials: []byte(w.kubeconfig(secret + "-wrong"))} }, "PermissionDenied: cannot list virtualmachines.kubevirt.io: Unauthorized"},
		"ATokenOfOneNamespace": {func(w *world) Options {
			w.users[secret] = kubevirttest.User{Name: "system:serviceaccount:fleet:inventory", Namespaces: []string{"fleet"}}
			return Options{Credentials: []byte(w.kubeconfig(secret)), Namespace: "fleet"}
		}, ""},
		"WhichMayNotListAll": {func(w *world) Options {
			w.users[secret] = kubevirttest.User{Name: "system:serviceaccount:fleet:inventory", Namespaces: []string{"fleet"}}
			return Options{Credentials: []byte(w.kubeconfig(secret))}
		}, `PermissionDenied: cannot list virtualmachines.kubevirt.io: virtualmachines.kubevirt.io is forbidden: User "system:serviceaccount:fleet:inventory" cannot list resource "virtualmachines" in API group "kubevirt.io" at the cluster scope`},
		"AnotherEndpoint": {func(w *world) Options {
			return Options{Credentials: []byte(strings.Replace(w.kubeconfig(secret), w.url, "https://192.0.2.1", 1)), Endpoint: w.url}
		}, ""},
		"AnEndpointOfNoTLS": {func(w *world) Options {
			return Options{Credentials: []byte(w.kubeconfig(secret)), Endpoint: "http://10.0.0.1"}
		}, "endpoint: must be a URL like https://10.0.0.1:6443"},
		"NoKubeconfig":      {func(*world) Options { return Options{Credentials: []byte("s3cret: [")} }, "credentials: kubeconfig: is not a kubeconfig"},
		"NoneOutsideOfAPod": {func(*world) Options { return Options{} }, "credentials: must not be empty outside of a pod"},
		"ACommandIsNotRun": {func(w *world) Options {
			return Options{Credentials: []byte(strings.Replace(w.kubeconfig(secret), `token: "s3cret"`, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}", 1))}
		}, "credentials: kubeconfig: exec is refused"},
		"ACertificateOfNone": {func(w *world) Options {
			return Options{Credentials: []byte(strings.Replace(w.kubeconfig(secret), `token: "s3cret"`, "client-certificate-data: czNjcmV0, client-key-data: czNjcmV0", 1))}
		}, "credentials: cannot make a client of the kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			w := newWorld(t, kubevirttest.Options{})
			l, err := New(t.Context(), tc.options(w))
			if err == nil {
				var complete bool
				_, complete, err = l.List(t.Context(), "ours")
				if complete != (tc.err == "") {
					t.Errorf("complete: %t", complete)
				}
			}
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestARotatedTokenCountsAtOnce(t *testing.T) {
	w := newWorld(t, kubevirttest.Options{})
	old := w.lister(t, secret, "")
	w.users = map[string]kubevirttest.User{"new": {Name: "u"}}
	if _, _, err := old.List(t.Context(), "ours"); err == nil || !strings.HasPrefix(err.Error(), "PermissionDenied: ") {
		t.Errorf("with the old token: error %v", err)
	}
	if _, complete, err := w.lister(t, "new", "").List(t.Context(), "ours"); err != nil || !complete {
		t.Errorf("with the new token: complete %t, error %v", complete, err)
	}
}

func TestAClusterWithoutKubeVirtIsAnError(t *testing.T) {
	w := newWorld(t, kubevirttest.Options{Without: []string{"VirtualMachine"}})
	if _, complete, err := w.lister(t, secret, "").List(t.Context(), "ours"); err == nil || complete || !strings.Contains(err.Error(), "the server could not find the requested resource") {
		t.Errorf("complete: %t, error %v", complete, err)
	}
}

func TestThrottlingIsWaitedFor(t *testing.T) {
	w := newWorld(t, kubevirttest.Options{})
	w.objects["VirtualMachine"] = []unstructured.Unstructured{virtualMachine("a", "ours", "Running")}
	w.Break(fakes.Fault{Times: 2, Status: http.StatusTooManyRequests, Code: "TooManyRequests", Message: "Too many requests, please try again later.", RetryAfter: "1"})
	began := time.Now()
	vms, complete, err := w.lister(t, secret, "").List(t.Context(), "ours")
	if took := time.Since(began); err != nil || !complete || len(vms) != 1 || took < 2*time.Second {
		t.Errorf("%d VMs after %s, complete: %t, error %v", len(vms), took, complete, err)
	}
}

func TestThrottlingForMinutesIsAnErrorInTime(t *testing.T) {
	w := newWorld(t, kubevirttest.Options{})
	w.Break(fakes.Fault{Status: http.StatusTooManyRequests, Code: "TooManyRequests", Message: "Too many requests, please try again later.", RetryAfter: "600"})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	vms, complete, err := w.lister(t, secret, "").List(ctx, "ours")
	if err == nil || complete || len(vms) > 0 || !strings.Contains(err.Error(), "context deadline exceeded") {
		t.Errorf("%d VMs, complete: %t, error %v", len(vms), complete, err)
	}
}

func TestResources(t *testing.T) {
	ownedBy := func(o unstructured.Unstructured, uid string) unstructured.Unstructured {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "any", UID: types.UID(uid)}})
		return o
	}
	disk := func(kind, name, attachedTo string) inventory.Resource {
		return inventory.Resource{Type: kind, ID: "fleet/" + name, Tags: labelsOf("ours"), CreatedAt: created, AttachedTo: attachedTo}
	}
	deleting := object("fleet", "deleting", "ours")
	deleting.SetDeletionTimestamp(&metav1.Time{Time: created})
	objects := map[string][]unstructured.Unstructured{
		"VirtualMachine": {virtualMachine("a", "ours", "Running")},
		"DataVolume": {
			ownedBy(object("fleet", "a-root", "ours"), "uid-of-a"), ownedBy(object("fleet", "gone-root", "ours"), "uid-of-gone"), object("fleet", "theirs", "theirs"), deleting,
		},
		"PersistentVolumeClaim": {
			object("fleet", "a-root", "ours"), ownedBy(object("fleet", "a-data", "ours"), "uid-of-a"), object("fleet", "leaked", "ours"), object("fleet", "by-hand", ""),
		},
	}
	cases := map[string]struct {
		options kubevirttest.Options
		want    []inventory.Resource
	}{
		"ThoseOfAnInstallationAreListedOnce": {kubevirttest.Options{}, []inventory.Resource{
			disk("DataVolume", "a-root", "a"), disk("DataVolume", "gone-root", ""), disk("PersistentVolumeClaim", "a-data", "a"), disk("PersistentVolumeClaim", "leaked", ""),
		}},
		"WithoutCDIThereAreClaimsAlone": {kubevirttest.Options{Without: []string{"DataVolume"}}, []inventory.Resource{
			disk("PersistentVolumeClaim", "a-data", "a"), disk("PersistentVolumeClaim", "a-root", ""), disk("PersistentVolumeClaim", "leaked", ""),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.options)
			w.objects = objects
			got, complete, err := w.lister(t, secret, "").ListResources(t.Context(), "ours")
			if err != nil || !complete {
				t.Fatalf("complete: %t, error %v", complete, err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for _, call := range []string{"GET virtualmachines", "GET datavolumes", "GET persistentvolumeclaims"} {
		w := newWorld(t, kubevirttest.Options{})
		w.objects = objects
		w.Break(fakes.Fault{Call: call, Status: http.StatusForbidden, Code: "Forbidden", Message: "forbidden"})
		if got, complete, err := w.lister(t, secret, "").ListResources(t.Context(), "ours"); err == nil || complete || len(got) > 0 {
			t.Errorf("%s fails: %d resources, complete %t, error %v", call, len(got), complete, err)
		}
	}
}
