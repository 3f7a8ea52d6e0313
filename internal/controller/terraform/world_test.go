package terraform

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/terraform/plugin"
	"github.com/drover-dev/drover/internal/terraform/plugin/plugintest"
)

func TestMain(m *testing.M) {
	plugintest.Main()
	os.Exit(m.Run())
}

const (
	namespace = "team"
	// stateNamespace is the namespace of the provider.
	stateNamespace = "crossplane-system"
	userData       = "#!/bin/sh\ntoken=abcdef.0123456789abcdef\n"
)

// A world has an API server, the controller, and a cloud behind a real Terraform provider.
type world struct {
	*testing.T
	kube client.WithWatch
	// dir of the cloud.
	dir string
	// mirror of the Terraform providers.
	mirror string
	pool   *plugin.Pool
	config *v1alpha1.ClusterProviderConfig
	// before is called before each write to the API server.
	before     func(verb string, obj client.Object) error
	reconciler reconcile.Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	mirror, sum := plugintest.Mirror(t, 6)
	w := &world{T: t, dir: t.TempDir(), mirror: mirror, pool: plugin.NewPool(plugin.Mirror(mirror), time.Now)}
	t.Cleanup(w.pool.Close)
	w.config = &v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "config", Generation: 1},
		Spec: v1alpha1.ProviderConfigSpec{
			Provider:      v1alpha1.TerraformProvider{Source: plugintest.Address + "6", Version: plugintest.Version, SHA256: []string{sum}},
			Configuration: &extv1.JSON{Raw: fmt.Appendf(nil, `{"dir": %q}`, w.dir)},
			Credentials:   &v1alpha1.Credentials{SecretRef: v1alpha1.SecretKeySelector{Namespace: stateNamespace, Name: "fake", Key: "credentials"}},
			VirtualMachines: []v1alpha1.VirtualMachineType{{
				Type: "fake_vm",
				Arguments: []v1alpha1.ArgumentBinding{
					{Argument: "name", Value: "name"},
					{Argument: "tags", Value: "tags"},
					{Argument: "tags[zone]", Value: `failureDomain != "" ? optional.of(failureDomain) : optional.none()`},
				},
				UserData: v1alpha1.UserDataBinding{Argument: "user_data", Encoding: v1alpha1.EncodingPlain},
				Outputs: v1alpha1.Outputs{
					ProviderID: `"fake://" + state.id`,
					Addresses:  `[{"type": "InternalIP", "address": state.ip}, {"type": "ExternalIP", "address": ""}]`,
					Running:    `state.state == "running"`,
				},
			}},
		},
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(ns, name, key, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{key: []byte(value)}}
	}
	w.kube = interceptor.NewClient(fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.VirtualMachine{}).WithObjects(w.config,
		secret(stateNamespace, "fake", "credentials", `{"token": "secret-of-the-cloud"}`), secret(namespace, "user-data", "userData", userData)).Build(), w.interceptor())
	w.restart()
	return w
}

func (w *world) interceptor() interceptor.Funcs {
	check := func(verb string, obj client.Object) error {
		if w.before == nil {
			return nil
		}
		return w.before(verb, obj)
	}
	return interceptor.Funcs{
		Create: func(ctx ctx, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := check("create", obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx ctx, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := check("update", obj); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
	}
}

// restart restarts the controller: its memory is lost.
func (w *world) restart() {
	c := newConnector(w.kube, stateNamespace, w.pool, &mr.Again{})
	w.reconciler = managed.NewReconciler(&xpfake.Manager{Client: w.kube, Scheme: w.kube.Scheme()},
		resource.ManagedKind(v1alpha1.VirtualMachineGroupVersionKind),
		append([]managed.ReconcilerOption{managed.WithTypedExternalConnector(c), managed.WithManagementPolicies()}, c.options(w.kube)...)...)
}

// vm creates a VM with a name and changes.
func (w *world) vm(name string, changes ...func(*v1alpha1.VirtualMachine)) *v1alpha1.VirtualMachine {
	w.Helper()
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	vm.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"}
	vm.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	vm.Spec.ForProvider = v1alpha1.VirtualMachineParameters{
		Name: name, Tags: map[string]string{"drover-machine": name}, FailureDomain: "zone-b",
		UserDataSecretRef: &xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: "user-data"}, Key: "userData"},
		Arguments:         &extv1.JSON{Raw: []byte(`{"size": "large", "tags": {"team": "red"}}`)},
	}
	for _, change := range changes {
		change(vm)
	}
	if err := w.kube.Create(w.Context(), vm); err != nil {
		w.Fatal(err)
	}
	return vm
}

// reconcile reconciles a VM n times.
func (w *world) reconcile(vm *v1alpha1.VirtualMachine, n int) {
	w.Helper()
	for range n {
		_, _ = w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(vm)})
	}
	if err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(vm), vm); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	} else if err != nil {
		vm.UID = ""
	}
}

func (w *world) delete(vm *v1alpha1.VirtualMachine) {
	w.Helper()
	if err := w.kube.Delete(w.Context(), vm); err != nil {
		w.Fatal(err)
	}
}

// states returns the Secrets with states.
func (w *world) states() []corev1.Secret {
	w.Helper()
	l := &corev1.SecretList{}
	if err := w.kube.List(w.Context(), l, client.MatchingLabels{labelState: "true"}); err != nil {
		w.Fatal(err)
	}
	return l.Items
}

func (w *world) change(f func(spec *v1alpha1.ProviderConfigSpec)) {
	w.Helper()
	f(&w.config.Spec)
	w.config.Generation++
	if err := w.kube.Update(w.Context(), w.config); err != nil {
		w.Fatal(err)
	}
}

// synced returns the message of the condition Synced.
func synced(vm *v1alpha1.VirtualMachine) string { return vm.GetCondition(xpv2.TypeSynced).Message }

// keepsSecrets asserts that the object, as users see it, contains no secret.
func (w *world) keepsSecrets(vm *v1alpha1.VirtualMachine) {
	w.Helper()
	b, err := json.Marshal(vm)
	if err != nil {
		w.Fatal(err)
	}
	for _, secret := range []string{"abcdef.0123456789abcdef", "secret-of-the-cloud"} {
		if strings.Contains(string(b), secret) {
			w.Errorf("the VM resource shows %q: %s", secret, b)
		}
	}
}

func isPending(vm *v1alpha1.VirtualMachine) bool { return meta.ExternalCreateIncomplete(vm) }
