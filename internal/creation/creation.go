// Package creation keeps the record of whether a managed resource was created true, so that a
// creation whose result is unknown is not repeated: docs/decisions/0007.
package creation

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/ratelimit"
)

// saveTimeout bounds the write of the record of a creation, also while the provider is being stopped.
const saveTimeout = 15 * time.Second

// Records keeps the record of a creation, which crossplane-runtime has in annotations, correct.
//
// The annotation external-create-pending is written before a creation starts. crossplane-runtime does not
// continue while it is the newest one, as after a crash ("cannot determine creation result"). But it treats
// each error as a failed creation, and retries it. An error that leaves the result open must not be recorded as
// a failure: otherwise a second VM would be created.
type Records struct {
	annotations managed.CriticalAnnotationUpdater
	now         func() time.Time
	// Findable means that a created resource can be found, even if the response was lost.
	Findable bool

	mu      sync.Mutex
	unknown map[types.UID]bool
	// still are the times of the creations whose results stay unknown, although a repetition of them was refused.
	still   map[types.UID]time.Time
	unsaved map[types.UID]string
}

// New Records, which are written by u.
func New(u managed.CriticalAnnotationUpdater) *Records {
	return &Records{annotations: u, now: time.Now, unknown: map[types.UID]bool{}, still: map[types.UID]time.Time{}, unsaved: map[types.UID]string{}}
}

// MarkUnknown records that the current creation of mg ended with an unknown result.
func (c *Records) MarkUnknown(mg resource.Managed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unknown[mg.GetUID()] = true
}

// StaysUnknown records that the current creation of mg was refused, but repeats one that started at a time and whose result
// is unknown. The refusal says nothing about the former one.
func (c *Records) StaysUnknown(mg resource.Managed, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still[mg.GetUID()] = since
}

// IsUnknown reports whether the current creation of mg is marked.
func (c *Records) IsUnknown(mg resource.Managed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unknown[mg.GetUID()]
}

// UpdateCriticalAnnotations is called when a creation has ended.
func (c *Records) UpdateCriticalAnnotations(ctx context.Context, o client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	c.mu.Lock()
	unknown := c.unknown[o.GetUID()]
	since, still := c.still[o.GetUID()]
	delete(c.unknown, o.GetUID())
	delete(c.still, o.GetUID())
	c.mu.Unlock()
	if still {
		meta.SetExternalCreatePending(o, since)
	}
	if unknown || still {
		// The times have whole seconds: an earlier failure in the same second would hide the pending creation.
		meta.RemoveAnnotations(o, meta.AnnotationKeyExternalCreateFailed, meta.AnnotationKeyExternalCreateSucceeded)
	}
	name := meta.GetExternalName(o)
	err := c.annotations.UpdateCriticalAnnotations(ctx, o)
	if err != nil && name != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unsaved[o.GetUID()] = name
	}
	return err
}

// Initialize is called before each observation of mg.
func (c *Records) Initialize(ctx context.Context, mg resource.Managed) error {
	if failed := meta.GetExternalCreateFailed(mg); !failed.IsZero() {
		// A creation that starts in the second of a failed one would not count as pending, and would be retried after
		// a crash. A wrong clock delays it by at most that second.
		if err := ratelimit.Sleep(ctx, min(failed.Add(time.Second).Sub(c.now()), time.Second)); err != nil {
			return err
		}
	}
	c.mu.Lock()
	name, unsaved := c.unsaved[mg.GetUID()]
	c.mu.Unlock()
	if unsaved {
		// The API server was not available when the creation ended.
		if err := c.Succeeded(ctx, mg, name); err != nil {
			return err
		}
		c.mu.Lock()
		delete(c.unsaved, mg.GetUID())
		c.mu.Unlock()
	}
	if meta.WasDeleted(mg) && meta.ExternalCreateIncomplete(mg) && !c.Findable {
		// A VM whose name is unknown cannot be deleted here. It is found by its tags as an orphan, and must not hold
		// its owner for ever.
		meta.RemoveAnnotations(mg, meta.AnnotationKeyExternalCreatePending)
	}
	return nil
}

// Succeeded records that the resource of mg exists under this name.
func (c *Records) Succeeded(ctx context.Context, mg resource.Managed, name string) error {
	meta.SetExternalName(mg, name)
	meta.SetExternalCreateSucceeded(mg, c.now())
	return c.annotations.UpdateCriticalAnnotations(ctx, mg)
}
