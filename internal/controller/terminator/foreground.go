package terminator

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func selfOf(obj client.Object) self {
	return self{
		deleting:   obj.GetDeletionTimestamp() != nil,
		held:       controllerutil.ContainsFinalizer(obj, v1alpha1.FinalizerTerminator),
		foreground: slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents),
	}
}

// take a step with an object of one of the three kinds.
func take(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, s step) error {
	switch s {
	case hold:
		return patchMetadata(ctx, c, gvk, obj, func(m client.Object) {
			controllerutil.AddFinalizer(m, v1alpha1.FinalizerTerminator)
		})
	case letGo:
		return client.IgnoreNotFound(patchMetadata(ctx, c, gvk, obj, func(m client.Object) {
			controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerTerminator)
		}))
	case deleteAgain:
		uid := obj.GetUID()
		return client.IgnoreNotFound(c.Delete(ctx, metadataOf(gvk, obj),
			client.PropagationPolicy(metav1.DeletePropagationForeground),
			client.Preconditions{UID: &uid}))
	case nothing:
	}
	return nil
}

// patchMetadata changes the metadata of an object, if it still is as it was read: a
// list of finalizers is patched as a whole.
func patchMetadata(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, change func(client.Object)) error {
	was := metadataOf(gvk, obj)
	now := was.DeepCopy()
	change(now)
	return c.Patch(ctx, now, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}

func metadataOf(gvk schema.GroupVersionKind, obj client.Object) *metav1.PartialObjectMetadata {
	m := newMetadata(gvk)
	m.SetNamespace(obj.GetNamespace())
	m.SetName(obj.GetName())
	m.SetUID(obj.GetUID())
	m.SetResourceVersion(obj.GetResourceVersion())
	m.SetFinalizers(slices.Clone(obj.GetFinalizers()))
	m.SetAnnotations(obj.GetAnnotations())
	return m.DeepCopy()
}

func newMetadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}
