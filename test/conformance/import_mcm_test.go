package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

// importedFromMCM is the number of Machines that change hands.
const importedFromMCM = 5

const mcmTools tools = "tools/machine-controller-manager"

// programsOfMCM are the two controllers: the first is unmodified, and the second has a driver for driverOfMCM.
var programsOfMCM = map[string]string{
	"machine-controller-manager": "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager",
	"machine-controller":         "./machine-controller",
}

func mcmKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: kind}
}

// An importingFromMCM is a MachineDeployment of machine-controller-manager, whose VMs are servers of the fake of Hetzner Cloud.
type importingFromMCM struct {
	*handingOver
	account  *hetznerAccount
	driver   *driverOfMCM
	programs string
	// stop ends the controllers that run.
	stop func()
}

func machinesOfMCMChangeHands(t *testing.T) {
	kit.OnlyInLong(t, "TestTheWayBackToMCMLeavesEverythingAsItWas in internal/handover")
	t.Parallel()
	h, ok := registered["hcloud"].(*hetzner)
	if !ok {
		t.Fatal("there is no cloud hcloud")
	}
	p, err := installed(h)
	must(t, err)
	x := &importingFromMCM{handingOver: newHandingOver(t, p), programs: t.TempDir(), stop: func() {}}
	if x.account, ok = h.Account(t, x.Fleet).(*hetznerAccount); !ok {
		t.Fatal("the account is of another cloud")
	}
	x.Cleanup(x.removeObjects)
	x.Cleanup(func() { x.stop() })
	x.install()
	x.start(p)
	x.createPool()
	x.joinServers()

	class := x.account.Class(t)
	x.Create(t, class)
	md := x.Deployment("web", 0, 1, 0)
	md.Spec.Template.Spec = x.MachineSpec(kit.NewVersion)
	md.Spec.Template.Spec.ClassRef.Name = class.Name
	x.Create(t, md)
	x.awaitSet()

	// Nothing is taken from controllers that run.
	if code, out := x.tryDrover("import", "mcm", "workers", "--to", "md/web"); code == 0 || !strings.Contains(out, "Lease "+x.Namespace+"/machine-controller: ") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	x.stop()
	x.awaitStopped()
	for _, n := range x.driver.names() {
		x.nodes[n] = x.keysOf(n)
	}
	x.watch()

	if out := x.drover("import", "mcm", "workers", "--to", "md/web", "--dry-run"); !strings.Contains(out, "Nothing was changed") {
		t.Errorf("dry run: %s", out)
	}
	x.drover("import", "mcm", "workers", "--to", "md/web")
	x.AwaitDeployment(t, "web")
	x.unchanged()

	// Controllers that are started for other MachineDeployments leave the Machines alone, and their VMs. They delete a server
	// without a Machine meanwhile.
	x.account.cloud.Create(x.Namespace, orphanOfMCM, map[string]string{"machine": orphanOfMCM})
	x.start(p)
	x.eventually(x.isObserved)
	x.eventually(x.driver.isOrphanDeleted)
	x.driver.awaitLists(x, 3)
	x.unchanged()
	x.stop()
	x.awaitStopped()

	x.drover("import", "mcm", "workers", "--undo")
	x.unchanged()
	for n, was := range x.nodes {
		if is := x.keysOf(n); is != was {
			t.Errorf("Node %s has %s, had %s", n, is, was)
		}
	}
	for _, k := range []schema.GroupVersionKind{machinev1alpha1.MachineGroupVersionKind, x.account.VMKind()} {
		if n := len(x.list(k)); n > 0 {
			t.Errorf("%d %s are left", n, k.Kind)
		}
	}
	x.start(p)
	x.driver.awaitLists(x, 3)
	x.eventually(x.isMCMs)
	x.unchanged()
	x.stop()
	x.awaitStopped()

	// A second import, after which Drover deletes a Machine with its VM and its Node.
	x.drover("import", "mcm", "workers", "--to", "md/web")
	x.AwaitDeployment(t, "web")
	x.unchanged()
	x.deleteOne(md)

	// The end: the objects are of no use any more.
	x.removeObjects()
	x.eventually(func(context.Context) string {
		if n := len(x.list(mcmKind("Machine"))) + len(x.list(mcmKind("MachineSet"))) + len(x.list(mcmKind("MachineDeployment"))); n > 0 {
			return fmt.Sprintf("%d objects of machine-controller-manager are left", n)
		}
		return ""
	})
	x.AwaitDeployment(t, "web")
	if n := len(x.account.cloud.Servers(x.Namespace)); n != importedFromMCM-1 {
		t.Errorf("%d servers", n)
	}
}

// install creates the CRDs, and builds the controllers.
func (x *importingFromMCM) install() {
	x.Helper()
	dir, err := mcmTools.module("github.com/gardener/machine-controller-manager")
	must(x.T, err)
	must(x.T, createCRDs(x.Context(), x.Client, filepath.Join(dir, "kubernetes/crds/*.yaml"), nil))
	for _, k := range []string{"MachineDeployment", "MachineSet", "Machine", "MachineClass"} {
		must(x.T, awaitServed(x.Context(), x.Client, mcmKind(k)))
	}
	for name, pkg := range programsOfMCM {
		build := exec.CommandContext(x.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(x.programs, name), pkg)
		build.Dir, build.Env = mcmTools.dir(), append(os.Environ(), "CGO_ENABLED=0")
		if b, err := build.CombinedOutput(); err != nil {
			x.Fatalf("%s: %v\n%s", build, err, b)
		}
	}
	x.driver = newDriverOfMCM(x)
}

// start the controllers. Their collector of orphans runs each second.
func (x *importingFromMCM) start(p *kit.Plane) {
	x.Helper()
	var running []*exec.Cmd
	for _, name := range slices.Sorted(maps.Keys(programsOfMCM)) {
		port, err := freePort(x.Context())
		must(x.T, err)
		flags := []string{"--namespace=" + x.Namespace, "--target-kubeconfig=" + p.Kubeconfig, "--control-kubeconfig=" + p.Kubeconfig, "--port=" + strconv.Itoa(port), "--v=3"}
		if name == "machine-controller" {
			flags = append(flags, "--machine-safety-orphan-vms-period=1s")
		}
		log, err := os.OpenFile(filepath.Join(p.Dir, "logs", "mcm-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		must(x.T, err)
		cmd := exec.Command(filepath.Join(x.programs, name), flags...)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "CLOUD="+x.driver.server.URL), log, log
		must(x.T, cmd.Start())
		running = append(running, cmd)
	}
	x.stop = sync.OnceFunc(func() {
		for _, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// awaitStopped waits until the Leases of the controllers have expired.
func (x *importingFromMCM) awaitStopped() {
	x.Helper()
	x.eventually(func(ctx context.Context) string {
		for name := range programsOfMCM {
			lease := &coordinationv1.Lease{}
			if err := x.Client.Get(ctx, client.ObjectKey{Namespace: x.Namespace, Name: name}, lease); err != nil {
				return err.Error()
			}
			if clusterapi.IsHeld(lease.Spec, time.Now()) {
				return "Lease " + name + " is held"
			}
		}
		return ""
	})
}

// createPool creates a MachineDeployment with its class. Its Nodes get a label, by which the controllers keep them in sync.
func (x *importingFromMCM) createPool() {
	x.Helper()
	x.Create(x.T, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: "workers"}, Data: map[string][]byte{"userData": []byte("none")}})
	class := object(mcmKind("MachineClass").GroupVersion().String(), "MachineClass", "workers", nil)
	class.Object["provider"], class.Object["providerSpec"] = "hcloud", map[string]any{}
	class.Object["secretRef"] = map[string]any{"namespace": x.Namespace, "name": "workers"}
	delete(class.Object, "spec")
	class.SetNamespace(x.Namespace)
	must(x.T, x.Client.Create(x.Context(), class))
	labels := map[string]any{"name": "workers"}
	md := object(mcmKind("MachineDeployment").GroupVersion().String(), "MachineDeployment", "workers", map[string]any{
		"replicas": int64(importedFromMCM), "selector": map[string]any{"matchLabels": labels}, "minReadySeconds": int64(0),
		"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(1), "maxUnavailable": int64(0)}},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"class": map[string]any{"kind": "MachineClass", "name": "workers"}, "nodeTemplate": map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.org/pool": "workers"}}},
		}},
	})
	md.SetNamespace(x.Namespace)
	must(x.T, x.Client.Create(x.Context(), md))
}

// joinServers creates the Nodes of the servers that the controllers create, and waits until these see all of them.
func (x *importingFromMCM) joinServers() {
	x.Helper()
	x.eventually(func(context.Context) string {
		if n := len(x.driver.names()); n != importedFromMCM {
			return fmt.Sprintf("%d of %d servers", n, importedFromMCM)
		}
		return ""
	})
	names := x.driver.names()
	for _, n := range names {
		x.join(n, "hcloud://"+x.driver.idOf(n))
	}
	x.beat(names)
	x.eventually(x.isMCMs)
}

// isMCMs returns "" if the controllers have all Machines, each Running with its Node.
func (x *importingFromMCM) isMCMs(context.Context) string {
	machines := x.list(mcmKind("Machine"))
	if len(machines) != importedFromMCM {
		return fmt.Sprintf("%d Machines of machine-controller-manager", len(machines))
	}
	for i := range machines {
		o := &machines[i]
		phase, _, _ := unstructured.NestedString(o.Object, "status", "currentStatus", "phase")
		n := &corev1.Node{}
		err := x.Client.Get(x.Context(), client.ObjectKey{Name: o.GetLabels()["node"]}, n)
		switch {
		case metav1.GetControllerOf(o) == nil || phase != "Running" || err != nil:
			return fmt.Sprintf("%s is %q, Node %q, %v", o.GetName(), phase, o.GetLabels()["node"], err)
		case n.Labels["example.org/pool"] != "workers" || n.Labels["node.gardener.cloud/machine-name"] != o.GetName() || len(n.Finalizers) != 1:
			return fmt.Sprintf("Node %s has the labels %v and the finalizers %v", n.Name, n.Labels, n.Finalizers)
		}
	}
	for _, md := range x.list(mcmKind("MachineDeployment")) {
		available, _, _ := unstructured.NestedInt64(md.Object, "status", "availableReplicas")
		updated, _, _ := unstructured.NestedInt64(md.Object, "status", "updatedReplicas")
		observed, _, _ := unstructured.NestedInt64(md.Object, "status", "observedGeneration")
		if available != importedFromMCM || updated != importedFromMCM || observed != md.GetGeneration() {
			return fmt.Sprintf("MachineDeployment of machine-controller-manager: %d available, %d updated", available, updated)
		}
	}
	return ""
}

// isObserved returns "" if the controllers have seen that the MachineDeployment and its sets have no Machines.
func (x *importingFromMCM) isObserved(context.Context) string {
	for _, k := range []string{"MachineDeployment", "MachineSet"} {
		for _, o := range x.list(mcmKind(k)) {
			replicas, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
			observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			if replicas > 0 || observed != o.GetGeneration() {
				return fmt.Sprintf("%s %s reports %d replicas of generation %d", k, o.GetName(), replicas, observed)
			}
		}
	}
	return ""
}

// keysOf returns also the finalizers of a Node.
func (x *importingFromMCM) keysOf(node string) string {
	x.Helper()
	n := &corev1.Node{}
	must(x.T, x.Client.Get(x.Context(), client.ObjectKey{Name: node}, n))
	return fmt.Sprint(x.handingOver.keysOf(node), n.Finalizers)
}

// unchanged fails if a server, a Node or a pod was touched, or if the controllers created or deleted a server or a Machine.
func (x *importingFromMCM) unchanged() {
	x.Helper()
	x.untouched()
	if n := len(x.list(mcmKind("Machine"))); n != importedFromMCM {
		x.Errorf("%d Machines of machine-controller-manager", n)
	}
	created, deleted := x.driver.counts()
	servers := x.account.cloud.Servers(x.Namespace)
	if created != importedFromMCM || deleted > 0 || len(servers) != importedFromMCM {
		x.Errorf("%d servers, after %d creations and %d deletions by machine-controller-manager", len(servers), created, deleted)
	}
	for _, s := range servers {
		if s.Labels["machine"] == "" || len(s.Labels) != 1 || s.Status != "running" {
			x.Errorf("server %d is %s, with the labels %v", s.ID, s.Status, s.Labels)
		}
	}
}

// deleteOne scales Drover's MachineDeployment down by a Machine that was imported.
func (x *importingFromMCM) deleteOne(md *machinev1alpha1.MachineDeployment) {
	x.Helper()
	name := x.driver.names()[0]
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: name}}
	x.Patch(x.T, m, `{"metadata":{"annotations":{"`+machinev1alpha1.AnnotationDeleteMachine+`":"true"}}}`)
	must(x.T, x.Client.Delete(x.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: name}}, client.GracePeriodSeconds(0)))
	x.Patch(x.T, md, fmt.Sprintf(`{"spec":{"replicas":%d}}`, importedFromMCM-1))
	x.AwaitDeployment(x.T, "web")
	x.eventually(func(ctx context.Context) string {
		err := x.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{})
		if servers := len(x.account.cloud.Servers(x.Namespace)); client.IgnoreNotFound(err) != nil || err == nil || servers != importedFromMCM-1 {
			return fmt.Sprintf("Node %s: %v; %d servers", name, err, servers)
		}
		return ""
	})
}

// removeObjects deletes the objects of machine-controller-manager, which its controllers keep by finalizers.
func (x *importingFromMCM) removeObjects() {
	for _, k := range []string{"MachineDeployment", "MachineSet", "Machine", "MachineClass"} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(mcmKind(k + "List"))
		_ = x.Client.List(context.Background(), l, client.InNamespace(x.Namespace))
		for i := range l.Items {
			_ = x.Client.Patch(context.Background(), &l.Items[i], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
			_ = x.Client.Delete(context.Background(), &l.Items[i])
		}
	}
	for _, n := range x.driver.names() {
		_ = x.Client.Patch(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}}, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: "workers"}}
	_ = x.Client.Patch(context.Background(), s, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
}

// A driverOfMCM answers the calls of the driver: its VMs are the servers of an account with the label machine. The providerID of a
// Machine has the place, which that of its Node lacks, as the driver for Hetzner Cloud writes it.
type driverOfMCM struct {
	server  *httptest.Server
	account *hetznerAccount

	mu sync.Mutex
	// ids are the IDs of the servers by the names of their Machines.
	ids                     map[string]string
	created, deleted, lists int
	orphanDeleted           bool
}

const (
	placeOfMCM  = "hcloud:///fsn1/"
	orphanOfMCM = "orphan"
)

func newDriverOfMCM(x *importingFromMCM) *driverOfMCM {
	d := &driverOfMCM{account: x.account, ids: map[string]string{}}
	d.server = httptest.NewServer(http.HandlerFunc(d.serve))
	x.Cleanup(d.server.Close)
	return d
}

// A vmOfMCM is the body of calls and answers.
type vmOfMCM struct {
	Name       string            `json:"name,omitempty"`
	ProviderID string            `json:"providerID,omitempty"`
	Node       string            `json:"node,omitempty"`
	All        map[string]string `json:"all,omitempty"`
}

func (d *driverOfMCM) serve(w http.ResponseWriter, r *http.Request) {
	in := vmOfMCM{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := vmOfMCM{}
	switch r.URL.Path {
	case "/create":
		if d.ids[in.Name] == "" {
			d.created++
			d.ids[in.Name] = fmt.Sprint(d.account.cloud.Create(d.account.fleet.Namespace, in.Name, map[string]string{"machine": in.Name}))
		}
		out = vmOfMCM{ProviderID: placeOfMCM + d.ids[in.Name], Node: in.Name}
	case "/status":
		if d.ids[in.Name] == "" {
			http.NotFound(w, r)
			return
		}
		out = vmOfMCM{ProviderID: placeOfMCM + d.ids[in.Name], Node: in.Name}
	case "/delete":
		if in.Name == orphanOfMCM {
			d.orphanDeleted = true
		} else {
			d.deleted++
		}
		if id, err := strconv.ParseInt(strings.TrimPrefix(in.ProviderID, placeOfMCM), 10, 64); err == nil {
			d.account.cloud.Lose(id)
		}
	case "/list":
		d.lists++
		out.All = map[string]string{}
		for _, s := range d.account.cloud.Servers(d.account.fleet.Namespace) {
			if s.Labels["machine"] != "" {
				out.All[placeOfMCM+fmt.Sprint(s.ID)] = s.Labels["machine"]
			}
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (d *driverOfMCM) names() []string {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.ids))
}

func (d *driverOfMCM) idOf(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[name]
}

func (d *driverOfMCM) counts() (created, deleted int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.created, d.deleted
}

// isOrphanDeleted returns "" if the collector of orphans has deleted the server without a Machine.
func (d *driverOfMCM) isOrphanDeleted(context.Context) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.orphanDeleted {
		return "the server without a Machine is not deleted"
	}
	return ""
}

// awaitLists waits until the collector of orphans has looked at all servers a number of times.
func (d *driverOfMCM) awaitLists(x *importingFromMCM, n int) {
	x.Helper()
	d.mu.Lock()
	n += d.lists
	d.mu.Unlock()
	x.eventually(func(context.Context) string {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lists < n {
			return fmt.Sprintf("the collector of orphans ran %d times, and has to run %d times", d.lists, n)
		}
		return ""
	})
}
