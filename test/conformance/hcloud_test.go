package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/fakes/hcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// hetzner is Hetzner Cloud: the real provider, from its package, against a fake of the
// API.
type hetzner struct {
	host   *guest.Host
	cloud  *hcloud.Cloud
	server *httptest.Server

	mu     sync.Mutex
	guests map[int64]*guest.Guest
}

func (*hetzner) Provider() string          { return "hcloud" }
func (*hetzner) Cannot() map[string]string { return nil }

func (h *hetzner) Install(ctx context.Context, p *kit.Plane) error {
	h.host, h.guests = newHost(p), map[int64]*guest.Guest{}
	h.cloud = hcloud.New(hcloud.Options{Step: 500 * time.Millisecond, Boot: h.boot, Stop: h.stop})
	h.server = httptest.NewServer(h.cloud)
	if err := localplane.Apply(ctx, p.Client, filepath.Join(kit.Root(), "package/provider-drover/rbac-hcloud.yaml")); err != nil {
		return err
	}
	if err := p.InstallPackage(ctx, "provider", "provider-hcloud"); err != nil {
		return err
	}
	for _, kind := range []string{"VirtualMachine", "VirtualMachineInventory", "ClusterProviderConfig"} {
		if err := awaitServed(ctx, p.Client, hcloudKind(kind)); err != nil {
			return err
		}
	}
	return nil
}

func hcloudKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "hcloud.drover.dev", Version: "v1alpha1", Kind: kind}
}

func (h *hetzner) Close() {
	if h.server != nil {
		h.server.Close()
	}
}

// boot a guest in the place of a server.
func (h *hetzner) boot(b hcloud.Booted) {
	id := fmt.Sprint(b.ID)
	g, err := h.host.Boot(context.Background(), guest.Request{
		ID: "hcloud/" + id, Name: b.Name, UserData: []byte(b.UserData), ProviderID: "hcloud://" + id,
		Metadata: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/hetzner/v1/metadata/instance-id" {
				http.NotFound(w, r)
				return
			}
			_, _ = fmt.Fprint(w, id)
		}),
	})
	if err != nil {
		h.host.Failed(fmt.Errorf("server %s: %w", id, err))
		return
	}
	h.cloud.SetPrivateIP(b.ID, g.IP())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.guests[b.ID] = g
}

func (h *hetzner) guest(id int64) *guest.Guest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.guests[id]
}

func (h *hetzner) stop(b hcloud.Booted) {
	if g := h.guest(b.ID); g != nil {
		if err := g.Stop(context.Background()); err != nil {
			h.host.Failed(err)
		}
	}
}

// Account is a project whose token has the name of the fleet.
func (h *hetzner) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &hetznerAccount{hetzner: h, fleet: f, mend: map[string]func(){}}
	h.cloud.SetToken(f.Namespace, f.Namespace, false)
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"endpoint":    h.server.URL + "/v1",
		"credentials": map[string]any{"secretRef": map[string]any{"namespace": metav1.NamespaceDefault, "name": a.secret().Name, "key": keyOfCredentials}},
	}}}
	config.SetGroupVersionKind(hcloudKind(a.ProviderConfig().Kind))
	config.SetName(f.Namespace)
	a.SetCredentials(t, CredentialsRight)
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), a.secret()) })
	must(t, f.Client.Create(t.Context(), config))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), config) })
	return a
}

type hetznerAccount struct {
	*hetzner
	fleet kit.Fleet
	// mend what refuses a Machine, by its name.
	mend map[string]func()
}

var _ OrphanAccount = &hetznerAccount{}

func (a *hetznerAccount) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: a.fleet.Namespace + "-credentials"}}
}

func (a *hetznerAccount) ProviderConfig() machinev1alpha1.VMProviderConfigReference {
	return machinev1alpha1.VMProviderConfigReference{Kind: "ClusterProviderConfig", Name: a.fleet.Namespace}
}

func (a *hetznerAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	return classOf(t, a.fleet, "examples/hcloud/machineclass.yaml", a.ProviderConfig())
}

func (a *hetznerAccount) VMKind() schema.GroupVersionKind { return hcloudKind("VirtualMachine") }

func (a *hetznerAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, s := range a.cloud.Servers(a.fleet.Namespace) {
		if s.Status != "deleting" {
			out = append(out, VM{ID: fmt.Sprint(s.ID), Tags: s.Labels, UserData: []byte(a.cloud.UserData(s.ID))})
		}
	}
	return out, nil
}

// refusals of Hetzner's API, by class.
var refusals = map[fn.ErrorCode]hcloud.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusPreconditionFailed, Code: "resource_unavailable", Message: "error during placement"},
	fn.ErrorQuotaExceeded:     {Status: http.StatusForbidden, Code: "resource_limit_exceeded", Message: "server limit exceeded"},
	fn.ErrorInvalidRequest:    {Status: http.StatusUnprocessableEntity, Code: "invalid_input", Message: "invalid input in field 'image'"},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Code: "forbidden", Message: "insufficient permissions for this request"},
	// A pause that is longer than what the provider waits.
	fn.ErrorThrottled: {Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Message: "limit of 3600 requests per hour reached", RetryAfter: "35"},
}

func (a *hetznerAccount) Refuse(t *testing.T, machine string, code fn.ErrorCode) {
	t.Helper()
	fault := refusals[code]
	label, err := json.Marshal(machine)
	must(t, err)
	of := []byte(fmt.Sprintf(`%q:%s`, machinev1alpha1.TagMachine, label))
	fault.Call = "POST /servers"
	fault.Match = func(project string, body []byte) bool {
		return project == a.fleet.Namespace && bytes.Contains(body, of)
	}
	a.mend[machine] = a.cloud.Break(fault)
}

func (a *hetznerAccount) Accept(_ *testing.T, machine string) { a.mend[machine]() }

// Lose a server: Hetzner's controller manager deletes its Node.
func (a *hetznerAccount) Lose(t *testing.T, id string) {
	t.Helper()
	var n int64
	_, err := fmt.Sscan(id, &n)
	must(t, err)
	a.cloud.Lose(n)
	must(t, a.guest(n).DeleteNode(t.Context()))
}

func (a *hetznerAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	token := a.fleet.Namespace
	if c == CredentialsWrong {
		token = "not-the-token-of-any-project"
	}
	b, err := json.Marshal(map[string]string{"token": token})
	must(t, err)
	setSecret(t, a.fleet, a.secret(), c, map[string][]byte{keyOfCredentials: b})
}

func (a *hetznerAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	return fmt.Sprint(a.cloud.Create(a.fleet.Namespace, name, tags))
}
