package mr

import (
	"context"
	"reflect"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownWritesKept is how many managed resources are kept in memory until the cache has them.
const ownWritesKept = 8192

// ownWrites are the managed resources that this process wrote last. The managed reconciler
// requeues right after a creation, and would read its object from a cache that lacks it:
// its next write would be refused.
type ownWrites struct{ last *lru.Cache }

type ownKey struct {
	kind reflect.Type
	name client.ObjectKey
}

func newOwnWrites() *ownWrites { return &ownWrites{last: lru.New(ownWritesKept)} }

func ownKeyOf(obj client.Object) ownKey {
	return ownKey{kind: reflect.TypeOf(obj), name: client.ObjectKeyFromObject(obj)}
}

// remember stores an object that was written, if it is a managed resource.
func (o *ownWrites) remember(obj client.Object, err error) error {
	mg, ok := obj.(resource.Managed)
	if !ok {
		return err
	}
	if err != nil {
		o.last.Remove(ownKeyOf(obj))
		return err
	}
	if written, ok := mg.DeepCopyObject().(client.Object); ok {
		o.last.Add(ownKeyOf(obj), written)
	}
	return nil
}

// refresh replaces an object that was read from the cache if a newer version was written.
func (o *ownWrites) refresh(obj client.Object) {
	v, ok := o.last.Get(ownKeyOf(obj))
	if !ok {
		return
	}
	written, ok := v.(client.Object)
	if !ok || !IsOlder(obj, written) {
		o.last.Remove(ownKeyOf(obj))
		return
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(written.DeepCopyObject()).Elem())
}

// IsOlder reports whether a is an older version of the object b.
func IsOlder(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0 && a.GetUID() == b.GetUID()
}

func (c quietClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	switch {
	case err == nil:
		c.own.refresh(obj)
	case kerrors.IsNotFound(err):
		c.own.last.Remove(ownKey{kind: reflect.TypeOf(obj), name: key})
	}
	return err
}

func (c quietClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.own.remember(obj, c.update(ctx, obj, opts...))
}

func (c quietClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.own.remember(obj, c.Client.Patch(ctx, obj, patch, opts...))
}
