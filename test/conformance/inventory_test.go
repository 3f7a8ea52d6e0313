package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
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
	"github.com/drover-dev/drover/internal/cloud/aws/awstest"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
)

// An inventoryAPI is a fake of a cloud's API that lists what the simulator has. A fleet has an
// account of its own.
type inventoryAPI interface {
	http.Handler
	// Admit a fleet, and return the content of its Secret, and the spec of its configuration
	// beside credentials and endpoint.
	Admit(fleet string) (secret []byte, spec map[string]any)
	// Place that the collector of a fleet has in spec.forProvider.
	Place() map[string]any
}

// inventoryAPIs by cloud. A cloud that has none is tested without its inventory.
var inventoryAPIs = map[string]func(*simulated) inventoryAPI{
	"aws": newEC2,
}

// newAPI is nil for a cloud that has none.
func (s *simulated) newAPI() func(*simulated) inventoryAPI { return inventoryAPIs[s.Provider()] }

// installInventories once for all clouds, and the rights that it needs.
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
	if s.newAPI() == nil {
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
	s.api = s.newAPI()(s)
	s.server = httptest.NewServer(s.api)
	return nil
}

// configureInventory has the name of the configuration that VMs have.
func (a *simulatedAccount) configureInventory(t *testing.T) {
	t.Helper()
	if a.api == nil {
		return
	}
	content, spec := a.api.Admit(a.fleet.Namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: a.fleet.Namespace + "-inventory"}, Data: map[string][]byte{keyOfCredentials: content}}
	if spec == nil {
		spec = map[string]any{}
	}
	spec["endpoint"] = a.server.URL
	spec["credentials"] = map[string]any{"source": "Secret", "secretRef": map[string]any{"namespace": secret.Namespace, "name": secret.Name, "key": keyOfCredentials}}
	config := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	config.SetGroupVersionKind(liftedKind(a.Provider(), "ClusterProviderConfig"))
	config.SetName(a.fleet.Namespace)
	for _, o := range []client.Object{secret, config} {
		must(t, a.fleet.Client.Create(t.Context(), o))
		t.Cleanup(func() { _ = a.fleet.Client.Delete(context.Background(), o) })
	}
}

var _ InventoryAccount = &simulatedAccount{}

func (a *simulatedAccount) ProviderConfig() machinev1alpha1.VMProviderConfigReference {
	return machinev1alpha1.VMProviderConfigReference{Kind: a.Description.ProviderConfig.Kind, Name: a.fleet.Namespace}
}

func (a *simulatedAccount) Place() map[string]any { return a.api.Place() }

func (a *simulatedAccount) CreateVM(t *testing.T, name string, tags map[string]string) string {
	t.Helper()
	id, err := a.simulator.AddVM(a.fleet.Namespace, name, tags, a.Place())
	must(t, err)
	return id
}

func (a *simulatedAccount) PassOver(t *testing.T, id string) {
	t.Helper()
	must(t, a.simulator.PassOver(t.Context(), id))
}

// placed sets where a collector looks, at clouds where that is needed.
func placed(t *testing.T, o *machinev1alpha1.OrphanCollector, a OrphanAccount) {
	t.Helper()
	if i, ok := a.(InventoryAccount); ok {
		raw, err := json.Marshal(i.Place())
		must(t, err)
		o.Spec.ForProvider = &runtime.RawExtension{Raw: raw}
	}
}

// census compares the inventory's counts with the VMs that the cloud has.
func census(t *testing.T, w *world, claimed, unclaimed int32) {
	t.Helper()
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(liftedKind(w.cloud.Provider(), inventoryv1alpha1.Kind+"List"))
		if err := w.Client.List(ctx, l, client.InNamespace(w.Namespace)); err != nil || len(l.Items) != 1 {
			return fmt.Sprintf("%d inventories, %v", len(l.Items), err)
		}
		i := struct {
			Status struct {
				AtProvider inventoryv1alpha1.InventoryObservation `json:"atProvider"`
			} `json:"status"`
		}{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(l.Items[0].Object, &i); err != nil {
			return err.Error()
		}
		vms, err := w.account.VMs(ctx)
		o := i.Status.AtProvider
		if err != nil || o.ClaimedCount != claimed || o.UnclaimedCount != unclaimed || int(claimed+unclaimed) != len(vms) {
			return fmt.Sprintf("the inventory counts %d claimed and %d unclaimed VMs, want %d and %d; the cloud has %d, %v", o.ClaimedCount, o.UnclaimedCount, claimed, unclaimed, len(vms), err)
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
	// In the namespace of the operators: Machines believe no other inventory.
	o := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-missing"}}
	o.Spec.ProviderConfigRef = account.ProviderConfig()
	o.Spec.GracePeriod.Duration, o.Spec.Interval.Duration = 10*time.Minute, time.Second
	placed(t, o, account)
	w.Create(t, o)
	md := w.deployment("workers", 3)
	w.Create(t, md)
	w.AwaitDeployment(t, md.Name)
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
		err := w.Client.Get(ctx, key(o), o)
		found := meta.FindStatusCondition(o.Status.Conditions, machinev1alpha1.ConditionOrphansFound)
		if err != nil || found == nil || found.Status == metav1.ConditionUnknown {
			return fmt.Sprintf("the collector has not looked: %+v, %v", o.Status, err)
		}
		return ""
	})
	// Each VM is listed once before it can be missing.
	time.Sleep(calm)
	machines, err := w.Machines(t.Context())
	must(t, err)
	before := machines[0]
	vm := w.vm(t, &before)
	since := time.Now()
	account.PassOver(t, vm.ID)
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
		m := &machinev1alpha1.Machine{}
		if err := w.Client.Get(ctx, key(&before), m); err != nil {
			return err.Error()
		}
		if m.Status.FailureReason == machinev1alpha1.FailureVMLost {
			return ""
		}
		return fmt.Sprintf("Machine %s is %s %s, %s", before.Name, m.Status.Phase, m.Status.FailureReason, m.Status.Failure())
	})
	t.Logf("failed within %s", time.Since(since).Round(time.Second))
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string { return w.gone(ctx, &before) })
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
	w.end(t, md, o)
}

// ec2 is the API of AWS. A fleet has an account, whose number follows from its name.
type ec2 struct {
	*awstest.Server
	cloud *simulated

	mu     sync.Mutex
	fleets map[string]string
}

const awsRegion = "eu-west-1"

func newEC2(s *simulated) inventoryAPI {
	e := &ec2{cloud: s, fleets: map[string]string{}}
	e.Server = awstest.New(e, awstest.Options{Burst: 100, Refill: 50 * time.Millisecond})
	return e
}

func (e *ec2) Admit(fleet string) ([]byte, map[string]any) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(fleet))
	account := fmt.Sprintf("%012d", h.Sum64()%1_000_000_000_000)
	e.mu.Lock()
	e.fleets[account] = fleet
	e.mu.Unlock()
	keyID, secret := "AKIA"+account, "password-of-"+fleet
	e.Server.Admit(keyID, awstest.Account{ID: account, Secret: secret})
	return []byte("[default]\naws_access_key_id = " + keyID + "\naws_secret_access_key = " + secret + "\n"), nil
}

func (e *ec2) Place() map[string]any { return map[string]any{"region": awsRegion} }

// Instances that the simulator has for the fleet of an account.
func (e *ec2) Instances(account, region string) []awstest.Instance {
	e.mu.Lock()
	fleet := e.fleets[account]
	e.mu.Unlock()
	var out []awstest.Instance
	for _, vm := range e.cloud.simulator.VMs(fleet) {
		if vm.ForProvider["region"] != region {
			continue
		}
		i := awstest.Instance{ID: vm.ID, Zone: region + "a", State: "running", Tags: vm.Tags, LaunchTime: launched}
		if vm.Interrupted {
			i.State, i.StateReason = "stopped", "Server.SpotInstanceTermination: Spot instance termination"
		}
		out = append(out, i)
	}
	return out
}

// Beside the instances there is nothing: the simulator's network interfaces belong to VMs.
func (e *ec2) Beside(string, string) awstest.Beside { return awstest.Beside{} }

// launched is when the instances were.
var launched = time.Now()
