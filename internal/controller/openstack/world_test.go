package openstack

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	config "github.com/drover-dev/drover/config/openstack"
	"github.com/drover-dev/drover/internal/lift"
	"github.com/drover-dev/drover/internal/lift/lifttest"
	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/openstack"
)

const (
	good, other = "s3cret-good", "s3cret-of-another-project"

	// soon is more than enough for an operation without an obstacle.
	soon = 2 * time.Minute
)

// A world is a project of an OpenStack, and a provider with a credential of it.
type world struct {
	*lifttest.World
	cloud  *fakecloud.Cloud
	api    http.RoundTripper
	secret *corev1.Secret
}

func credential(id string) []byte {
	return []byte(`{"applicationCredentialID":"` + id + `","applicationCredentialSecret":"secret-of-` + id + `"}`)
}

// inWorld runs a test of instances with a cloud of these options.
func inWorld(t *testing.T, o fakecloud.Options, test func(*testing.T, *world)) {
	t.Helper()
	inWorldOf(t, o, config.Instance, v1alpha1.VirtualMachine_GroupVersionKind, test)
}

// inWorldOf runs a test of a kind of resources with a cloud of these options.
func inWorldOf(t *testing.T, o fakecloud.Options, resource string, kind schema.GroupVersionKind, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.URL, o.Projects = "http://openstack", map[string]string{good: "ours", other: "theirs"}
		w := &world{cloud: fakecloud.New(o)}
		w.api = fakes.InMemory(w.cloud)
		w.begin(t, "http://openstack/identity/v3", credential(good), resource, kind)
		test(t, w)
	})
}

// begin starts a provider with a credential at an address of Keystone.
func (w *world) begin(t *testing.T, authURL string, credential []byte, resource string, kind schema.GroupVersionKind) {
	t.Helper()
	w.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "openstack"}, Data: map[string][]byte{"credentials": credential}}
	userData := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "user-data"}, Data: map[string][]byte{"userData": []byte("#cloud-config\n")}}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderConfigSpec{
		AuthURL:     authURL,
		Credentials: v1alpha1.Credentials{Source: v1alpha1.CredentialsSecret, SecretRef: v1alpha1.SecretKeySelector{Namespace: "system", Name: "openstack", Key: "credentials"}},
	}}
	w.World = lifttest.New(t, v1alpha1.AddToScheme, w.process(t, resource, kind), w.secret, userData, pc)
}

// mortal is the transport of a process that may be killed. A call in flight is then lost, and continues at the cloud.
type mortal struct {
	next http.RoundTripper
	dead <-chan struct{}
}

func (m mortal) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-m.dead:
		return nil, io.ErrUnexpectedEOF
	default:
	}
	var resp *http.Response
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		resp, err = m.next.RoundTrip(req) //nolint:bodyclose // The caller closes it.
	}()
	select {
	case <-answered:
		return resp, err
	case <-m.dead:
		return nil, io.ErrUnexpectedEOF
	}
}

func (w *world) process(t *testing.T, resource string, kind schema.GroupVersionKind) func(client.Client) lifttest.Process {
	return func(c client.Client) lifttest.Process {
		pc, err := config.Provider()
		if err != nil {
			t.Fatal(err)
		}
		p, dead := newProjects(c), make(chan struct{})
		p.transport = func(string) (http.RoundTripper, error) { return mortal{w.api, dead}, nil }
		return lifttest.Process{
			Provider: pc, Resource: resource, Kind: kind,
			Setup: lift.Namespaced(p.terraformSetup), Behaviours: p.behaviours(), Killed: func() { close(dead) },
		}
	}
}

// credential changes the credential in the Secret, which enqueues no reconcile.
func (w *world) credential(data []byte) {
	w.Change(w.secret, func() { w.secret.Data["credentials"] = data })
}

func instance(name string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}}
	vm.Spec.ForProvider = v1alpha1.VirtualMachineParameters{
		Name: ptr.To(name), FlavorName: ptr.To(fakecloud.Flavor), ImageName: ptr.To(fakecloud.Image), AvailabilityZone: ptr.To("zone-b"),
		Metadata:          map[string]string{machinev1alpha1.TagInstallation: "installation", machinev1alpha1.TagMachineUID: "uid-of-machine-" + name},
		SecurityGroups:    []*string{ptr.To("nodes")},
		KeyPair:           ptr.To("admin"),
		Network:           []v1alpha1.NetworkParameters{{Name: ptr.To(fakecloud.Network)}},
		UserDataSecretRef: &xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: "user-data"}, Key: "userData"},
	}
	vm.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	return vm
}

// running adds an instance and waits until it runs. It then pins the instance, as the function does
// once the VM is known.
func (w *world) running(name string) *v1alpha1.VirtualMachine {
	vm := instance(name)
	w.Add(vm)
	w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
	w.Change(vm, func() {
		vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
	})
	return vm
}

// posts returns the number of calls that created servers, or tried to.
func (w *world) posts() int {
	calls, _ := w.cloud.Calls()
	return calls["POST /compute/v2.1/servers"]
}

func noSecret(t *testing.T, texts ...string) {
	t.Helper()
	if all := strings.Join(texts, "\n"); strings.Contains(all, "secret-of-") {
		t.Errorf("a secret is reported: %s", all)
	}
}
