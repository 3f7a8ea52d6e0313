package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

// local is the local cloud, whose provider the kit installs.
type local struct{ entry }

func init() { register(local{"local"}) }

func (local) Backing() Backing                          { return realCloud }
func (local) Install(context.Context, *kit.Plane) error { return nil }
func (local) Close()                                    {}

func (local) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &localAccount{fleet: f, faults: map[string]string{}}
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"credentials": map[string]any{
		"secretRef": map[string]any{"namespace": metav1.NamespaceDefault, "name": a.secret().Name, "key": keyOfCredentials},
	}}}}
	config.SetGroupVersionKind(schema.GroupVersionKind{Group: "local.drover.dev", Version: "v1alpha1", Kind: a.ProviderConfig().Kind})
	config.SetName(f.Namespace)
	a.SetCredentials(t, CredentialsRight)
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), a.secret()) })
	must(t, f.Client.Create(t.Context(), config))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), config) })
	return a
}

type localAccount struct {
	fleet kit.Fleet
	// faults has the ID of the fault that refuses a Machine, by the name of the Machine.
	faults map[string]string
	// provider is the process that creates the VMs. Default: provider-local.
	provider string
	// died is how often the process was killed.
	died atomic.Int32
}

var (
	_ OrphanAccount  = &localAccount{}
	_ ConsoleAccount = &localAccount{}
	_ RebootAccount  = &localAccount{}
)

// Write does nothing: the VMs of the local cloud write to their consoles themselves.
func (a *localAccount) Write(string, string) {}

func (a *localAccount) ConsoleReads(ctx context.Context, id string) (int, error) {
	vm, err := a.fleet.Cloud.GetVM(ctx, id)
	if err != nil || vm.Console == "" {
		return 0, err
	}
	return 1, nil
}

func (a *localAccount) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: a.fleet.Namespace + "-credentials"}}
}

func (a *localAccount) ProviderConfig() machinev1alpha1.VMProviderConfigReference {
	return machinev1alpha1.VMProviderConfigReference{Kind: "ClusterProviderConfig", Name: a.fleet.Namespace}
}

func (a *localAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	return classOf(t, a.fleet, "examples/local/machineclass.yaml", a.ProviderConfig())
}

func (a *localAccount) VMKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachine"}
}

func (a *localAccount) VMs(ctx context.Context) ([]VM, error) {
	vms, err := a.fleet.VMs(ctx)
	var out []VM
	for _, vm := range vms {
		if vm.State != localcloud.StateTerminating {
			out = append(out, VM{ID: vm.ID, Tags: vm.Tags})
		}
	}
	return out, err
}

func (a *localAccount) Refuse(t *testing.T, machine string, code fn.ErrorCode) {
	t.Helper()
	fault, err := a.fleet.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateFails, Code: string(code), Message: "not now", Count: 1000,
		Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: a.fleet.Namespace, machinev1alpha1.TagMachine: machine}},
	})
	must(t, err)
	a.faults[machine] = fault.ID
}

func (a *localAccount) Accept(t *testing.T, machine string) {
	t.Helper()
	must(t, a.fleet.Cloud.DeleteFault(t.Context(), a.faults[machine]))
}

func (a *localAccount) Lose(t *testing.T, id string) {
	t.Helper()
	vm, err := a.fleet.Cloud.GetVM(t.Context(), id)
	must(t, err)
	_, err = a.fleet.Cloud.CreateFault(t.Context(), localcloud.Fault{Kind: localcloud.FaultVanish, Match: localcloud.FaultMatch{Name: vm.Name}})
	must(t, err)
}

func (a *localAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	right, err := a.fleet.LocalCloud.Credentials()
	must(t, err)
	data := map[string]string{}
	must(t, json.Unmarshal(right, &data))
	if c == CredentialsWrong {
		data["token"] = "not-the-token-of-any-account"
	}
	b, err := json.Marshal(data)
	must(t, err)
	setSecret(t, a.fleet, a.secret(), c, map[string][]byte{keyOfCredentials: b})
}

func (a *localAccount) CreateVM(t *testing.T, name string, tags map[string]string) string {
	t.Helper()
	vm, err := a.fleet.Cloud.CreateVM(t.Context(), localcloud.CreateVMRequest{Name: name, Image: localcloud.ImageUbuntu2404, Size: localcloud.SizeSmall, Tags: tags})
	must(t, err)
	return vm.ID
}

// DieAtCreation kills the provider while it waits for the answer to its request.
func (a *localAccount) DieAtCreation(t *testing.T) {
	t.Helper()
	_, err := a.fleet.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateAnswerLost, Delay: localcloud.Duration(20 * time.Second),
		Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: a.fleet.Namespace}},
	})
	must(t, err)
	go func() {
		_ = wait.PollUntilContextCancel(t.Context(), interval, true, func(ctx context.Context) (bool, error) {
			if vms, err := a.VMs(ctx); err != nil || len(vms) == 0 {
				return false, nil
			}
			pid, err := a.fleet.PID(ctx, cmp.Or(a.provider, "provider-local"))
			if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
				return false, nil
			}
			a.died.Add(1)
			return true, nil
		})
	}()
}

func (a *localAccount) Died() int { return int(a.died.Load()) }

func (a *localAccount) Leaks() int { return local{}.Leaks() }

// Leaks returns 1: the provider never learns the ID of the VM, whose Machine is Failed.
func (local) Leaks() int { return 1 }

// FailAllocation makes the cloud accept the VM and fail it a second later.
func (a *localAccount) FailAllocation(t *testing.T, machine string) {
	t.Helper()
	fault, err := a.fleet.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateFails, Code: localcloud.CodeCapacityExhausted, Message: "no host has room", Count: 1000, Delay: localcloud.Duration(time.Second),
		Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: a.fleet.Namespace, machinev1alpha1.TagMachine: machine}},
	})
	must(t, err)
	a.faults[machine] = fault.ID
}

func (a *localAccount) ShowsFailure() bool { return true }

// throttles is the maximum number of calls that the cloud refuses.
const throttles = 1000

func (a *localAccount) Throttle(t *testing.T, machine string) (calls func() int, end func()) {
	t.Helper()
	fault, err := a.fleet.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateFails, Code: localcloud.CodeThrottled, Message: "not now", Count: throttles,
		Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: a.fleet.Namespace, machinev1alpha1.TagMachine: machine}},
	})
	must(t, err)
	a.faults[machine] = fault.ID
	calls = func() int {
		faults, err := a.fleet.Cloud.ListFaults(t.Context())
		must(t, err)
		for _, f := range faults {
			if f.ID == fault.ID {
				return throttles - f.Count
			}
		}
		return throttles
	}
	return calls, func() { a.Accept(t, machine) }
}

// Reboots returns those in the console of a VM.
func (a *localAccount) Reboots(ctx context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	text, err := a.fleet.Cloud.Console(ctx, id)
	return slices.Repeat([]machinev1alpha1.RebootMode{machinev1alpha1.RebootHard}, strings.Count(text, " rebooted\n")), err
}
