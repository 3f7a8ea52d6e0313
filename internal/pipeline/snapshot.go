package pipeline

import (
	"context"
	"errors"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resources reads the resources that steps require.
type Resources interface {
	// Fetch returns the resources that a selector matches, or nil if a resource that is
	// selected by name does not exist. Steps share the answer and must not change it.
	Fetch(ctx context.Context, selector *fnv1.ResourceSelector) (*fnv1.Resources, error)
}

// Schemas reads the schemas that steps require.
type Schemas interface {
	// Schema returns the OpenAPI v3 schema of a kind, or nil if the API server has no such
	// kind. Steps share the answer and must not change it.
	Schema(ctx context.Context, gvk schema.GroupVersionKind) (*structpb.Struct, error)
}

// A snapshot keeps the reads of one run: a selector of two calls or two steps is read and
// converted once. Errors are not kept.
type snapshot struct {
	from      Resources
	schemasOf Schemas
	resources map[string]*fnv1.Resources
	schemas   map[string]*fnv1.Schema
}

func newSnapshot(from Resources, schemasOf Schemas) *snapshot {
	return &snapshot{
		from: from, schemasOf: schemasOf,
		resources: map[string]*fnv1.Resources{}, schemas: map[string]*fnv1.Schema{},
	}
}

// fetch returns an empty message if no resource is found: on the wire, the nil that
// Crossplane sends is an empty message too.
func (s *snapshot) fetch(ctx context.Context, selector *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	if selector == nil {
		return nil, errors.New("the selector is empty")
	}
	if s.from == nil {
		return nil, errors.New("this runner reads no resources")
	}
	key, err := keyOf(selector)
	if err != nil {
		return nil, err
	}
	if found, ok := s.resources[key]; ok {
		return found, nil
	}
	found, err := s.from.Fetch(ctx, selector)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = &fnv1.Resources{}
	}
	s.resources[key] = found
	return found, nil
}

// schema returns an empty message if the API server has no such kind.
func (s *snapshot) schema(ctx context.Context, selector *fnv1.SchemaSelector) (*fnv1.Schema, error) {
	if selector == nil {
		return nil, errors.New("the selector is empty")
	}
	if s.schemasOf == nil {
		return nil, errors.New("this runner reads no schemas")
	}
	key, err := keyOf(selector)
	if err != nil {
		return nil, err
	}
	if found, ok := s.schemas[key]; ok {
		return found, nil
	}
	gv, err := schema.ParseGroupVersion(selector.GetApiVersion())
	if err != nil {
		return nil, fmt.Errorf("cannot parse apiVersion %q: %w", selector.GetApiVersion(), err)
	}
	openAPI, err := s.schemasOf.Schema(ctx, gv.WithKind(selector.GetKind()))
	if err != nil {
		return nil, err
	}
	found := &fnv1.Schema{OpenapiV3: openAPI}
	s.schemas[key] = found
	return found, nil
}

func keyOf(selector proto.Message) (string, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(selector)
	return string(b), err
}
