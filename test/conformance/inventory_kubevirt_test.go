package conformance

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/fakes/kubevirttest"
)

// startKubeVirt starts a fake API server, with a user that may list the objects in the namespace of
// the fleet.
func startKubeVirt(t *testing.T, s *simulated, fleet string) fakeAPI {
	t.Helper()
	token := "token-of-" + fleet
	server := httptest.NewTLSServer(kubevirttest.New(kubevirttest.Options{
		State: func(kind string) []unstructured.Unstructured {
			if kind != virtualMachine {
				return nil
			}
			return virtualMachines(s, fleet)
		},
		Users: func() map[string]kubevirttest.User {
			return map[string]kubevirttest.User{token: {Name: "system:serviceaccount:" + fleet + ":inventory", Namespaces: []string{fleet}}}
		},
		RateLimit: 100, Refill: 50 * time.Millisecond,
	}))
	t.Cleanup(server.Close)
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "infra",
		"contexts": []any{map[string]any{"name": "infra", "context": map[string]any{"cluster": "infra", "user": "inventory"}}},
		"clusters": []any{map[string]any{"name": "infra", "cluster": map[string]any{"server": server.URL, "certificate-authority-data": caBundle(server)}}},
		"users":    []any{map[string]any{"name": "inventory", "user": map[string]any{"token": token}}},
	})
	must(t, err)
	manifest := func(metadata map[string]any) map[string]any {
		metadata["namespace"] = fleet
		return map[string]any{"manifest": map[string]any{"apiVersion": "kubevirt.io/v1", "kind": virtualMachine, "metadata": metadata}}
	}
	return fakeAPI{
		secret:      secret,
		place:       manifest(map[string]any{}),
		forProvider: func(name string) map[string]any { return manifest(map[string]any{"name": name}) },
	}
}

const virtualMachine = "VirtualMachine"

var printableStatuses = map[simulator.State]string{
	simulator.Starting: "Starting", simulator.Waiting: "ErrorUnschedulable", simulator.Running: "Running",
}

func virtualMachines(s *simulated, fleet string) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for _, vm := range s.simulator.VMs(fleet) {
		u := unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"printableStatus": printableStatuses[vm.State]}}}
		u.SetNamespace(fleet)
		u.SetName(vm.Name)
		u.SetUID(types.UID("uid-of-" + vm.Name))
		u.SetLabels(vm.Tags)
		u.SetCreationTimestamp(metav1.NewTime(vm.CreatedAt))
		out = append(out, u)
	}
	return out
}
