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
)

// release a VM, so that its controller deletes it.
func release(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object, now time.Time) error {
	return client.IgnoreNotFound(finalizer.Patch(ctx, c, gvk, vm, func(m client.Object) {
		controllerutil.RemoveFinalizer(m, machinev1alpha1.FinalizerDrain)
		annotate(m, machinev1alpha1.AnnotationReleased, now.UTC().Format(time.RFC3339Nano))
	}))
}

// forget that the creation of a VM began, and did not end. crossplane-runtime touches no
// resource of which that is so, not even to delete it, since it may not know the VM. A VM
// that there is all the same is found by its name, if its provider chose that, or else by
// its tags. If the creation goes on after all, its end is recorded as ever, and the VM
// deleted. The provider is asked to look again: it ignores changes of the annotation, and does not
// retry a deletion that it refused for it.
func forget(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object, now time.Time) error {
	return client.IgnoreNotFound(finalizer.Patch(ctx, c, gvk, vm, func(m client.Object) {
		meta.RemoveAnnotations(m, meta.AnnotationKeyExternalCreatePending)
		meta.SetReconcileRequest(m, now.UTC().Format(time.RFC3339Nano))
	}))
}

// abandon a VM resource: it goes without its controller.
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
