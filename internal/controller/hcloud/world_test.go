package hcloud

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	config "github.com/drover-dev/drover/config/hcloud"
	"github.com/drover-dev/drover/internal/lift"
	"github.com/drover-dev/drover/internal/lift/lifttest"
	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/hcloud"
)

const (
	goodToken  = "s3cret-good"
	readOnly   = "s3cret-read-only"
	otherToken = "s3cret-of-another-project"

	// soon is more than enough for an operation without an obstacle.
	soon = 2 * time.Minute
)

// A world is a project of Hetzner Cloud, and a provider with its token.
type world struct {
	*lifttest.World
	t      *testing.T
	cloud  *fakecloud.Cloud
	secret *corev1.Secret
}

// inWorld runs a test with a cloud of these options.
func inWorld(t *testing.T, o fakecloud.Options, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Projects = map[string]string{goodToken: "ours", otherToken: "theirs"}
		o.ReadOnly = map[string]string{readOnly: "ours"}
		test(t, processIn(t, fakecloud.New(o)))
	})
}

// processIn returns another process with an API server of its own, and with the same cloud.
func processIn(t *testing.T, cloud *fakecloud.Cloud) *world {
	t.Helper()
	w := &world{t: t, cloud: cloud, secret: &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "hcloud"},
		Data:       map[string][]byte{"credentials": []byte(`{"token":"` + goodToken + `"}`)},
	}}
	userData := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "user-data"}, Data: map[string][]byte{"userData": []byte("#cloud-config\n")}}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderConfigSpec{
		Endpoint:    "http://hetzner/v1",
		Credentials: v1alpha1.Credentials{Source: v1alpha1.CredentialsSecret, SecretRef: v1alpha1.SecretKeySelector{Namespace: "system", Name: "hcloud", Key: "credentials"}},
	}}
	w.World = lifttest.New(t, v1alpha1.AddToScheme, w.process(t), w.secret, userData, pc)
	return w
}

func (w *world) process(t *testing.T) func(client.Client) lifttest.Process {
	return func(c client.Client) lifttest.Process {
		pc, err := config.Provider()
		if err != nil {
			t.Fatal(err)
		}
		p := newProjects(c)
		p.transport = fakes.InMemory(w.cloud)
		return lifttest.Process{
			Provider: pc, Resource: config.Server, Kind: v1alpha1.VirtualMachine_GroupVersionKind,
			Setup: lift.Namespaced(p.terraformSetup), Behaviours: p.behaviours(),
		}
	}
}

// token changes the token in the Secret, which enqueues no reconcile.
func (w *world) token(value string) {
	w.Change(w.secret, func() { w.secret.Data["credentials"] = []byte(`{"token":"` + value + `"}`) })
}

func server(name string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}}
	vm.Spec.ForProvider = v1alpha1.VirtualMachineParameters{
		Name: ptr.To(name), ServerType: ptr.To("cpx31"), Image: ptr.To("ubuntu-24.04"), Location: ptr.To("nbg1"),
		Labels:            map[string]string{machinev1alpha1.TagInstallation: "installation", machinev1alpha1.TagMachineUID: "uid-of-machine-" + name},
		SSHKeys:           []*string{ptr.To("admin")},
		FirewallIds:       []*int64{ptr.To[int64](38)},
		PlacementGroupID:  ptr.To[int64](7),
		Network:           []v1alpha1.NetworkParameters{{NetworkID: ptr.To[int64](4711)}},
		UserDataSecretRef: &xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: "user-data"}, Key: "userData"},
	}
	vm.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	return vm
}

// pin sets the management policies as the function does once the VM is known.
func (w *world) pin(vm *v1alpha1.VirtualMachine) {
	w.Change(vm, func() {
		vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
	})
}

// running adds a server and waits until it runs.
func (w *world) running(name string) *v1alpha1.VirtualMachine { return w.runs(server(name)) }

func (w *world) runs(vm *v1alpha1.VirtualMachine) *v1alpha1.VirtualMachine {
	w.Add(vm)
	w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
	w.pin(vm)
	return vm
}

// posts returns the number of calls that created servers, or tried to.
func (w *world) posts() int {
	calls, _ := w.cloud.Calls()
	return calls["POST /servers"]
}

func noSecret(t *testing.T, texts ...string) {
	t.Helper()
	if all := fmt.Sprint(texts); strings.Contains(all, "s3cret") {
		t.Errorf("a token is reported: %s", all)
	}
}
