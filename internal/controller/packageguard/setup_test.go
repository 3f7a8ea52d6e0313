package packageguard

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// underTest is the kubeconfig of a control plane with Crossplane and without Drover, in which the
// test may change anything.
const underTest = "KUBECONFIG_UNDER_TEST"

// serviceAccount is the account of the controller, with only these rights. Crossplane grants the
// right on CRDs to every provider with the safe-start capability, and the remaining ones must be in
// package/provider-drover/rbac.yaml.
const serviceAccount = "packageguard-test"

var rights = []rbacv1.PolicyRule{
	{APIGroups: []string{"machine.drover.dev"}, Resources: []string{"machines"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"apiextensions.crossplane.io"}, Resources: []string{"compositeresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"pkg.crossplane.io"}, Resources: []string{"configurationrevisions", "providerrevisions"}, Verbs: []string{"get"}},
	{APIGroups: []string{"pkg.crossplane.io"}, Resources: []string{"functions"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"protection.crossplane.io"}, Resources: []string{"clusterusages"}, Verbs: []string{"get", "list", "watch", "create"}},
	{
		APIGroups: []string{"protection.crossplane.io"}, Resources: []string{"clusterusages"}, ResourceNames: []string{"drover-machines", "drover-configuration", "drover-function"},
		Verbs: []string{"update", "delete"},
	},
}

// TestCrossplane deletes a Provider while the real webhook runs. The Provider's package does not
// exist: the test creates the objects that Crossplane would install.
func TestCrossplane(t *testing.T) {
	path := os.Getenv(underTest)
	if path == "" {
		t.Skipf("%s is not set: this test needs a control plane of its own", underTest)
	}
	e := newEnv(t, path)
	provider := e.object("pkg.crossplane.io/v1", "Provider", "guarded", map[string]any{"package": "xpkg.invalid/guarded:v1", "revisionActivationPolicy": "Manual"})
	e.install(provider)
	e.grant()
	e.start()

	e.create(e.machine("held", finalizer))
	e.create(e.machine("free"))
	e.eventually("the Provider is in use", func() bool {
		return e.exists(newUsage(ProviderUsage)) && e.exists(provider) && provider.GetLabels()["crossplane.io/in-use"] == "true"
	})
	e.denied(provider)

	e.must(e.Delete(t.Context(), newUsage(ProviderUsage)))
	e.eventually("a guard that a user deleted comes back", func() bool {
		u := newUsage(ProviderUsage)
		return e.exists(u) && u.GetDeletionTimestamp() == nil && e.exists(provider) && provider.GetLabels()["crossplane.io/in-use"] == "true"
	})
	e.must(e.Delete(t.Context(), e.machine("free")))
	e.must(e.Delete(t.Context(), e.machine("held")))
	e.denied(provider)

	m := e.machine("held")
	e.must(e.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	m.Finalizers = nil
	e.must(e.Update(t.Context(), m))
	e.eventually("the guard is deleted with the last Machine", func() bool { return !e.exists(newUsage(ProviderUsage)) })
	e.must(e.Delete(t.Context(), provider))
	e.eventually("the Provider is deleted", func() bool { return !e.exists(provider) })
}

type env struct {
	*testing.T
	client.Client
	mgr ctrl.Manager
}

func newEnv(t *testing.T, path string) *env {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, apiextensionsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	e := &env{T: t}
	as := rest.CopyConfig(cfg)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:" + serviceAccount, Groups: []string{"system:authenticated"}}
	e.mgr, err = ctrl.NewManager(as, ctrl.Options{Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}})
	e.must(err)
	e.Client, err = client.New(cfg, client.Options{Scheme: s})
	e.must(err)
	return e
}

// grant the rights for the duration of the test.
func (e *env) grant() {
	name := metav1.ObjectMeta{Name: serviceAccount}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: rights},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: serviceAccount},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: serviceAccount}},
		},
	} {
		e.create(obj)
		e.Cleanup(func() { _ = e.Delete(context.Background(), obj) })
	}
}

func (e *env) start() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	e.must(Setup(ctx, e.mgr, controller.Options{Logger: logging.NewNopLogger(), MaxConcurrentReconciles: 1}, e.mgr.GetCache(), "fn"))
	go func() { ended <- e.mgr.Start(ctx) }()
	e.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			e.Errorf("the manager ended with: %v", err)
		}
	})
}

// install creates the objects that a Provider's package installs: a revision, and the Machine CRD.
func (e *env) install(provider *unstructured.Unstructured) {
	e.create(provider)
	revision := e.object("pkg.crossplane.io/v1", "ProviderRevision", "guarded-1", map[string]any{"image": "xpkg.invalid/guarded:v1", "desiredState": "Inactive", "revision": int64(1)})
	revision.SetLabels(map[string]string{labelPackage: provider.GetName()})
	revision.SetOwnerReferences([]metav1.OwnerReference{ownerOf(provider, true)})
	e.create(revision)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: machineCRD}}
	crd.SetOwnerReferences([]metav1.OwnerReference{ownerOf(revision, true), ownerOf(provider, false)})
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: v1alpha1.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Machine", ListKind: "MachineList", Plural: "machines", Singular: "machine"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: v1alpha1.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
		}},
	}
	e.create(crd)
	e.eventually("the Machine CRD is served", func() bool {
		return e.exists(crd) && slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		})
	})
}

func (e *env) object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	u.SetName(name)
	return u
}

func ownerOf(u *unstructured.Unstructured, isController bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID(), Controller: &isController}
}

func (e *env) machine(name string, finalizers ...string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers}}
}

// denied deletes the Provider and checks the reason that the user reads.
func (e *env) denied(provider client.Object) {
	e.Helper()
	err := e.Delete(e.Context(), provider)
	for _, want := range []string{"This resource is in-use by 1 usage(s)", `"drover-machines"`, ProviderReason} {
		if err == nil || !strings.Contains(err.Error(), want) {
			e.Errorf("deletion of the Provider: error %v, want one with %q", err, want)
		}
	}
}

func (e *env) create(obj client.Object) { e.Helper(); e.must(e.Create(e.Context(), obj)) }

func (e *env) exists(obj client.Object) bool {
	e.Helper()
	err := e.Get(e.Context(), client.ObjectKeyFromObject(obj), obj)
	e.must(client.IgnoreNotFound(err))
	return err == nil
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) eventually(what string, is func() bool) {
	e.Helper()
	patience.Until(e, what, is)
}
