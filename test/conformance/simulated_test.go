package conformance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
	"github.com/drover-dev/drover/test/patience"
)

// simulated is a Cloud that the simulator plays from a description.
type simulated struct {
	*simulator.Description
	plane     *kit.Plane
	simulator *simulator.Simulator
}

func (*simulated) Backing() Backing { return played }

func (s *simulated) Provider() string          { return s.Description.Provider }
func (s *simulated) Cannot() map[string]string { return s.Description.Cannot }

func (s *simulated) Install(ctx context.Context, p *kit.Plane) error {
	s.plane = p
	for _, o := range s.Objects() {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		delete(u, "status")
		if err := p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: u}), client.FieldOwner("conformance")); err != nil {
			return err
		}
	}
	files := append(append([]string{}, s.CRDs...), s.Rights...)
	if s.Composition != "" {
		files = append(files, s.Composition)
	}
	for _, file := range files {
		if err := localplane.Apply(ctx, p.Client, filepath.Join(kit.Root(), file)); err != nil {
			return err
		}
	}
	for _, r := range s.Resources {
		if err := awaitServed(ctx, p.Client, r.GroupVersionKind()); err != nil {
			return err
		}
	}
	if err := awaitServed(ctx, p.Client, s.configKind()); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return err
	}
	if s.Runtime == simulator.TerraformCLI && !simulator.HasTerraform() {
		fmt.Fprintf(os.Stderr, "NO TERRAFORM RUNS for %s: there is none in PATH, so that its parser evaluates the fields\n", s.Provider())
	}
	if s.simulator, err = simulator.Start(config, s.Description, newHost(p)); err != nil {
		return err
	}
	return s.installInventory(ctx)
}

// newHost returns a host of guests on a control plane.
func newHost(p *kit.Plane) *guest.Host {
	return &guest.Host{Cloud: p.Cloud, Nodes: p.Client, Failed: func(err error) { fmt.Fprintln(os.Stderr, err) }}
}

func awaitServed(ctx context.Context, c client.Client, kind schema.GroupVersionKind) error {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, patience.Limit(), true, func(ctx context.Context) (bool, error) {
		last = c.List(ctx, l, client.Limit(1))
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not served: %w", kind, last)
	}
	return nil
}

func (s *simulated) Close() {
	if s.simulator != nil {
		s.simulator.Stop()
	}
}

func (s *simulated) configKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(s.ProviderConfig.APIVersion, s.ProviderConfig.Kind)
}

func (s *simulated) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &simulatedAccount{simulated: s, fleet: f}
	// Most cases do not need the API.
	a.api = sync.OnceValue(func() fakeAPI { return a.startAPI(t) })
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"credentials": map[string]any{
		"source":    "Secret",
		"secretRef": map[string]any{"namespace": metav1.NamespaceDefault, "name": a.secret().Name, "key": keyOfCredentials},
	}}}}
	config.SetGroupVersionKind(s.configKind())
	config.SetName(f.Namespace)
	must(t, f.Client.Create(t.Context(), config))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), config) })
	a.SetCredentials(t, CredentialsRight)
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), a.secret()) })
	s.simulator.Admit(f.Namespace, a.password(CredentialsRight))
	return a
}

const keyOfCredentials = "credentials"

type simulatedAccount struct {
	*simulated
	fleet kit.Fleet
	// api starts the API of the cloud for provider-inventory.
	api func() fakeAPI
}

func (a *simulatedAccount) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: a.fleet.Namespace + "-credentials"}}
}

func (a *simulatedAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	class := classOf(t, a.fleet, a.Description.Class, machinev1alpha1.VMProviderConfigReference{Kind: a.Description.ProviderConfig.Kind, Name: a.fleet.Namespace})
	if class.Spec.Companions == nil {
		class.Spec.Companions = map[string]machinev1alpha1.Companion{}
	}
	maps.Copy(class.Spec.Companions, a.Companions)
	return class
}

func (a *simulatedAccount) VMKind() schema.GroupVersionKind { return a.VM().GroupVersionKind() }

func (a *simulatedAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, vm := range a.simulator.VMs(a.fleet.Namespace) {
		v := VM{ID: vm.ID, Tags: vm.Tags, UserData: vm.UserData}
		if a.VM().VM.Tags.OfAccount {
			v.Name = vm.Name
		}
		out = append(out, v)
	}
	return out, nil
}

func (a *simulatedAccount) Beside(context.Context) (things, torn []string) {
	return a.simulator.Beside(a.fleet.Namespace)
}

func (a *simulatedAccount) key(machine string) types.NamespacedName {
	return types.NamespacedName{Namespace: a.fleet.Namespace, Name: machine}
}

func (a *simulatedAccount) Refuse(t *testing.T, machine string, code fn.ErrorCode) {
	t.Helper()
	must(t, a.simulator.Refuse(a.key(machine), code))
}

func (a *simulatedAccount) Accept(t *testing.T, machine string) {
	t.Helper()
	must(t, a.simulator.Accept(t.Context(), a.key(machine)))
}

func (a *simulatedAccount) Lose(t *testing.T, id string) {
	t.Helper()
	must(t, a.simulator.Lose(t.Context(), id))
}

func (a *simulatedAccount) CanInterrupt() bool { return a.VM().Interrupted != nil }

func (a *simulatedAccount) Interrupt(t *testing.T, id string) {
	t.Helper()
	must(t, a.simulator.Interrupt(t.Context(), id))
}

func (a *simulatedAccount) RunWithPolicies(t *testing.T, enabled bool) {
	t.Helper()
	must(t, a.simulator.RunWithPolicies(t.Context(), a.fleet.Namespace, enabled))
}

func (a *simulatedAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	setSecret(t, a.fleet, a.secret(), c, map[string][]byte{keyOfCredentials: []byte(a.password(c))})
}

// password returns a text that appears nowhere else by chance.
func (a *simulatedAccount) password(c Credentials) string {
	return string(c) + "-password-of-" + a.fleet.Namespace
}

// setSecret writes the Secret. If credentials are missing, it deletes the Secret.
func setSecret(t *testing.T, f kit.Fleet, s *corev1.Secret, c Credentials, data map[string][]byte) {
	t.Helper()
	if c == CredentialsMissing {
		must(t, client.IgnoreNotFound(f.Client.Delete(t.Context(), s)))
		return
	}
	s.Data = data
	err := f.Client.Update(t.Context(), s)
	if client.IgnoreNotFound(err) == nil && err != nil {
		s.ResourceVersion = ""
		err = f.Client.Create(t.Context(), s)
	}
	must(t, err)
}

func (a *simulatedAccount) SlowDown(_ *testing.T, start time.Duration) {
	a.simulator.SlowDown(a.fleet.Namespace, start)
}

func (a *simulatedAccount) FailAllocation(t *testing.T, machine string) {
	t.Helper()
	must(t, a.simulator.FailAllocation(a.key(machine)))
}

func (a *simulatedAccount) ShowsFailure() bool { return !a.FailedAllocation.Stays }

func (a *simulatedAccount) Throttle(t *testing.T, machine string) (calls func() int, end func()) {
	t.Helper()
	a.Refuse(t, machine, fn.ErrorThrottled)
	return func() int { return a.simulator.AskedFor(a.key(machine)) }, func() { a.Accept(t, machine) }
}

func (a *simulatedAccount) DieAtCreation(*testing.T) { a.simulator.DieAtCreation(a.fleet.Namespace) }

func (a *simulatedAccount) Died() int { return a.simulator.Died(a.fleet.Namespace) }

// Leaks returns 1 if the cloud names VMs, and the provider forgets the name when its process dies.
func (s *simulated) Leaks() int {
	if vm := s.VM(); vm.Async && vm.ExternalName != "" {
		return 1
	}
	return 0
}
