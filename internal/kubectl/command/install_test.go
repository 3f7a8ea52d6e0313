package command

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A cluster is an API server that makes each package healthy as soon as it is applied, unless healthy is false.
type cluster struct {
	client.WithWatch
	healthy bool
	// conflict is the kind whose objects another client wrote.
	conflict string
}

// newCluster serves the kinds of an installation; those of Crossplane only if it has Crossplane.
func newCluster(t *testing.T, hasCrossplane bool, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{healthy: true}
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(group, version string, kinds ...string) {
		for _, k := range kinds {
			mapper.Add(schema.GroupVersionKind{Group: group, Version: version, Kind: k}, meta.RESTScopeRoot)
		}
	}
	add("", "v1", "Secret", "Namespace", "ServiceAccount")
	add("rbac.authorization.k8s.io", "v1", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	add("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	add("hcloud.drover.dev", "v1alpha1", "ClusterProviderConfig")
	add("openstack.drover.dev", "v1alpha1", "ClusterProviderConfig")
	add("cluster.drover.dev", "v1alpha1", "ClusterProviderConfig")
	if hasCrossplane {
		add("pkg.crossplane.io", "v1", "Configuration", "Function", "Provider")
		add("pkg.crossplane.io", "v1beta1", "DeploymentRuntimeConfig", "ImageConfig")
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return c.apply(ctx, w, o, opts...)
		},
	}).Build()
	return c
}

// apply is server-side apply, as far as an installer sees it.
func (c *cluster) apply(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	u, ok := o.(interface{ GetKind() string })
	options := client.ApplyOptions{}
	options.ApplyOptions(opts)
	if ok && u.GetKind() == c.conflict && (options.Force == nil || !*options.Force) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errors.New(`conflict with "kubectl-edit": .rules`))
	}
	want, before := unstructuredOf(o), &unstructured.Unstructured{}
	before.SetGroupVersionKind(want.GroupVersionKind())
	if err := w.Get(ctx, client.ObjectKeyFromObject(want), before); apierrors.IsNotFound(err) {
		if len(options.DryRun) > 0 {
			return nil
		}
		return w.Create(ctx, want)
	} else if err != nil {
		return err
	}
	after := before.DeepCopy()
	for field, value := range want.Object {
		if field != "metadata" {
			after.Object[field] = value
		}
	}
	var err error
	if len(options.DryRun) == 0 && !equality.Semantic.DeepEqual(before, after) {
		err = w.Update(ctx, after)
	}
	want.Object = after.Object
	return err
}

// unstructuredOf an apply configuration that was made of an unstructured object, which it holds.
func unstructuredOf(o runtime.ApplyConfiguration) *unstructured.Unstructured {
	return reflect.ValueOf(o).Elem().FieldByName("Unstructured").Interface().(*unstructured.Unstructured)
}

// installTo runs an installation, and returns its output.
func installTo(t *testing.T, c *cluster, args ...string) (string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	a := &app{IOStreams: streams, config: genericclioptions.NewConfigFlags(true), now: time.Now, client: &healing{c}}
	cmd := a.install()
	cmd.SetArgs(args)
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// healing reports each package as Crossplane does that has installed it.
type healing struct{ *cluster }

// Get implements client.Client.
func (h *healing) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := h.cluster.Get(ctx, key, o, opts...)
	u, ok := o.(*unstructured.Unstructured)
	if err != nil || !ok || u.GroupVersionKind().GroupVersion().String() != "pkg.crossplane.io/v1" || !h.healthy {
		return err
	}
	pkg, _, _ := unstructured.NestedString(u.Object, "spec", "package")
	u.Object["status"] = map[string]any{"currentIdentifier": pkg, "conditions": []any{
		map[string]any{"type": "Installed", "status": "True"}, map[string]any{"type": "Healthy", "status": "True"},
	}}
	return nil
}

func TestAnInstallationIsIdempotent(t *testing.T) {
	c := newCluster(t, true)
	out, err := installTo(t, c, "hcloud", "--join-this-cluster=default")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"clusterrole.rbac.authorization.k8s.io/drover:machine-controller:hcloud created", "provider.pkg.crossplane.io/drover-provider-hcloud is healthy",
		"clusterproviderconfig.hcloud.drover.dev/default created", "clusterproviderconfig.cluster.drover.dev/default created",
		"Drover v0.1.0 is installed for hcloud. What is left to do:\n1. Credentials of hcloud",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, err = installTo(t, c, "hcloud", "--join-this-cluster=default"); err != nil || strings.Contains(out, " created") || strings.Contains(out, " configured") {
		t.Errorf("the second time: %v\n%s", err, out)
	}
}

func TestAnUpgradeKeepsTheConfigurationOfAUser(t *testing.T) {
	c := newCluster(t, true)
	if _, err := installTo(t, c, "hcloud"); err != nil {
		t.Fatal(err)
	}
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(schema.GroupVersionKind{Group: "hcloud.drover.dev", Version: "v1alpha1", Kind: "ClusterProviderConfig"})
	if err := c.Get(t.Context(), client.ObjectKey{Name: "default"}, config); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(config.Object, "other", "spec", "credentials", "secretRef", "name")
	if err := c.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	out, err := installTo(t, c, "hcloud", "--version=v0.2.0")
	if err != nil || !strings.Contains(out, "configuration.pkg.crossplane.io/drover-drover configured") || !strings.Contains(out, "clusterproviderconfig.hcloud.drover.dev/default exists and is kept") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAnInstallationThatCannotBeCompletedNamesTheCause(t *testing.T) {
	existing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{"name": "mine"}, "spec": map[string]any{"package": "xpkg.drover.dev/drover/provider-hcloud:v0.0.9"}}}
	for name, tc := range map[string]struct {
		prepare func(*testing.T) *cluster
		args    []string
		// err and out are texts of the error and of the output.
		err, out string
	}{
		"NoCrossplane":           {func(t *testing.T) *cluster { return newCluster(t, false) }, []string{"hcloud"}, "has no Crossplane, or an old one", ""},
		"ATargetNeedsNone":       {func(t *testing.T) *cluster { return newCluster(t, false) }, []string{"target-cluster"}, "", "The cluster is ready for Machines"},
		"NotHealthy":             {func(t *testing.T) *cluster { c := newCluster(t, true); c.healthy = false; return c }, []string{"hcloud"}, "function.pkg.crossplane.io/drover-function-drover is not unpacked yet. The same command continues", ""},
		"AConflict":              {func(t *testing.T) *cluster { c := newCluster(t, true); c.conflict = "ClusterRole"; return c }, []string{"hcloud"}, "add --force-conflicts", ""},
		"AConflictIsForced":      {func(t *testing.T) *cluster { c := newCluster(t, true); c.conflict = "ClusterRole"; return c }, []string{"hcloud", "--force-conflicts"}, "", "is installed for hcloud"},
		"APackageIsForced":       {func(t *testing.T) *cluster { c := newCluster(t, true); c.conflict = "Function"; return c }, []string{"hcloud"}, "", "is installed for hcloud"},
		"AnotherName":            {func(t *testing.T) *cluster { return newCluster(t, true, existing.DeepCopy()) }, []string{"hcloud"}, "", "provider.pkg.crossplane.io/mine is healthy"},
		"APlaceholder":           {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"openstack"}, "", "clusterproviderconfig.openstack.drover.dev/default has values to replace and is not applied"},
		"ADryRun":                {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"hcloud", "--dry-run=server"}, "", "Nothing was changed"},
		"AnUnknownCloud":         {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"hetzner"}, `cloud "hetzner": must be one of`, ""},
		"AnUnknownPart":          {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"hcloud", "--part=crds"}, "--part=crds: must be one of", ""},
		"TheExampleIsNotApplied": {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"hcloud", "--part=example"}, "add -o yaml", ""},
		"AFormat":                {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"hcloud", "-o=json"}, "--output=json: must be yaml", ""},
		"ARegistry":              {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"hcloud", "--registry=r/"}, "without a slash at the end", ""},
		"NoConfiguration":        {func(t *testing.T) *cluster { return newCluster(t, true) }, []string{"digitalocean", "--part=configuration"}, "digitalocean has no configuration", ""},
	} {
		// The timeout of ten minutes is over in no time.
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, err := installTo(t, tc.prepare(t), tc.args...)
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
					t.Errorf("error %v, want %q\n%s", err, tc.err, out)
				}
				if !strings.Contains(out, tc.out) {
					t.Errorf("no %q in\n%s", tc.out, out)
				}
			})
		})
	}
}

func TestADryRunShowsAnUpgrade(t *testing.T) {
	c := newCluster(t, true)
	if _, err := installTo(t, c, "hcloud"); err != nil {
		t.Fatal(err)
	}
	out, err := installTo(t, c, "hcloud", "--dry-run=server", "--version=v0.2.0")
	if err != nil || !strings.Contains(out, "configuration.pkg.crossplane.io/drover-drover configured (server dry run)") || !strings.Contains(out, "clusterrole.rbac.authorization.k8s.io/drover:viewer unchanged (server dry run)") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestADryRunKeepsNothing(t *testing.T) {
	c := newCluster(t, true)
	if _, err := installTo(t, c, "hcloud", "--dry-run=server"); err != nil {
		t.Fatal(err)
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "ProviderList"})
	if err := c.List(t.Context(), all); err != nil || len(all.Items) > 0 {
		t.Errorf("%v, %v", all.Items, err)
	}
}
