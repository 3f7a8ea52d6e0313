package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// A fakeAPI is a fake of a cloud's API that shows the resources of one fleet in the simulator, in
// an account of its own.
type fakeAPI struct {
	// secret is the content of the Secret with the credentials. spec has the other fields of the
	// configuration's spec.
	secret []byte
	spec   map[string]any
	// place is the spec.forProvider of a collector for the VMs of the fleet.
	place map[string]any
	// forProvider returns the spec.forProvider of a VM that no provider created.
	forProvider func(name string) map[string]any
	// leave creates a resource that no VM uses, and returns its ID. It is nil if the fake shows no such resources.
	leave func(name string, tags map[string]string) string
}

// fakeAPIs has, by cloud, a function that starts a fake until the end of the test. A cloud without
// a fake is tested without its inventory.
var fakeAPIs = map[string]func(t *testing.T, s *simulated, fleet string) fakeAPI{
	"upjet-aws":    startEC2,
	"upjet-azure":  startAzure,
	"digitalocean": startDigitalOcean,
	"upjet-gcp":    startGoogleCloud,
	"kubevirt":     startKubeVirt,
	"yandex":       startYandex,
}

// hasAPI reports whether the suite has a fake of the cloud's API.
func (s *simulated) hasAPI() bool { return fakeAPIs[s.Provider()] != nil }

// installInventories installs provider-inventory and the rights that it needs, once for all clouds.
var installInventories = sync.OnceValue(func() error {
	p, err := plane()
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, file := range []string{"package/provider-drover/rbac-inventory.yaml", "package/provider-inventory/runtime.yaml"} {
		if err := localplane.Apply(ctx, p.Client, filepath.Join(kit.Root(), file)); err != nil {
			return err
		}
	}
	return p.InstallPackage(ctx, "provider", "provider-inventory")
})

func (s *simulated) installInventory(ctx context.Context) error {
	if !s.hasAPI() {
		return nil
	}
	if err := installInventories(); err != nil {
		return err
	}
	for _, k := range []string{inventoryv1alpha1.Kind, "ClusterProviderConfig"} {
		if err := awaitServed(ctx, s.plane.Client, liftedKind(s.Provider(), k)); err != nil {
			return err
		}
	}
	return nil
}

// startAPI starts the fake of the cloud's API. The configuration of provider-inventory for it has
// the name of the one of the VMs.
func (a *simulatedAccount) startAPI(t *testing.T) fakeAPI {
	t.Helper()
	api := fakeAPIs[a.Provider()](t, a.simulated, a.fleet.Namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: a.fleet.Namespace + "-inventory"}, Data: map[string][]byte{keyOfCredentials: api.secret}}
	spec := map[string]any{"credentials": map[string]any{
		"source": "Secret", "secretRef": map[string]any{"namespace": secret.Namespace, "name": secret.Name, "key": keyOfCredentials},
	}}
	maps.Copy(spec, api.spec)
	config := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	config.SetGroupVersionKind(liftedKind(a.Provider(), "ClusterProviderConfig"))
	config.SetName(a.fleet.Namespace)
	for _, o := range []client.Object{secret, config} {
		must(t, a.fleet.Client.Create(t.Context(), o))
		t.Cleanup(func() { _ = a.fleet.Client.Delete(context.Background(), o) })
	}
	return api
}

// caBundle returns the certificate of a server in the form that a configuration needs.
func caBundle(s *httptest.Server) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

var (
	_ InventoryAccount = &simulatedAccount{}
	_ LeftAccount      = &simulatedAccount{}
)

func (a *simulatedAccount) ProviderConfig() machinev1alpha1.VMProviderConfigReference {
	return machinev1alpha1.VMProviderConfigReference{Kind: a.Description.ProviderConfig.Kind, Name: a.fleet.Namespace}
}

func (a *simulatedAccount) Place() map[string]any { return a.api().place }

func (a *simulatedAccount) CreateVM(t *testing.T, name string, tags map[string]string) string {
	t.Helper()
	if a.VM().VM.Tags.OfAccount {
		tags = maps.Clone(tags)
		delete(tags, machinev1alpha1.TagMachine)
		delete(tags, machinev1alpha1.TagMachineUID)
	}
	id, err := a.simulator.AddVM(a.fleet.Namespace, name, tags, a.api().forProvider(name))
	must(t, err)
	return id
}

func (a *simulatedAccount) Leave(t *testing.T, name string, tags map[string]string) string {
	t.Helper()
	if a.api().leave == nil {
		return ""
	}
	return a.api().leave(name, tags)
}

func (a *simulatedAccount) PassOver(t *testing.T, id string) {
	t.Helper()
	must(t, a.simulator.PassOver(t.Context(), id))
}

// placed sets the place that a collector lists, if its cloud needs one.
func placed(t *testing.T, o *machinev1alpha1.OrphanCollector, a OrphanAccount) {
	t.Helper()
	if i, ok := a.(InventoryAccount); ok && i.Place() != nil {
		raw, err := json.Marshal(i.Place())
		must(t, err)
		o.Spec.ForProvider = &runtime.RawExtension{Raw: raw}
	}
}

// collect starts an OrphanCollector whose inventory is in the namespace of Crossplane: Machines do
// not use inventories of other namespaces.
func (w *world) collect(t *testing.T, account InventoryAccount) *machinev1alpha1.OrphanCollector {
	t.Helper()
	o := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-inventory"}}
	o.Spec.Namespace, o.Spec.ProviderConfigRef = machinev1alpha1.NamespaceOfInstallations, account.ProviderConfig()
	o.Spec.GracePeriod.Duration, o.Spec.Interval.Duration = 10*time.Minute, time.Second
	placed(t, o, account)
	w.Create(t, o)
	patience.Eventually(t, func(ctx context.Context) string {
		err := w.Client.Get(ctx, key(o), o)
		found := meta.FindStatusCondition(o.Status.Conditions, machinev1alpha1.ConditionOrphansFound)
		if err != nil || found == nil || found.Status == metav1.ConditionUnknown {
			return fmt.Sprintf("the collector has not looked: %+v, %v", o.Status, err)
		}
		return ""
	})
	return o
}

// census compares the counts of a collector's inventory with the VMs that the cloud has.
func census(t *testing.T, w *world, o *machinev1alpha1.OrphanCollector, claimed, unclaimed int32) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(liftedKind(labelOf(w.cloud), inventoryv1alpha1.Kind))
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: o.Spec.Namespace, Name: names.Inventory(o.Name, o.UID)}, u); err != nil {
			return err.Error()
		}
		i := struct {
			Status struct {
				AtProvider inventoryv1alpha1.InventoryObservation `json:"atProvider"`
			} `json:"status"`
		}{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &i); err != nil {
			return err.Error()
		}
		vms, err := w.account.VMs(ctx)
		seen := i.Status.AtProvider
		if err != nil || seen.ClaimedCount != claimed || seen.UnclaimedCount != unclaimed || int(claimed+unclaimed) != len(vms) {
			return fmt.Sprintf("the inventory counts %d claimed and %d unclaimed VMs, want %d and %d; the cloud has %d, %v; it is %v",
				seen.ClaimedCount, seen.UnclaimedCount, claimed, unclaimed, len(vms), err, u.Object["status"])
		}
		return ""
	})
}

// passedOver deletes a VM at a cloud whose provider and whose cloud-controller-manager do not
// notice it.
func passedOver(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(InventoryAccount)
	if !ok {
		t.Fatalf("%s has neither an inventory nor a reason to have none", c.Provider())
	}
	o := w.collect(t, account)
	md := w.deployment("workers", 3)
	w.Create(t, md)
	w.AwaitDeployment(t, md.Name)
	// Each VM is listed once before it can be missing.
	census(t, w, o, 3, 0)
	machines, err := w.Machines(t.Context())
	must(t, err)
	before := machines[0]
	vm := w.vm(t, &before)
	since := time.Now()
	account.PassOver(t, vm.ID)
	w.awaitFailure(t, &before, machinev1alpha1.FailureVMLost)
	t.Logf("failed within %s", time.Since(since).Round(time.Second))
	patience.Eventually(t, func(ctx context.Context) string { return w.gone(ctx, &before) })
	w.AwaitDeployment(t, md.Name)
	after, err := w.Machines(t.Context())
	must(t, err)
	kept := 0
	for _, m := range after {
		for _, was := range machines[1:] {
			if m.UID == was.UID && m.Status.Phase == machinev1alpha1.MachineRunning {
				kept++
			}
		}
	}
	if kept != 2 {
		t.Errorf("%d of the other Machines run, want 2", kept)
	}
	census(t, w, o, 3, 0)
	w.end(t, md, o)
}

// awaitFailure waits until a Machine is Failed for a reason.
func (w *world) awaitFailure(t *testing.T, m *machinev1alpha1.Machine, reason machinev1alpha1.FailureReason) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		now := &machinev1alpha1.Machine{}
		if err := w.Client.Get(ctx, key(m), now); err != nil {
			return err.Error()
		}
		if now.Status.FailureReason == reason {
			return ""
		}
		return fmt.Sprintf("Machine %s is %s %s, %s", m.Name, now.Status.Phase, now.Status.FailureReason, now.Status.Failure())
	})
}
