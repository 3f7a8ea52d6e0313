package machine

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/plan"
)

// release lets the provider of a VM resource delete it.
func release(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object, now time.Time) error {
	return client.IgnoreNotFound(finalizer.Patch(ctx, c, gvk, vm, func(m client.Object) {
		controllerutil.RemoveFinalizer(m, machinev1alpha1.FinalizerDrain)
		annotate(m, machinev1alpha1.AnnotationReleased, now.UTC().Format(time.RFC3339Nano))
	}))
}

// forget removes the mark of a creation that began and did not end. crossplane-runtime does not touch a
// resource with that mark, not even to delete it, since it may not know the VM. If the VM exists, it is found
// by its name, if its provider chose that, or else by its tags. If the creation still succeeds, its end is
// recorded as usual, and the VM is deleted. The second annotation requests a reconcile by the provider: it
// ignores changes of the mark, and does not retry a deletion that it refused because of it.
func forget(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object, now time.Time) error {
	return client.IgnoreNotFound(finalizer.Patch(ctx, c, gvk, vm, func(m client.Object) {
		meta.RemoveAnnotations(m, meta.AnnotationKeyExternalCreatePending)
		meta.SetReconcileRequest(m, now.UTC().Format(time.RFC3339Nano))
	}))
}

// letUnmadeGo removes the finalizer of the provider from a resource that the provider never began to create. The patch
// is refused if the provider begins meanwhile: it marks the resource first.
func letUnmadeGo(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object) error {
	return client.IgnoreNotFound(finalizer.Patch(ctx, c, gvk, vm, func(m client.Object) { controllerutil.RemoveFinalizer(m, plan.FinalizerManaged) }))
}

// abandon removes all finalizers of a VM resource, so that it is deleted without its provider.
func abandon(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object) error {
	return client.IgnoreNotFound(finalizer.Patch(ctx, c, gvk, vm, func(m client.Object) { m.SetFinalizers(nil) }))
}

func annotate(obj client.Object, key, value string) {
	a := obj.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[key] = value
	obj.SetAnnotations(a)
}
