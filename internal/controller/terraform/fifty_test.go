package terraform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/terraform/plugin/plugintest"
	"github.com/drover-dev/drover/test/examples"
	"github.com/drover-dev/drover/test/fakes/hcloud"
)

const (
	// fifty VMs at once.
	fifty = 50
	// most is the time limit on a busy computer. One after the other, the VMs would take minutes:
	// each creation waits for its server.
	most = 90 * time.Second
)

// token has the length of a token of Hetzner Cloud, which the provider checks.
var token = strings.Repeat("0123abcd", 8)

// TestFiftyVMsAtOnce creates and deletes VMs with the real provider of Hetzner Cloud, against a fake
// of its API, and prints the cost.
func TestFiftyVMsAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the provider of Hetzner Cloud")
	}
	w := newWorld(t)
	var calls atomic.Int64
	cloud := hcloud.New(hcloud.Options{Step: 500 * time.Millisecond})
	cloud.SetToken(token, "project", false)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		cloud.ServeHTTP(rw, r)
	}))
	defer server.Close()
	useHetzner(w, server.URL+"/v1")

	vms := make([]*v1alpha1.VirtualMachine, fifty)
	for i := range vms {
		vms[i] = w.vm(fmt.Sprintf("vm-%d", i), func(vm *v1alpha1.VirtualMachine) {
			vm.Spec.ForProvider.FailureDomain = "nbg1"
			vm.Spec.ForProvider.Arguments = &extv1.JSON{Raw: []byte(`{"server_type": "cpx31", "image": "ubuntu-24.04"}`)}
		})
	}
	var peak atomic.Int64
	watched := make(chan struct{})
	go watchMemory(&peak, watched)
	defer close(watched)

	took := w.all(vms, func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.Running })
	t.Logf("created %d VMs in %s with %d calls to the cloud; processes: %d, peak memory of the provider: %d MiB",
		fifty, took.Round(100*time.Millisecond), calls.Swap(0), w.pool.Processes(), peak.Load()>>20)
	if n := len(cloud.Servers("project")); n != fifty || w.pool.Processes() != 1 {
		t.Errorf("%d servers by %d processes", n, w.pool.Processes())
	}

	began := time.Now()
	for _, vm := range vms {
		w.reconcile(vm, 1)
	}
	t.Logf("looked at %d VMs, one after the other, in %s with %d calls to the cloud", fifty, time.Since(began).Round(time.Millisecond), calls.Swap(0))

	for _, vm := range vms {
		w.delete(vm)
	}
	took = w.all(vms, func(vm *v1alpha1.VirtualMachine) bool { return vm.UID == "" })
	t.Logf("deleted %d VMs in %s with %d calls to the cloud", fifty, took.Round(100*time.Millisecond), calls.Load())
	if n := len(w.states()); n != 0 {
		t.Errorf("%d states are left", n)
	}
}

// useHetzner uses the configuration of the example, at another endpoint.
func useHetzner(w *world, endpoint string) {
	w.Helper()
	program := filepath.Join(w.TempDir(), "provider")
	cmd := exec.CommandContext(w.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "github.com/hetznercloud/terraform-provider-hcloud")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%s: %v\n%s", cmd, err, b)
	}
	b, err := examples.Read("../../../examples/terraform/providerconfig.yaml")
	if err != nil {
		w.Fatal(err)
	}
	example := &v1alpha1.ClusterProviderConfig{}
	if err := yaml.UnmarshalStrict(b, example); err != nil {
		w.Fatal(err)
	}
	sum := plugintest.Put(w, w.mirror, "hetznercloud/hcloud", "1.68.0", program)
	w.change(func(s *v1alpha1.ProviderConfigSpec) {
		credentials := s.Credentials
		*s = example.Spec
		s.Credentials, s.AllowedNamespaces, s.Provider.SHA256 = credentials, nil, []string{sum}
		raw, err := json.Marshal(map[string]string{"endpoint": endpoint, "poll_interval": "500ms"})
		if err != nil {
			w.Fatal(err)
		}
		s.Configuration = &extv1.JSON{Raw: raw}
	})
	s := &corev1.Secret{}
	s.Namespace, s.Name, s.Data = stateNamespace, "fake", map[string][]byte{"credentials": fmt.Appendf(nil, `{"token": %q}`, token)}
	if err := w.kube.Update(w.Context(), s); err != nil {
		w.Fatal(err)
	}
}

// all reconciles the VMs at once, each until it is done.
func (w *world) all(vms []*v1alpha1.VirtualMachine, done func(*v1alpha1.VirtualMachine) bool) time.Duration {
	w.Helper()
	began := time.Now()
	var wait sync.WaitGroup
	for _, vm := range vms {
		wait.Go(func() {
			for time.Since(began) < most {
				_, _ = w.reconciler.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(vm)})
				if err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(vm), vm); err != nil {
					vm.UID = ""
				}
				if done(vm) {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			w.Errorf("%s is not done after %s: %+v, Synced: %s", vm.Name, most, vm.Status.AtProvider, synced(vm))
		})
	}
	wait.Wait()
	return time.Since(began)
}

// watchMemory records the peak memory of all children of this process together.
func watchMemory(peak *atomic.Int64, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(50 * time.Millisecond):
		}
		sum := int64(0)
		files, _ := filepath.Glob("/proc/[0-9]*/status")
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil || !strings.Contains(string(b), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
				continue
			}
			var kib int64
			if _, rss, ok := strings.Cut(string(b), "\nVmRSS:"); ok {
				_, _ = fmt.Sscan(rss, &kib)
			}
			sum += kib << 10
		}
		peak.Store(max(peak.Load(), sum))
	}
}
