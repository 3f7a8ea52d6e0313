package pipeline

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// A StepCache remembers the steps of CompositionRevisions, by UID and generation.
type StepCache struct {
	steps *lru.Cache
}

type revisionKey struct {
	uid        types.UID
	generation int64
}

// NewStepCache returns a StepCache for so many revisions.
func NewStepCache(size int) *StepCache {
	return &StepCache{steps: lru.New(size)}
}

// StepsOf returns the steps of a CompositionRevision. The caller must not change them.
func (c *StepCache) StepsOf(revision *unstructured.Unstructured) ([]Step, error) {
	key := revisionKey{revision.GetUID(), revision.GetGeneration()}
	if steps, ok := c.steps.Get(key); ok {
		return steps.([]Step), nil //nolint:forcetypeassert // Nothing else is stored.
	}
	steps, err := StepsOf(revision)
	if err == nil && key.uid != "" {
		c.steps.Add(key, steps)
	}
	return steps, err
}
