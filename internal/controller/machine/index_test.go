package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// cacheOf returns a cache as provider-drover has it, with resources of a number of Machines in one namespace.
func cacheOf(tb testing.TB, machines int) cache.Cache {
	tb.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(vmKind.GroupVersion().WithKind(vmKind.Kind + "List"))
	list.SetResourceVersion("1")
	for i := range machines {
		vm := unstructured.Unstructured{}
		vm.SetGroupVersionKind(vmKind)
		vm.SetNamespace("ns")
		vm.SetName(fmt.Sprintf("vm-%d", i))
		vm.SetResourceVersion("1")
		vm.SetLabels(map[string]string{"app": "web", v1alpha1.LabelSet: "web", v1alpha1.LabelMachine: fmt.Sprintf("m-%d", i)})
		list.Items = append(list.Items, vm)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		q := r.URL.Query()
		switch {
		case q.Get("sendInitialEvents") != "":
			// An API server that does not support streaming lists.
			status := kerrors.NewInvalid(schema.GroupKind{}, "", nil).Status()
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(status)
		case q.Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(vmKind, meta.RESTScopeNamespace)
	c, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{Mapper: mapper})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.Start(ctx) }()
	tb.Cleanup(func() {
		cancel()
		<-ended
		server.CloseClientConnections()
		server.Close()
	})
	if !c.WaitForCacheSync(tb.Context()) {
		tb.Fatal("the cache does not start")
	}
	return c
}

// over returns a Reconciler over a cache, with the watch of the resources started.
func over(tb testing.TB, c cache.Cache) *Reconciler {
	tb.Helper()
	vm := &unstructured.Unstructured{}
	vm.SetGroupVersionKind(vmKind)
	if _, err := c.GetInformer(tb.Context(), vm); err != nil {
		tb.Fatal(err)
	}
	r := &Reconciler{resources: c, watches: newWatches(nil)}
	r.watches.index = func(ctx context.Context, gvk schema.GroupVersionKind) error { return indexByMachine(ctx, c, gvk) }
	return r
}

func machineNamed(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func TestResourcesOfAMachineAreFoundInARunningCache(t *testing.T) {
	r := over(t, cacheOf(t, 3))
	for range 2 {
		got, err := r.labeled(t.Context(), vmKind, machineNamed("m-1"))
		if err != nil || len(got) != 1 || got[0].GetName() != "vm-1" {
			t.Fatalf("of m-1 there is %v, error %v", got, err)
		}
	}
	if got, err := r.labeled(t.Context(), vmKind, machineNamed("m-9")); err != nil || len(got) > 0 {
		t.Errorf("of a Machine without resources there is %v, error %v", got, err)
	}
	elsewhere := machineNamed("m-1")
	elsewhere.Namespace = "elsewhere"
	if got, err := r.labeled(t.Context(), vmKind, elsewhere); err != nil || len(got) > 0 {
		t.Errorf("of a Machine of another namespace there is %v, error %v", got, err)
	}
}

func TestAKindIsIndexedOnce(t *testing.T) {
	w, calls := newWatches(nil), 0
	w.index = func(context.Context, schema.GroupVersionKind) error {
		if calls++; calls == 1 {
			return fmt.Errorf("the cache is not there yet")
		}
		return nil
	}
	for i, want := range []bool{false, true, true} {
		if err := w.ensureIndex(t.Context(), vmKind); (err == nil) != want {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if calls != 2 {
		t.Errorf("the kind was indexed %d times, want once more after the failure", calls)
	}
}

// BenchmarkResourcesOfAMachine looks up the resources of one Machine of 10 000, by the index and by
// the label.
func BenchmarkResourcesOfAMachine(b *testing.B) {
	c := cacheOf(b, 10_000)
	r := over(b, c)
	m := machineNamed("m-5000")
	check := func(b *testing.B, n int, err error) {
		b.Helper()
		if err != nil || n != 1 {
			b.Fatalf("%d resources, error %v", n, err)
		}
	}
	b.Run("ByIndex", func(b *testing.B) {
		for b.Loop() {
			got, err := r.labeled(b.Context(), vmKind, m)
			check(b, len(got), err)
		}
	})
	b.Run("ByLabel", func(b *testing.B) {
		for b.Loop() {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(vmKind.GroupVersion().WithKind(vmKind.Kind + "List"))
			err := c.List(b.Context(), list, client.InNamespace("ns"), client.MatchingLabels{v1alpha1.LabelMachine: m.Name}, client.UnsafeDisableDeepCopy)
			check(b, len(list.Items), err)
		}
	})
}
