package packageguard

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A view reads one object from the API server until a read succeeds, and from a watch
// afterwards. The first read proves that the kind exists and may be read.
type view struct {
	live, cached client.Reader
	// watch starts the watch of an object of this kind, without waiting for it.
	watch func(context.Context, client.Object) error

	watched bool
}

// get reads the object of this kind and name into obj and reports whether it exists.
func (v *view) get(ctx context.Context, obj client.Object) (bool, error) {
	reader := v.live
	if v.watched {
		reader = v.cached
	}
	kind, key := obj.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(obj)
	err := reader.Get(ctx, key, obj)
	if err != nil && !kerrors.IsNotFound(err) {
		return false, wrap(err, "get %s %s", kind, key.Name)
	}
	if !v.watched {
		if err := v.watch(ctx, obj); err != nil {
			return false, wrap(err, "watch %s %s", kind, key.Name)
		}
		v.watched = true
	}
	return err == nil, nil
}
