package packageguard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// finalizer that keeps an object in deletion.
const finalizer = "test.drover.dev/hold"

var (
	errNoKind    = &meta.NoKindMatchError{GroupKind: ClusterUsageGroupVersionKind.GroupKind()}
	errForbidden = kerrors.NewForbidden(schema.GroupResource{Resource: "clusterusages"}, ProviderUsage, errors.New("no rule"))
	errBroken    = errors.New("broken")
)

// A step changes the cluster and states what one reconcile then does.
type step struct {
	do       func(*cluster)
	calls    []string // to the API server; reads of caches are none
	provider string   // that the usage guards afterwards, empty without a usage
	requeue  time.Duration
	err      error
	logs     int
}

func TestReconcile(t *testing.T) {
	const (
		getCRD, getRevision = "get CustomResourceDefinition", "get ProviderRevision"
		getUsage, crt       = "get ClusterUsage", "create ClusterUsage"
		upd, del            = "update ClusterUsage", "delete ClusterUsage"
	)
	first := step{do: addMachine("m", false), calls: []string{getCRD, getRevision, getUsage, crt}, provider: "p"}

	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"NoMachine": {"Without Machines the guard is looked for once after the start, and nothing is called at rest.", []step{
			{calls: []string{getUsage}},
			{},
		}},
		"FirstAndLastMachine": {"The guard exists as long as a Machine does, and other Machines cost no call.", []step{
			first,
			{provider: "p"},
			{do: addMachine("n", false), provider: "p"},
			{do: deleteMachine("m"), provider: "p"},
			{do: deleteMachine("n"), calls: []string{del}},
			{},
			{do: addMachine("o", false), calls: []string{crt}, provider: "p"},
		}},
		"TerminatingMachine": {"A Machine counts until it is gone, since its VM is deleted by this provider.", []step{
			{do: addMachine("m", true), calls: []string{getCRD, getRevision, getUsage, crt}, provider: "p"},
			{do: deleteMachine("m"), provider: "p"},
			{do: release("m"), calls: []string{del}},
		}},
		"Restart": {"The guard of Machines that were deleted while no process ran is deleted at the start.", []step{
			{do: addUsage("p", false), calls: []string{getUsage, del}},
		}},
		"DeletedByHand": {"A guard that a user deletes comes back.", []step{
			first,
			{do: deleteUsage, calls: []string{crt}, provider: "p"},
		}},
		"DeletionUnderWay": {"A guard that waits for the finalizer of Crossplane comes back once it is gone.", []step{
			{do: func(c *cluster) { addUsage("p", true)(c); addMachine("m", false)(c); deleteUsage(c) }, calls: []string{getCRD, getRevision, getUsage}, provider: "p"},
			{provider: "p"},
			{do: releaseUsage, calls: []string{crt}, provider: "p"},
		}},
		"EditedByHand": {"The spec of the guard is restored.", []step{
			first,
			{do: editUsage, calls: []string{upd}, provider: "p"},
		}},
		"RevisionSwitched": {"Another revision of the same Provider costs one read and no write.", []step{
			first,
			{do: install("p", "p-2"), calls: []string{getRevision}, provider: "p"},
			{provider: "p"},
		}},
		"ProviderRenamed": {"The guard follows the CRD to another Provider.", []step{
			first,
			{do: install("q", "q-1"), calls: []string{getRevision, upd}, provider: "q"},
		}},
		"AppliedByHand": {"Without an owner of the CRD there is no package to guard, until one adopts the CRD.", []step{
			{do: func(c *cluster) { c.own(); addMachine("m", false)(c) }, calls: []string{getCRD}},
			{do: addMachine("n", false)},
			{do: install("p", "p-2"), calls: []string{getRevision, getUsage, crt}, provider: "p"},
		}},
		"OwnedByAnXRD": {"A CRD of a CompositeResourceDefinition belongs to no Provider.", []step{
			{do: func(c *cluster) {
				c.own(metav1.OwnerReference{APIVersion: "apiextensions.crossplane.io/v2", Kind: "CompositeResourceDefinition", Name: machineCRD, UID: "x", Controller: ptr.To(true)})
				addMachine("m", false)(c)
			}, calls: []string{getCRD}},
		}},
		"NoCRD": {"A CRD that is gone is no failure.", []step{
			{do: func(c *cluster) {
				c.must(c.Delete(c.Context(), newMetadata(crdGroupVersionKind, machineCRD)))
				addMachine("m", false)(c)
			}, calls: []string{getCRD}},
		}},
		"NoRevision": {"A CRD whose revision is gone waits for the next one.", []step{
			{do: func(c *cluster) {
				c.must(c.Delete(c.Context(), newMetadata(revisionGroupVersionKind(providerKind), "p-1")))
				addMachine("m", false)(c)
			}, calls: []string{getCRD, getRevision}},
			{do: install("p", "p-2"), calls: []string{getRevision, getUsage, crt}, provider: "p"},
		}},
		"KindMissing": {"Without ClusterUsages the controller logs once and calls once in ten minutes.", []step{
			{do: func(c *cluster) { c.fail[getUsage] = errNoKind; addMachine("m", false)(c) }, calls: []string{getCRD, getRevision, getUsage}, requeue: retryInterval, logs: 1},
			{do: addMachine("n", false), requeue: retryInterval},
			{do: wait(retryInterval), calls: []string{getUsage}, requeue: retryInterval},
			{do: func(c *cluster) { delete(c.fail, getUsage); wait(retryInterval)(c) }, calls: []string{getUsage, crt}, provider: "p"},
		}},
		"KindMissingWithoutMachines": {"While there is nothing to guard, a missing kind is not worth a log line.", []step{
			{do: func(c *cluster) { c.fail[getUsage] = errNoKind }, calls: []string{getUsage}},
		}},
		"Forbidden": {"Without the right to create ClusterUsages the controller logs once.", []step{
			{do: func(c *cluster) { c.fail[crt] = errForbidden; addMachine("m", false)(c) }, calls: first.calls, requeue: retryInterval, logs: 1},
			{do: wait(retryInterval), calls: []string{crt}, requeue: retryInterval},
			{do: func(c *cluster) { delete(c.fail, crt); wait(retryInterval)(c) }, calls: []string{crt}, provider: "p"},
		}},
		"ForbiddenDelete": {"A guard that outlasts the Machines is logged, since its reason is no longer true.", []step{
			first,
			{do: func(c *cluster) { c.fail[del] = errForbidden; deleteMachine("m")(c) }, calls: []string{del}, provider: "p", requeue: retryInterval, logs: 1},
			{do: func(c *cluster) { delete(c.fail, del); wait(retryInterval)(c) }, calls: []string{del}},
		}},
		"ForbiddenRevision": {"Without the right to read ProviderRevisions the controller logs once.", []step{
			{do: func(c *cluster) { c.fail[getRevision] = errForbidden; addMachine("m", false)(c) }, calls: []string{getCRD, getRevision}, requeue: retryInterval, logs: 1},
		}},
		"Broken": {"Any other error is retried with backoff.", []step{
			{do: func(c *cluster) { c.fail[crt] = errBroken; addMachine("m", false)(c) }, calls: first.calls, err: errBroken},
			{do: func(c *cluster) { delete(c.fail, crt) }, calls: []string{crt}, provider: "p"},
		}},
		"StaleCreate": {"A guard that the cache does not show yet is no failure.", []step{
			{do: func(c *cluster) {
				c.fail[crt] = kerrors.NewAlreadyExists(schema.GroupResource{}, ProviderUsage)
				addMachine("m", false)(c)
			}, calls: first.calls},
		}},
		"StaleUpdate": {"A guard that changed since it was read is no failure.", []step{
			first,
			{do: func(c *cluster) {
				c.fail[upd] = kerrors.NewConflict(schema.GroupResource{}, ProviderUsage, errBroken)
				install("q", "q-1")(c)
			}, calls: []string{getRevision, upd}, provider: "p"},
			{do: func(c *cluster) { c.fail[upd] = kerrors.NewNotFound(schema.GroupResource{}, ProviderUsage) }, calls: []string{upd}, provider: "p"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			for i, s := range tc.steps {
				c.calls, c.logs = nil, 0
				if s.do != nil {
					s.do(c)
				}
				got, err := c.Reconcile(t.Context(), request(ProviderUsage))
				if !errors.Is(err, s.err) {
					t.Errorf("%s\nstep %d: error %v, want %v", tc.reason, i, err, s.err)
				}
				if d := cmp.Diff(reconcile.Result{RequeueAfter: s.requeue}, got); d != "" {
					t.Errorf("%s\nstep %d: result (-want +got):\n%s", tc.reason, i, d)
				}
				if !slices.Equal(c.calls, s.calls) {
					t.Errorf("%s\nstep %d: calls %q, want %q", tc.reason, i, c.calls, s.calls)
				}
				if c.logs != s.logs {
					t.Errorf("%s\nstep %d: %d log lines, want %d", tc.reason, i, c.logs, s.logs)
				}
				c.check(s.provider)
			}
		})
	}
}

// TestUsage compares the object with the fields that Crossplane expects and a user reads.
func TestUsage(t *testing.T) {
	c := newCluster(t)
	addMachine("m", false)(c)
	if _, err := c.Reconcile(t.Context(), request(ProviderUsage)); err != nil {
		t.Fatal(err)
	}
	u := newUsage(ProviderUsage)
	c.must(c.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	u.SetResourceVersion("")
	want := map[string]any{
		"apiVersion": "protection.crossplane.io/v1beta1", "kind": "ClusterUsage", "metadata": map[string]any{"name": "drover-machines", "labels": map[string]any{"machine.drover.dev/package-guard": "true"}},
		"spec": map[string]any{
			"of": map[string]any{"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "resourceRef": map[string]any{"name": "p"}},
			"reason": "Machines exist: deleting this package would delete them and their VMs. Delete all MachineDeployments, MachineSets and Machines first " +
				"(kubectl get machines -A), then delete the package.",
		},
	}
	if d := cmp.Diff(want, u.Object); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestOtherPackages is about the packages that Machines need in addition to that of their CRD.
func TestOtherPackages(t *testing.T) {
	const group = "cloud.example.org"
	cloud := GroupUsage(group)
	cases := map[string]struct {
		reason string
		usage  string
		do     []func(*cluster)
		kind   string // of the guarded package, empty if there is no guard
		name   string
		says   string
	}{
		"Configuration": {"The Compositions of Machines come with the Configuration.", ConfigurationUsage,
			[]func(*cluster){addXRD("conf"), addMachine("m", false)}, configurationKind, "conf", ConfigurationReason},
		"ConfigurationWithoutMachines": {"Without Machines the Configuration may be deleted.", ConfigurationUsage,
			[]func(*cluster){addXRD("conf")}, "", "", ""},
		"XRDAppliedByHand": {"XRDs without a package have no Configuration to guard.", ConfigurationUsage,
			[]func(*cluster){addXRD(""), addMachine("m", false)}, "", "", ""},
		"Function": {"The Function is found by its name.", FunctionUsage,
			[]func(*cluster){addFunction("fn"), addMachine("m", false)}, functionKind, "fn", FunctionReason},
		"FunctionOfAnotherName": {"A Function that is not there is not guarded.", FunctionUsage,
			[]func(*cluster){addFunction("other"), addMachine("m", false)}, "", "", ""},
		"Cloud": {"The Provider of a VM's kind is guarded, whoever made it.", cloud,
			[]func(*cluster){addKind("instances", "upstream"), addMachineWith("m", group+"/v1", "Instance")}, providerKind, "upstream",
			"Machines have resources of cloud.example.org: without this package nothing deletes their VMs. Delete these Machines first (kubectl get machines -A), then delete the package."},
		"CloudOfOthers": {"Machines of other clouds do not need the Provider.", cloud,
			[]func(*cluster){addKind("instances", "upstream"), addMachine("m", false), addMachineWith("n", "other.example.org/v1", "Instance")}, "", "", ""},
		"CloudThatLastMachineLeft": {"Without Machines of this cloud its Provider may be deleted.", cloud,
			[]func(*cluster){addKind("instances", "upstream"), addMachineWith("m", group+"/v1", "Instance"), reconcileNow(cloud), deleteMachine("m")}, "", "", ""},
		"CloudAfterRestart": {"The guard of a cloud whose last Machine was deleted while no process ran is deleted.", cloud,
			[]func(*cluster){func(c *cluster) {
				u := newUsage(cloud)
				u.Object["spec"] = desiredSpec(providerKind, "upstream", GroupReason(group))
				c.must(c.Create(c.Context(), u))
			}}, "", "", ""},
		"CloudAppliedByHand": {"A CRD that no package brought has none to guard.", cloud,
			[]func(*cluster){addKind("instances", ""), addMachineWith("m", group+"/v1", "Instance")}, "", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			for _, do := range tc.do {
				do(c)
			}
			reconcileNow(tc.usage)(c)
			u := newUsage(tc.usage)
			err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u)
			if tc.kind == "" {
				if !kerrors.IsNotFound(err) {
					t.Errorf("%s\nusage %v, error %v, want none", tc.reason, u.Object, err)
				}
				return
			}
			c.must(err)
			if d := cmp.Diff(desiredSpec(tc.kind, tc.name, tc.says), usageOf(u).spec); d != "" {
				t.Errorf("%s\nspec of the usage (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

// TestOneForbiddenGuardLeavesTheOthers has no right on the guard of one cloud.
func TestOneForbiddenGuardLeavesTheOthers(t *testing.T) {
	c := newCluster(t)
	addMachine("m", false)(c)
	c.fail["create ClusterUsage"] = errForbidden
	reconcileNow(ProviderUsage)(c)
	delete(c.fail, "create ClusterUsage")
	addXRD("conf")(c)
	reconcileNow(ConfigurationUsage)(c)
	c.must(c.Get(t.Context(), client.ObjectKey{Name: ConfigurationUsage}, newUsage(ConfigurationUsage)))
	c.check("")
}

// TestAForeignUsageWithTheLabelIsLeftAlone has a ClusterUsage that a user labeled.
func TestAForeignUsageWithTheLabelIsLeftAlone(t *testing.T) {
	c := newCluster(t)
	c.must(c.Create(t.Context(), newUsage("of-a-user")))
	reconcileNow("of-a-user")(c)
	c.must(c.Get(t.Context(), client.ObjectKey{Name: "of-a-user"}, newUsage("of-a-user")))
}

func TestGroupsOf(t *testing.T) {
	m := machine("m")
	for _, r := range [][2]string{
		{"ec2.aws.m.upbound.io/v1beta1", "Instance"}, {"ec2.aws.m.upbound.io/v1beta2", "NetworkInterface"},
		{"v1", "Secret"}, {"apps/v1", "Deployment"}, {"networking.k8s.io/v1", "Ingress"}, {"network.azure.m.upbound.io/v1beta1", "PublicIP"},
	} {
		m.Status.ResourceRefs = append(m.Status.ResourceRefs, v1alpha1.ComposedReference{APIVersion: r[0], Kind: r[1]})
	}
	want := []string{"ec2.aws.m.upbound.io", "network.azure.m.upbound.io"}
	if d := cmp.Diff(want, groupsOf(m)); d != "" {
		t.Errorf("each group of a package once (-want +got):\n%s", d)
	}
}

// A cluster is an API server, its caches without lag, and the reconciler.
type cluster struct {
	*testing.T
	client.WithWatch
	*reconciler

	// calls to the API server, and errors of calls.
	calls []string
	fail  map[string]error
	logs  int
	clock time.Time
}

// newCluster returns a cluster with the Machine CRD of revision p-1 of Provider p.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		ClusterUsageGroupVersionKind, revisionGroupVersionKind(providerKind), revisionGroupVersionKind(configurationKind), packageGroupVersionKind(functionKind), xrdGroupVersionKind,
	} {
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}
	c := &cluster{T: t, WithWatch: fake.NewClientBuilder().WithScheme(s).WithIndex(&v1alpha1.Machine{}, byGroup, groupsOf).Build(), fail: map[string]error{}, clock: time.Now()}
	server := interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, cl client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := c.call("get", obj); err != nil {
				return err
			}
			return cl.Get(ctx, key, obj, opts...)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errBroken
		},
		Create: func(ctx context.Context, cl client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := c.call("create", obj); err != nil {
				return err
			}
			return cl.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, cl client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := c.call("update", obj); err != nil {
				return err
			}
			return cl.Update(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, cl client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := c.call("delete", obj); err != nil {
				return err
			}
			return cl.Delete(ctx, obj, opts...)
		},
	})
	cached := &view{live: server, cached: c.WithWatch, watch: func(context.Context, client.Object) error { return nil }}
	usage := *cached
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Instance", "Disk"} {
		mapper.Add(schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	definition := func(gvk schema.GroupVersionKind, name, kind string) *definitionFinder {
		v := *cached
		return &definitionFinder{definition: gvk, name: name, kind: kind, view: &v, live: server}
	}
	c.reconciler = &reconciler{
		machines: c.WithWatch, usages: &usage, client: server,
		log: logger{logging.NewNopLogger(), &c.logs}, now: func() time.Time { return c.clock },
		guards: map[string]*guard{
			ProviderUsage:      {usage: ProviderUsage, kind: providerKind, reason: ProviderReason, finder: definition(crdGroupVersionKind, machineCRD, providerKind)},
			ConfigurationUsage: {usage: ConfigurationUsage, kind: configurationKind, reason: ConfigurationReason, finder: definition(xrdGroupVersionKind, machineSetXRD, configurationKind)},
			FunctionUsage:      {usage: FunctionUsage, kind: functionKind, reason: FunctionReason, finder: &functionFinder{name: "fn", view: cached}},
		},
		newGroup: func(group string) *guard {
			return newGroupGuard(group, &groupFinder{
				group: group, machines: c.WithWatch, mapper: mapper, kinds: map[string]*definitionFinder{},
				provider: func(crd string) (*definitionFinder, error) {
					return definition(crdGroupVersionKind, crd, providerKind), nil
				},
			})
		},
	}
	c.must(c.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: machineCRD}}))
	install("p", "p-1")(c)
	return c
}

func (c *cluster) call(verb string, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	c.must(err)
	call := verb + " " + gvk.Kind
	c.calls = append(c.calls, call)
	return c.fail[call]
}

// check that the usage guards the Provider, or that there is none.
func (c *cluster) check(provider string) {
	c.Helper()
	u := newUsage(ProviderUsage)
	err := c.Get(c.Context(), client.ObjectKeyFromObject(u), u)
	if provider == "" {
		if !kerrors.IsNotFound(err) {
			c.Errorf("usage %v, error %v, want none", u.Object, err)
		}
		return
	}
	c.must(err)
	if d := cmp.Diff(desiredSpec(providerKind, provider, ProviderReason), usageOf(u).spec); d != "" {
		c.Errorf("spec of the usage (-want +got):\n%s", d)
	}
}

// own sets the owners of the CRD.
func (c *cluster) own(owners ...metav1.OwnerReference) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	c.must(c.Get(c.Context(), client.ObjectKey{Name: machineCRD}, crd))
	crd.SetOwnerReferences(owners)
	c.must(c.Update(c.Context(), crd))
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) change(obj client.Object, change func()) {
	c.must(c.Get(c.Context(), client.ObjectKeyFromObject(obj), obj))
	change()
	c.must(c.Update(c.Context(), obj))
}

// install installs a revision of a Provider, which then controls the CRD in addition to other owners.
func install(provider, name string) func(*cluster) {
	return func(c *cluster) {
		revision := &unstructured.Unstructured{}
		revision.SetGroupVersionKind(revisionGroupVersionKind(providerKind))
		revision.SetName(name)
		revision.SetUID(types.UID(name))
		revision.SetLabels(map[string]string{"pkg.crossplane.io/package": provider})
		c.must(c.Create(c.Context(), revision))
		c.own(
			metav1.OwnerReference{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceDefinition", Name: machineCRD, UID: "mrd"},
			metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "old", UID: "old", Controller: ptr.To(false)},
			metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: name, UID: types.UID(name), Controller: ptr.To(true)},
		)
	}
}

func machine(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func addMachine(name string, held bool) func(*cluster) {
	return func(c *cluster) {
		m := machine(name)
		if held {
			m.Finalizers = []string{finalizer}
		}
		c.must(c.Create(c.Context(), m))
	}
}

func addMachineWith(name, apiVersion, kind string) func(*cluster) {
	return func(c *cluster) {
		m := machine(name)
		m.Status.ResourceRefs = []v1alpha1.ComposedReference{{Role: "token", APIVersion: "v1", Kind: "Secret", Name: name}, {Role: "vm", APIVersion: apiVersion, Kind: kind, Name: name}}
		c.must(c.Create(c.Context(), m))
	}
}

func reconcileNow(usage string) func(*cluster) {
	return func(c *cluster) {
		c.Helper()
		_, err := c.Reconcile(c.Context(), request(usage))
		c.must(err)
	}
}

// addKind adds a kind of a cloud, installed by a Provider's package, or by hand if there is no
// Provider.
func addKind(plural, provider string) func(*cluster) {
	return func(c *cluster) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".cloud.example.org"}}
		crd.OwnerReferences = c.revision(providerKind, provider)
		c.must(c.Create(c.Context(), crd))
	}
}

func addXRD(configuration string) func(*cluster) {
	return func(c *cluster) {
		xrd := &unstructured.Unstructured{}
		xrd.SetGroupVersionKind(xrdGroupVersionKind)
		xrd.SetName(machineSetXRD)
		xrd.SetOwnerReferences(c.revision(configurationKind, configuration))
		c.must(c.Create(c.Context(), xrd))
	}
}

func addFunction(name string) func(*cluster) {
	return func(c *cluster) {
		f := &unstructured.Unstructured{}
		f.SetGroupVersionKind(packageGroupVersionKind(functionKind))
		f.SetName(name)
		c.must(c.Create(c.Context(), f))
	}
}

// revision returns the owner reference of a package's revision, as the controller of the objects that
// it installs.
func (c *cluster) revision(kind, pkg string) []metav1.OwnerReference {
	if pkg == "" {
		return nil
	}
	r := &unstructured.Unstructured{}
	r.SetGroupVersionKind(revisionGroupVersionKind(kind))
	r.SetName(pkg + "-1")
	r.SetUID(types.UID(pkg + "-1"))
	r.SetLabels(map[string]string{"pkg.crossplane.io/package": pkg})
	c.must(c.Create(c.Context(), r))
	return []metav1.OwnerReference{{APIVersion: r.GetAPIVersion(), Kind: r.GetKind(), Name: r.GetName(), UID: r.GetUID(), Controller: ptr.To(true)}}
}

func deleteMachine(name string) func(*cluster) {
	return func(c *cluster) { c.must(c.Delete(c.Context(), machine(name))) }
}

func release(name string) func(*cluster) {
	return func(c *cluster) {
		m := machine(name)
		c.change(m, func() { m.Finalizers = nil })
	}
}

func addUsage(provider string, held bool) func(*cluster) {
	return func(c *cluster) {
		u := newUsage(ProviderUsage)
		u.Object["spec"] = desiredSpec(providerKind, provider, ProviderReason)
		if held {
			u.SetFinalizers([]string{finalizer})
		}
		c.must(c.Create(c.Context(), u))
	}
}

func deleteUsage(c *cluster) { c.must(c.Delete(c.Context(), newUsage(ProviderUsage))) }

func releaseUsage(c *cluster) {
	u := newUsage(ProviderUsage)
	c.change(u, func() { u.SetFinalizers(nil) })
}

func editUsage(c *cluster) {
	u := newUsage(ProviderUsage)
	c.change(u, func() { c.must(unstructured.SetNestedField(u.Object, true, "spec", "replayDeletion")) })
}

func wait(d time.Duration) func(*cluster) { return func(c *cluster) { c.clock = c.clock.Add(d) } }

// A logger counts lines.
type logger struct {
	logging.Logger
	lines *int
}

func (l logger) Info(string, ...any) { *l.lines++ }
