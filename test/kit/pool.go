package kit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/test/patience"
)

// Offer creates a Composition of NodePools with the name of the fleet's namespace. The input is
// the input of its step, without kind and cluster.
func (f Fleet) Offer(t testing.TB, input map[string]any) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
		"metadata": map[string]any{"name": f.Namespace},
		"spec": map[string]any{
			"compositeTypeRef": map[string]any{"apiVersion": machinev1alpha1.SchemeGroupVersion.String(), "kind": machinev1alpha1.NodePoolGroupVersionKind.Kind},
			"mode":             "Pipeline",
			"pipeline": []any{map[string]any{
				"step": "pool", "functionRef": map[string]any{"name": "drover-function-drover"}, "input": f.offerOf(input),
			}},
		},
	}}
	if err := f.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), o) })
}

func (f Fleet) offerOf(input map[string]any) map[string]any {
	out := map[string]any{
		"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Pool",
		"clusterRef": map[string]any{"kind": f.MachineSpec("").ClusterRef.Kind, "name": f.MachineSpec("").ClusterRef.Name},
	}
	for k, v := range input {
		out[k] = v
	}
	return out
}

// Pool creates a NodePool with the Composition that the fleet offers.
func (f Fleet) Pool(t testing.TB, name string, spec map[string]any) *machinev1alpha1.NodePool {
	t.Helper()
	all := map[string]any{"crossplane": map[string]any{"compositionRef": map[string]any{"name": f.Namespace}}}
	for k, v := range spec {
		all[k] = v
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": all}}
	o.SetGroupVersionKind(machinev1alpha1.NodePoolGroupVersionKind)
	o.SetNamespace(f.Namespace)
	o.SetName(name)
	if err := f.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return &machinev1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
}

// AwaitPool waits until a NodePool is Ready for its current generation and not Reconciling, and
// until returns "".
func (f Fleet) AwaitPool(t testing.TB, p *machinev1alpha1.NodePool, until func(context.Context) string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}
		if p.Status.ObservedGeneration != p.Generation || !plan.IsReadyFor(p.Generation, p.Status.Conditions) ||
			!meta.IsStatusConditionFalse(p.Status.Conditions, machinev1alpha1.ConditionReconciling) {
			return fmt.Sprintf("NodePool %s is not ready: %+v", p.Name, p.Status)
		}
		return until(ctx)
	}, f.Describe)
}

// Zones returns the number of the fleet's VMs per zone.
func (f Fleet) Zones(ctx context.Context) (map[string]int, error) {
	vms, err := f.VMs(ctx)
	out := map[string]int{}
	for _, vm := range vms {
		out[vm.Zone]++
	}
	return out, err
}

// Example reads a file of the examples. Steps of NodePools in it then offer the fleet's cluster.
func (f Fleet) Example(t testing.TB, file string) *unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Root(), "examples", file))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(b, &o.Object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	steps, _, _ := unstructured.NestedSlice(o.Object, "spec", "pipeline")
	for _, s := range steps {
		if input, ok := s.(map[string]any)["input"].(map[string]any); ok {
			input["clusterRef"] = f.offerOf(nil)["clusterRef"]
		}
	}
	if len(steps) > 0 {
		if err := unstructured.SetNestedSlice(o.Object, steps, "spec", "pipeline"); err != nil {
			t.Fatal(err)
		}
	}
	return o
}
