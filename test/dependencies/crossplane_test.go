package dependencies

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
)

// TestTheIndexOfSchemasThatCrossplaneCachesMayLackAKind shows why the step rollout does not trust the absence of a
// schema (areInstalled in internal/function/installed.go). Crossplane 2.4 reads schemas through this cache, and only an
// event of a CustomResourceDefinition invalidates it. The API server publishes a new kind some time after that event:
// an index that was read in between lacks the kind until the next event.
//
// If this test fails, client-go notices new kinds by itself, and areInstalled can be deleted.
func TestTheIndexOfSchemasThatCrossplaneCachesMayLackAKind(t *testing.T) {
	const kind = "apis/test.drover.dev/v1"
	var mu sync.Mutex
	paths := map[string]any{"apis/apps/v1": map[string]string{"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=1"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"paths": paths})
	}))
	defer server.Close()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	cached := memory.NewMemCacheClient(client)
	has := func() bool {
		t.Helper()
		index, err := cached.OpenAPIV3().Paths()
		if err != nil {
			t.Fatal(err)
		}
		keys := make([]string, 0, len(index))
		for path := range index {
			keys = append(keys, path)
		}
		return slices.Contains(keys, kind)
	}

	cached.Invalidate() // The event of the new CustomResourceDefinition.
	if has() {
		t.Fatal("the index has the kind before it is published")
	}
	mu.Lock()
	paths[kind] = map[string]string{"serverRelativeURL": "/openapi/v3/" + kind + "?hash=2"}
	mu.Unlock()
	for range 3 {
		if has() {
			t.Fatal("the cache has seen the new kind by itself")
		}
	}
	cached.Invalidate() // The event of any other CustomResourceDefinition.
	if !has() {
		t.Error("the index lacks the kind after it was invalidated")
	}
}
