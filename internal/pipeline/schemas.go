package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/lru"
)

const (
	// indexMaxAge is how old the index of OpenAPI documents may be. A changed CRD is seen
	// after at most this time.
	indexMaxAge = 10 * time.Second
	// keptSchemas is the number of kinds whose schema is kept.
	keptSchemas = 256

	refPrefix = "#/components/schemas/"
)

// OpenAPISchemas reads schemas from the API server's OpenAPI v3 documents, as Crossplane
// does. CustomResourceDefinitions would be enough for Drover's own steps. But the documents
// also contain built-in and aggregated kinds, need no right beyond system:discovery (which
// all ServiceAccounts have), and no informer that holds all CRDs of the cluster.
//
// The index of the documents has a hash of each of them. It is read again if a run needs a
// schema and the index is older than 10 s: nothing is read while nothing runs. A document is
// read again only if its hash has changed. Crossplane instead drops all documents whenever a
// CRD changes, which can cache a document that the API server has not updated yet.
type OpenAPISchemas struct {
	client openapi.Client
	now    func() time.Time

	// mu guards index and readAt. It is held during reads: concurrent runs share one.
	mu     sync.Mutex
	index  map[string]openapi.GroupVersion
	readAt time.Time
	// schemas by schemaKey, nil if the document lacks the kind.
	schemas *lru.Cache
}

// schemaKey identifies a schema: document has the hash of the document that it is from.
type schemaKey struct {
	document, kind string
}

// NewOpenAPISchemas returns OpenAPISchemas that use a client, of
// discovery.DiscoveryInterface.OpenAPIV3 for example. The client must not cache.
func NewOpenAPISchemas(c openapi.Client) *OpenAPISchemas {
	return &OpenAPISchemas{client: c, now: time.Now, schemas: lru.New(keptSchemas)}
}

// Schema returns the schema of a kind, with all references resolved. It returns nil if the API server has no
// such kind.
func (s *OpenAPISchemas) Schema(_ context.Context, gvk schema.GroupVersionKind) (*structpb.Struct, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readIndex(); err != nil {
		return nil, fmt.Errorf("cannot read the index of OpenAPI documents: %w", err)
	}
	document, ok := s.index[documentPath(gvk.GroupVersion())]
	if !ok {
		return nil, nil
	}
	key := s.keyOf(document, gvk.Kind)
	if known, ok := s.schemas.Get(key); ok {
		return known.(*structpb.Struct), nil //nolint:forcetypeassert // Nothing else is stored.
	}
	found, err := read(document, gvk)
	if err != nil {
		if apierrors.IsNotFound(err) {
			s.index = nil // The document is gone since the index was read.
		}
		return nil, fmt.Errorf("cannot read the OpenAPI schema of %s: %w", gvk, err)
	}
	s.schemas.Add(key, found)
	return found, nil
}

func (s *OpenAPISchemas) readIndex() error {
	if now := s.now(); s.index == nil || now.Sub(s.readAt) >= indexMaxAge {
		index, err := s.client.Paths()
		if err != nil {
			return err
		}
		s.index, s.readAt = index, now
	}
	return nil
}

// keyOf a schema. A document without hash, of an aggregated API server for example, is as
// old as the index.
func (s *OpenAPISchemas) keyOf(document openapi.GroupVersion, kind string) schemaKey {
	url := document.ServerRelativeURL()
	if !strings.Contains(url, "hash=") {
		url += " " + s.readAt.String()
	}
	return schemaKey{document: url, kind: kind}
}

func documentPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// read a kind's schema from a document, nil if the document lacks it.
func read(document openapi.GroupVersion, gvk schema.GroupVersionKind) (*structpb.Struct, error) {
	b, err := document.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	doc := &spec3.OpenAPI{}
	if err := json.Unmarshal(b, doc); err != nil {
		return nil, err
	}
	if doc.Components == nil {
		return nil, nil
	}
	for name, s := range doc.Components.Schemas {
		if isOf(s, gvk) {
			return flatten(doc, refPrefix+name)
		}
	}
	return nil, nil
}

// isOf reports whether a schema belongs to a kind, and to no other kind: DeleteOptions
// belong to many kinds.
func isOf(s *spec.Schema, gvk schema.GroupVersionKind) bool {
	gvks, ok := s.Extensions["x-kubernetes-group-version-kind"].([]any)
	if !ok || len(gvks) != 1 {
		return false
	}
	m, _ := gvks[0].(map[string]any)
	return m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind
}

func flatten(doc *spec3.OpenAPI, root string) (*structpb.Struct, error) {
	flat, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
		s, ok := doc.Components.Schemas[strings.TrimPrefix(ref, refPrefix)]
		return s, ok
	}, root)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(flat)
	if err != nil {
		return nil, err
	}
	s := &structpb.Struct{}
	return s, s.UnmarshalJSON(b)
}
