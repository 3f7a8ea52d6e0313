package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// A drover package of a local control plane.
type drover struct{ kind, name string }

func (p drover) object() string { return "drover-" + p.name }

func (p drover) resource() string { return p.kind + "s.pkg.crossplane.io" }

var packages = []drover{
	{"configuration", "drover"},
	{"function", "function-drover"},
	{"provider", "provider-drover"},
	{"provider", "provider-local"},
}

const units = 3

// An uninstallation is a separate control plane whose packages are deleted while it has Machines.
type uninstallation struct {
	kit.Fleet
	pool *machinev1alpha1.MachineDeployment
}

func newUninstallation(t *testing.T, p *kit.Plane) *uninstallation {
	t.Helper()
	f := p.NewFleet(t)
	u := &uninstallation{Fleet: f, pool: f.Deployment("pool", units, 1, 0)}
	f.Create(t, u.pool)
	f.AwaitDeployment(t, u.pool.Name)
	must(t, f.MakeWorkload(t.Context(), "workload", units, intstr.FromInt32(1)))
	return u
}

// TestPackagesComeAndGo deletes each package while there are Machines: first with the shipped
// protection, then without it, and finally by the steps of docs/install.md.
func TestPackagesComeAndGo(t *testing.T) {
	kit.OnlyInLong(t, "TestTheInstallationOfTheDocs")
	t.Parallel()
	p, err := kit.Up(t.Context(), kit.Options{})
	t.Cleanup(p.Down)
	must(t, err)
	u := newUninstallation(t, p)
	steps := []struct {
		name string
		run  func(*testing.T)
	}{
		{"EachDeletionIsRefused", u.eachIsRefused},
		{"EachIsReinstalled", u.eachIsReinstalled},
		{"AllAreReinstalledInAnotherOrder", u.allAreReinstalled},
		{"OneThatHangsInTheForegroundIsReinstalled", u.foregroundIsReinstalled},
		{"NothingIsLeftInTheEnd", u.uninstall},
	}
	for _, s := range steps {
		if !t.Run(s.name, s.run) {
			return
		}
	}
}

func (u *uninstallation) eachIsRefused(t *testing.T) {
	w := u.watch(t)
	for _, pkg := range packages {
		for _, cascade := range []string{"background", "foreground", "orphan"} {
			// Use a dry run, so that the package is not deleted if the deletion is not refused.
			u.refused(t, "then delete the package", pkg.resource(), pkg.object(), "--cascade="+cascade)
		}
	}
	for _, d := range []string{"machines.machine", "machineclasses.machine", "operatingsystemprofiles.machine", "clusterproviderconfigs.cluster", "virtualmachines.local", "machinedeployments.machine"} {
		u.refused(t, "set the annotation drover.dev/confirm-deletion=true on it first (kubectl annotate crd "+d+".drover.dev", "crd", d+".drover.dev")
	}
	for _, d := range []string{"machinedeployments", "machinesets", "orphancollectors"} {
		u.refused(t, "all "+d+" of all namespaces would be deleted", "xrd", d+".machine.drover.dev")
	}
	w.done(t)
}

func (u *uninstallation) refused(t *testing.T, because string, args ...string) {
	t.Helper()
	patience.Eventually(t, func(context.Context) string {
		out, err := u.Kubectl(t, append([]string{"delete", "--dry-run=server"}, args...)...)
		if err == nil || !strings.Contains(out, because) {
			return fmt.Sprintf("kubectl delete %v: %v\n%s", args, err, out)
		}
		return ""
	})
}

// eachIsReinstalled has a control plane without Crossplane's webhook for usages, as if an
// administrator had disabled them.
func (u *uninstallation) eachIsReinstalled(t *testing.T) {
	u.kubectl(t, "delete", "validatingwebhookconfiguration", "crossplane-no-usages")
	for _, pkg := range packages {
		u.reinstall(t, []drover{pkg}, []drover{pkg})
	}
}

func (u *uninstallation) allAreReinstalled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	u.reinstall(t, shuffled(r), shuffled(r))
}

// foregroundIsReinstalled deletes a Provider in the foreground: its revision waits for definitions
// that are not deleted. If the garbage collector processes a definition only after the deletion of
// the revision has started, the Provider waits for the definition too. The steps are those of
// docs/install.md.
func (u *uninstallation) foregroundIsReinstalled(t *testing.T) {
	local := packages[3]
	w := u.watch(t)
	before := u.written(t)
	u.kubectl(t, "delete", local.resource(), local.object(), "--cascade=foreground", "--wait=false")
	u.gone(t, local)
	const noFinalizers = `{"metadata":{"finalizers":null}}`
	revisions := u.kubectl(t, "get", "providerrevisions.pkg.crossplane.io", "-l", "pkg.crossplane.io/package="+local.object(), "-o", "name")
	for _, o := range append(strings.Fields(revisions), local.resource()+"/"+local.object()) {
		if out, err := u.Kubectl(t, "patch", o, "--type=merge", "-p", noFinalizers); err != nil && !strings.Contains(out, "NotFound") {
			t.Fatalf("patch %s: %v\n%s", o, err, out)
		}
	}
	u.kubectl(t, "wait", "--for=delete", patience.Flag(), local.resource()+"/"+local.object())
	u.install(t, local)
	w.done(t)
	u.unchanged(t, before)
	u.use(t)
}

// uninstall by the steps of docs/install.md.
func (u *uninstallation) uninstall(t *testing.T) {
	u.DeleteWorkload(t, "workload")
	u.kubectl(t, "delete", "machinedeployments,machinesets,machines", "--all", "-A", patience.Flag())
	u.AwaitNothing(t)
	patience.Eventually(t, func(context.Context) string {
		out, _ := u.Kubectl(t, "get", "clusterusages", "-o", "name")
		if strings.Contains(out, "drover") {
			return out
		}
		return ""
	})
	u.kubectl(t, "delete", "clusterproviderconfigs.cluster.drover.dev,clusterproviderconfigs.local.drover.dev", "--all")
	for _, pkg := range packages {
		u.kubectl(t, "delete", pkg.resource(), pkg.object(), patience.Flag())
	}
	for _, kind := range []string{"xrd", "crd"} {
		for _, name := range strings.Fields(u.kubectl(t, "get", kind, "-o", "name")) {
			if strings.HasSuffix(name, ".drover.dev") {
				u.kubectl(t, "annotate", name, "drover.dev/confirm-deletion=true")
			}
		}
	}
	for _, kind := range []string{"xrd", "crd"} {
		for _, name := range strings.Fields(u.kubectl(t, "get", kind, "-o", "name")) {
			if strings.HasSuffix(name, ".drover.dev") {
				u.kubectl(t, "delete", name, "--ignore-not-found", patience.Flag())
			}
		}
	}
	patience.Eventually(t, func(context.Context) string {
		for _, kind := range []string{"xrd", "crd"} {
			if out := u.kubectl(t, "get", kind, "-o", "name"); strings.Contains(out, "drover.dev") {
				return out
			}
		}
		return ""
	})
}

func (u *uninstallation) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := u.Kubectl(t, args...)
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

func shuffled(r *rand.Rand) []drover {
	out := make([]drover, len(packages))
	for i, j := range r.Perm(len(packages)) {
		out[i] = packages[j]
	}
	return out
}

// reinstall packages while the Machines stay in service, and use them afterwards.
func (u *uninstallation) reinstall(t *testing.T, deleted, installed []drover) {
	t.Helper()
	t.Logf("delete %v, install %v", deleted, installed)
	w := u.watch(t)
	before := u.written(t)
	for _, pkg := range deleted {
		out, err := u.Kubectl(t, "delete", pkg.resource(), pkg.object(), patience.Flag())
		// Crossplane reinstalls a package that another package depends on.
		if err != nil && !strings.Contains(out, "NotFound") {
			t.Errorf("kubectl delete: %v\n%s", err, out)
		}
	}
	for _, pkg := range deleted {
		u.gone(t, pkg)
	}
	u.unchanged(t, before)
	u.install(t, installed...)
	w.done(t)
	u.unchanged(t, before)
	u.use(t)
}

// gone waits until the garbage collector has deleted the process of a package, unless the package
// is reinstalled.
func (u *uninstallation) gone(t *testing.T, pkg drover) {
	t.Helper()
	moment := patience.After(6 * time.Second)
	patience.Eventually(t, func(ctx context.Context) string {
		if _, err := u.PID(ctx, pkg.name); err != nil && pkg.kind != "configuration" {
			return ""
		}
		return moment(ctx)
	})
}

func (u *uninstallation) install(t *testing.T, packages ...drover) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	for _, pkg := range packages {
		if err := u.InstallPackage(ctx, pkg.kind, pkg.name); err != nil {
			t.Fatalf("reinstall: %v", err)
		}
	}
}

func (u *uninstallation) unchanged(t *testing.T, before map[string]types.UID) {
	t.Helper()
	if d := cmp.Diff(before, u.written(t)); d != "" {
		t.Errorf("what users wrote (-before +after):\n%s", d)
	}
}

// use the packages: an idle package may be healthy without working.
func (u *uninstallation) use(t *testing.T) {
	t.Helper()
	for _, replicas := range []int{units + 1, units} {
		u.Patch(t, u.pool, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		u.AwaitDeployment(t, u.pool.Name)
	}
}

// written returns the objects of users, by kind and name, with their UIDs.
func (u *uninstallation) written(t *testing.T) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for apiVersion, kinds := range map[string][]string{
		"machine.drover.dev/v1alpha1": {"MachineClass", "OperatingSystemProfile", "HealthProfile", "MachineDeployment", "MachineSet", "Machine", "OrphanCollector"},
		"cluster.drover.dev/v1alpha1": {"ProviderConfig", "ClusterProviderConfig"},
		"local.drover.dev/v1alpha1":   {"ProviderConfig", "ClusterProviderConfig", "VirtualMachine"},
	} {
		for _, kind := range kinds {
			l := &unstructured.UnstructuredList{}
			l.SetAPIVersion(apiVersion)
			l.SetKind(kind + "List")
			if err := u.Client.List(t.Context(), l); err != nil {
				out[kind+" of "+apiVersion+" cannot be listed: "+err.Error()] = ""
			}
			for _, o := range l.Items {
				uid := o.GetUID()
				if o.GetDeletionTimestamp() != nil {
					uid += " is being deleted"
				}
				out[fmt.Sprintf("%s %s/%s of %s", kind, o.GetNamespace(), o.GetName(), apiVersion)] = uid
			}
		}
	}
	return out
}

// A serviceWatch checks while packages are deleted and installed: the Nodes stay Ready, and the
// VMs run.
type serviceWatch struct {
	*uninstallation
	nodes map[string]types.UID
	vms   int

	mu     sync.Mutex
	broken []string
	looks  int
	stop   func()
	ended  chan struct{}
}

func (u *uninstallation) watch(t *testing.T) *serviceWatch {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string { return u.WorkloadUnready(ctx, "workload", units) })
	ctx, cancel := context.WithCancel(t.Context())
	w := &serviceWatch{uninstallation: u, stop: cancel, ended: make(chan struct{})}
	var err error
	if w.nodes, err = w.inService(ctx); err != nil || len(w.nodes) != units {
		t.Fatalf("Nodes %v, %v", w.nodes, err)
	}
	h, err := u.History(ctx)
	must(t, err)
	w.vms = len(h)
	go func() {
		defer close(w.ended)
		for ctx.Err() == nil {
			w.look(ctx)
			time.Sleep(200 * time.Millisecond)
		}
	}()
	return w
}

func (w *serviceWatch) look(ctx context.Context) {
	nodes, err := w.inService(ctx)
	if err == nil && !maps.Equal(nodes, w.nodes) {
		err = fmt.Errorf("Nodes in service: %v, before %v", nodes, w.nodes)
	}
	h, herr := w.History(ctx)
	if herr == nil && len(h) != w.vms {
		herr = fmt.Errorf("VMs changed: %+v", h[w.vms:])
	}
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if err := errors.Join(err, herr); err != nil && len(w.broken) < 3 {
		w.broken = append(w.broken, err.Error())
	}
}

// inService returns the Nodes of the fleet that accept pods.
func (w *serviceWatch) inService(ctx context.Context) (map[string]types.UID, error) {
	nodes, err := w.Nodes(ctx)
	out := map[string]types.UID{}
	for _, n := range nodes {
		if isReady(n) && !n.Spec.Unschedulable && n.DeletionTimestamp == nil {
			out[n.Name] = n.UID
		}
	}
	return out, err
}

func isReady(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w *serviceWatch) done(t *testing.T) {
	t.Helper()
	w.stop()
	<-w.ended
	for _, s := range w.broken {
		t.Error(s)
	}
	if w.looks < 5 {
		t.Errorf("looked %d times: this shows nothing", w.looks)
	}
	if s := w.WorkloadUnready(t.Context(), "workload", units); s != "" {
		t.Error(s)
	}
}
