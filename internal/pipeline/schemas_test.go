package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// openAPIServer serves OpenAPI v3 documents by path, and counts the requests.
type openAPIServer struct {
	mu        sync.Mutex
	documents map[string]string
	// noHash lets the index have no hashes.
	noHash bool
	reads  map[string]int
}

func (s *openAPIServer) set(path, document string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[path] = document
}

func (s *openAPIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/openapi/v3" {
		s.reads["index"]++
		paths := map[string]any{}
		for path, document := range s.documents {
			url := "/openapi/v3/" + path
			if !s.noHash {
				url += fmt.Sprintf("?hash=%x", len(document))
			}
			paths[path] = map[string]any{"serverRelativeURL": url}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"paths": paths})
		return
	}
	path := r.URL.Path[len("/openapi/v3/"):]
	s.reads[path]++
	document, ok := s.documents[path]
	if !ok || document == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(document))
}

// startOpenAPI returns the schemas of a server, and a clock.
func startOpenAPI(t *testing.T, s *openAPIServer) (*OpenAPISchemas, func(time.Duration)) {
	t.Helper()
	s.reads = map[string]int{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	schemas := NewOpenAPISchemas(d.OpenAPIV3())
	now := time.Now()
	schemas.now = func() time.Time { return now }
	return schemas, func(d time.Duration) { now = now.Add(d) }
}

func document(kind, specification string) string {
	return `{"openapi":"3.0.0","components":{"schemas":{
		"Meta":{"type":"object","properties":{"name":{"type":"string"}}},
		"DeleteOptions":{"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"DeleteOptions"},{"group":"example.org","version":"v1","kind":"` + kind + `"}]},
		"org.` + kind + `":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.org","version":"v1","kind":"` + kind + `"}],
			"properties":{"metadata":{"allOf":[{"$ref":"#/components/schemas/Meta"}],"default":{}},"spec":` + specification + `}}}}}`
}

const cardSpec = `{"type":"object","required":["size"],
	"x-kubernetes-validations":[{"rule":"self.size > 0","message":"must have a size"}],
	"properties":{"size":{"type":"integer","format":"int64","default":3,"maximum":9007199254740991},
	"tags":{"type":"object","additionalProperties":{"type":"string"}},"port":{"x-kubernetes-int-or-string":true},"mode":{"type":"string","enum":["a","b"],"nullable":true}}}`

var card = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Card"}

func TestOpenAPISchemasReturnsTheSchemaOfAKind(t *testing.T) {
	s, _ := startOpenAPI(t, &openAPIServer{documents: map[string]string{
		"apis/example.org/v1": document("Card", cardSpec),
		"api/v1":              `{"openapi":"3.0.0","components":{"schemas":{"Pod":{"type":"object","x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Pod"}]}}}}`,
		"apis/empty.org/v1":   `{"openapi":"3.0.0"}`,
	}})
	cases := map[string]struct {
		gvk  schema.GroupVersionKind
		want bool
	}{
		"OfACRD":                  {gvk: card, want: true},
		"OfABuiltInKind":          {gvk: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, want: true},
		"NoneOfAnUnknownKind":     {gvk: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Gone"}},
		"NoneOfAnUnknownVersion":  {gvk: schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Card"}},
		"NoneOfAnUnknownGroup":    {gvk: schema.GroupVersionKind{Group: "gone.org", Version: "v1", Kind: "Card"}},
		"NoneOfADocumentThatHas0": {gvk: schema.GroupVersionKind{Group: "empty.org", Version: "v1", Kind: "Card"}},
		"NoneThatKindsShare":      {gvk: schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := s.Schema(t.Context(), tc.gvk)
			if err != nil {
				t.Fatal(err)
			}
			if (got != nil) != tc.want {
				t.Errorf("Schema: got %v", got)
			}
		})
	}
}

func TestOpenAPISchemasKeepsWhatACRDContains(t *testing.T) {
	s, _ := startOpenAPI(t, &openAPIServer{documents: map[string]string{"apis/example.org/v1": document("Card", cardSpec)}})
	got, err := s.Schema(t.Context(), card)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(cardSpec), &want); err != nil {
		t.Fatal(err)
	}
	properties := got.AsMap()["properties"].(map[string]any)
	if diff := cmp.Diff(want, properties["spec"]); diff != "" {
		t.Errorf("spec: -want, +got:\n%s", diff)
	}
	metadata := map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}
	if diff := cmp.Diff(metadata, properties["metadata"]); diff != "" {
		t.Errorf("metadata without reference: -want, +got:\n%s", diff)
	}
}

func TestOpenAPISchemasReadsOnlyWhatChanged(t *testing.T) {
	const path, other = "apis/example.org/v1", "apis/other.org/v1"
	cases := map[string]struct {
		server *openAPIServer
		// wait and change between the two reads of the kind.
		wait   time.Duration
		change func(*openAPIServer)
		want   map[string]int
		// size is the default of the size at the end.
		size float64
	}{
		"NothingWhileTheIndexIsYoung": {
			wait: indexMaxAge - 1, change: func(s *openAPIServer) { s.set(path, document("Card", `{"type":"object","default":{"size":12345}}`)) },
			want: map[string]int{"index": 1, path: 1}, size: 3,
		},
		"TheIndexWhileTheDocumentIsTheSame": {
			wait: indexMaxAge, change: func(s *openAPIServer) { s.set(other, "{}") },
			want: map[string]int{"index": 2, path: 1}, size: 3,
		},
		"TheDocumentWithAnotherHash": {
			wait: indexMaxAge, change: func(s *openAPIServer) { s.set(path, document("Card", `{"type":"object","default":{"size":12345}}`)) },
			want: map[string]int{"index": 2, path: 2}, size: 12345,
		},
		"TheDocumentWithoutHashIfTheIndexIsRead": {
			server: &openAPIServer{noHash: true}, wait: indexMaxAge, change: func(*openAPIServer) {},
			want: map[string]int{"index": 2, path: 2}, size: 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.server == nil {
				tc.server = &openAPIServer{}
			}
			tc.server.documents = map[string]string{path: document("Card", `{"type":"object","default":{"size":3}}`)}
			s, pass := startOpenAPI(t, tc.server)
			read := func() float64 {
				got, err := s.Schema(t.Context(), card)
				if err != nil {
					t.Fatal(err)
				}
				spec := got.GetFields()["properties"].GetStructValue().GetFields()["spec"].GetStructValue()
				return spec.GetFields()["default"].GetStructValue().GetFields()["size"].GetNumberValue()
			}
			read()
			pass(tc.wait)
			tc.change(tc.server)
			if size := read(); size != tc.size {
				t.Errorf("size: want %v, got %v", tc.size, size)
			}
			if diff := cmp.Diff(tc.want, maps.Clone(tc.server.reads)); diff != "" {
				t.Errorf("reads: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestOpenAPISchemasReadsTheIndexAgainIfADocumentIsGone(t *testing.T) {
	server := &openAPIServer{documents: map[string]string{"apis/example.org/v1": ""}}
	s, _ := startOpenAPI(t, server)
	if _, err := s.Schema(t.Context(), card); err == nil {
		t.Fatal("want an error: the index has a document that is gone")
	}
	server.mu.Lock()
	delete(server.documents, "apis/example.org/v1")
	server.mu.Unlock()
	got, err := s.Schema(t.Context(), card)
	if err != nil || got != nil {
		t.Errorf("Schema: want none, got %v, %v", got, err)
	}
}
