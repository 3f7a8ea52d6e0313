package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// This file has the code that is common to the clouds with a real provider, from its package, that
// calls a fake.

// installLifted installs Drover's own provider of a cloud, as a user does.
func installLifted(ctx context.Context, p *kit.Plane, name string) error {
	return installProvider(ctx, p, name, "VirtualMachine", "VirtualMachineInventory", "ClusterProviderConfig")
}

// installProvider installs a provider of Drover that has these kinds.
func installProvider(ctx context.Context, p *kit.Plane, name string, kinds ...string) error {
	if err := localplane.Apply(ctx, p.Client, filepath.Join(kit.Root(), "package/provider-drover/rbac-"+name+".yaml")); err != nil {
		return err
	}
	if err := p.InstallPackage(ctx, "provider", "provider-"+name); err != nil {
		return err
	}
	for _, k := range kinds {
		if err := awaitServed(ctx, p.Client, liftedKind(name, k)); err != nil {
			return err
		}
	}
	return nil
}

// liftedKind returns a kind of the provider with the name.
func liftedKind(name, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: name + ".drover.dev", Version: "v1alpha1", Kind: kind}
}

// guests run in place of the servers of a fake.
type guests struct {
	host *guest.Host

	mu   sync.Mutex
	byID map[string]*guest.Guest
}

// start boots a guest, and returns its address. If that fails, the address is empty.
func (g *guests) start(r guest.Request) string {
	booted, err := g.host.Boot(context.Background(), r)
	if err != nil {
		g.host.Failed(fmt.Errorf("server %s: %w", r.ID, err))
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byID == nil {
		g.byID = map[string]*guest.Guest{}
	}
	g.byID[r.ID] = booted
	return booted.IP()
}

func (g *guests) guest(id string) *guest.Guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byID[id]
}

func (g *guests) end(id string) {
	if booted := g.guest(id); booted != nil {
		if err := booted.Stop(context.Background()); err != nil {
			g.host.Failed(err)
		}
	}
}

// restart reboots a guest, which keeps its disk.
func (g *guests) restart(id string) {
	if booted := g.guest(id); booted != nil {
		if err := booted.Reboot(context.Background()); err != nil {
			g.host.Failed(err)
		}
	}
}

// deleteNode deletes the Node of a server, as the cloud-controller-manager does when the server is
// gone.
func (g *guests) deleteNode(t *testing.T, id string) {
	t.Helper()
	must(t, g.guest(id).DeleteNode(t.Context()))
}

// answer returns a metadata service that serves one path.
func answer(path, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, text)
	})
}

// A liftedAccount is a project at a fake. Its ClusterProviderConfig has the name of the fleet.
type liftedAccount struct {
	fleet kit.Fleet
	// provider is the name of the provider.
	provider string
	// Functions that end the refusal of a Machine's VM, by the name of the Machine.
	mend map[string]func()
	// died is how often the provider was killed.
	died atomic.Int32
}

func newLiftedAccount(t *testing.T, f kit.Fleet, provider string, spec map[string]any) *liftedAccount {
	t.Helper()
	a := &liftedAccount{fleet: f, provider: provider, mend: map[string]func(){}}
	spec["credentials"] = map[string]any{"secretRef": map[string]any{"namespace": metav1.NamespaceDefault, "name": a.secret().Name, "key": keyOfCredentials}}
	config := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	config.SetGroupVersionKind(liftedKind(provider, a.ProviderConfig().Kind))
	config.SetName(f.Namespace)
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), a.secret()) })
	must(t, f.Client.Create(t.Context(), config))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), config) })
	return a
}

func (a *liftedAccount) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: a.fleet.Namespace + "-credentials"}}
}

func (a *liftedAccount) setSecret(t *testing.T, c Credentials, credentials map[string]string) {
	t.Helper()
	b, err := json.Marshal(credentials)
	must(t, err)
	setSecret(t, a.fleet, a.secret(), c, map[string][]byte{keyOfCredentials: b})
}

func (a *liftedAccount) ProviderConfig() machinev1alpha1.VMProviderConfigReference {
	return machinev1alpha1.VMProviderConfigReference{Kind: "ClusterProviderConfig", Name: a.fleet.Namespace}
}

func (a *liftedAccount) VMKind() schema.GroupVersionKind {
	return liftedKind(a.provider, "VirtualMachine")
}

// asksFor returns a function that matches the requests for the server of a Machine, by its tag.
func (a *liftedAccount) asksFor(machine string) func(project string, body []byte) bool {
	tag := fmt.Appendf(nil, "%q:%q", machinev1alpha1.TagMachine, machine)
	return func(project string, body []byte) bool {
		return project == a.fleet.Namespace && bytes.Contains(body, tag)
	}
}

func (a *liftedAccount) Accept(_ *testing.T, machine string) { a.mend[machine]() }

// kill kills the provider, which then restarts. The fake calls it before it answers a request of
// the provider.
func (a *liftedAccount) kill() {
	pid, err := a.fleet.PID(context.Background(), "provider-"+a.provider)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	a.died.Add(1)
}

func (a *liftedAccount) Died() int { return int(a.died.Load()) }

// throttled returns a fault of all calls of the account, which also counts them.
func (a *liftedAccount) throttled(f fakes.Fault, calls *atomic.Int64) fakes.Fault {
	f.Call, f.Match = "", func(project string, _ []byte) bool {
		if project != a.fleet.Namespace {
			return false
		}
		calls.Add(1)
		return true
	}
	return f
}
