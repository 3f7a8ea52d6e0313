package pipeline

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// composites is the number of composites whose requirements are remembered. A composite
// beyond it costs one more call per step that requires anything.
const composites = 8192

// A memory has the requirements of the last successful run of each composite.
type memory struct {
	byUID *lru.Cache
}

// remembered are the requirements of a pipeline, by step. It is never changed.
type remembered map[string]stepMemory

type stepMemory struct {
	resources map[string]*fnv1.ResourceSelector
	schemas   map[string]*fnv1.SchemaSelector
}

func newMemory() *memory {
	return &memory{byUID: lru.New(composites)}
}

// of returns the requirements of a composite's steps, nil if none are known.
func (m *memory) of(uid types.UID) remembered {
	if r, ok := m.byUID.Get(uid); ok {
		return r.(remembered) //nolint:forcetypeassert // Nothing else is stored.
	}
	return nil
}

// set the requirements of a composite's steps. A composite without UID is not remembered.
func (m *memory) set(uid types.UID, r remembered) {
	if uid != "" {
		m.byUID.Add(uid, r)
	}
}

// remember the requirements of an answer. As in Crossplane, the next run gets the deprecated
// extra resources as required resources.
func remember(reqs *fnv1.Requirements) stepMemory {
	s := stepMemory{resources: map[string]*fnv1.ResourceSelector{}, schemas: reqs.GetSchemas()}
	for _, selectors := range []map[string]*fnv1.ResourceSelector{extraResources(reqs), reqs.GetResources()} {
		for name, selector := range selectors {
			s.resources[name] = selector
		}
	}
	return s
}

func extraResources(reqs *fnv1.Requirements) map[string]*fnv1.ResourceSelector {
	return reqs.GetExtraResources()
}
