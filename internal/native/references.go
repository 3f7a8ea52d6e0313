package native

import (
	"context"
	"maps"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// referenceFor is how long a found object is used.
	referenceFor = time.Minute
	// maxReferences bounds the found objects: beyond it, all are forgotten.
	maxReferences = 1024
)

// References are the objects that specs refer to and that were found at most a minute ago.
type References struct {
	now func() time.Time
	// turn is held while the references of a VM are resolved, so that VMs that are created at the same time share the
	// calls. It guards found.
	turn  *semaphore.Weighted
	found map[any]reference
}

type reference struct {
	object any
	at     time.Time
}

// NewReferences returns References of which none is found.
func NewReferences(now func() time.Time) *References {
	return &References{now: now, turn: semaphore.NewWeighted(1), found: map[any]reference{}}
}

// Hold waits until no other VM resolves its references, or the context ends. The caller must call release when the
// references of its VM are resolved.
func (r *References) Hold(ctx context.Context) (release func(), err error) {
	if err := r.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { r.turn.Release(1) }, nil
}

// Reference returns the object with the key, which must be comparable, or calls find and keeps the result. An error is
// not kept: a user may just have created the object. The caller must hold the references.
func Reference[T any](r *References, key any, find func() (T, error)) (T, error) {
	if f, ok := r.found[key]; ok && r.now().Sub(f.at) < referenceFor {
		if object, ok := f.object.(T); ok {
			return object, nil
		}
	}
	object, err := find()
	if err != nil {
		return object, err
	}
	now := r.now()
	maps.DeleteFunc(r.found, func(_ any, f reference) bool { return now.Sub(f.at) >= referenceFor })
	if len(r.found) >= maxReferences {
		clear(r.found)
	}
	r.found[key] = reference{object: object, at: now}
	return object, nil
}
