package terminator

import (
	"context"
	"encoding/json"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// release a VM, so that its controller deletes it.
func release(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object, now time.Time) error {
	return client.IgnoreNotFound(patchMetadata(ctx, c, gvk, vm, func(m client.Object) {
		controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerDrain)
		annotate(m, v1alpha1.AnnotationReleased, now.UTC().Format(time.RFC3339Nano))
	}))
}

// forget that the creation of a VM began, and did not end. crossplane-runtime touches no
// resource of which that is so, not even to delete it, since it may not know the VM. A VM
// that there is all the same is found by its name, if its provider chose that, or else by
// its tags. If the creation goes on after all, its end is recorded as ever, and the VM
// deleted.
func forget(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object) error {
	return client.IgnoreNotFound(patchMetadata(ctx, c, gvk, vm, func(m client.Object) {
		meta.RemoveAnnotations(m, meta.AnnotationKeyExternalCreatePending)
	}))
}

// abandon a VM resource: it goes without its controller.
func abandon(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, vm client.Object) error {
	return client.IgnoreNotFound(patchMetadata(ctx, c, gvk, vm, func(m client.Object) { m.SetFinalizers(nil) }))
}

// passTo passes wishes of the Machine on to its WorkerNode.
func passTo(ctx context.Context, c client.Client, namespace, name string, annotations []string) error {
	m := newMetadata(clusterv1alpha1.WorkerNodeGroupVersionKind)
	m.SetNamespace(namespace)
	m.SetName(name)
	wishes := map[string]string{}
	for _, a := range annotations {
		wishes[a] = "true"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": wishes}})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(c.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch)))
}

func annotate(obj client.Object, key, value string) {
	a := obj.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[key] = value
	obj.SetAnnotations(a)
}

// collect a WorkerNode in place of the garbage collector: see [late].
func collect(ctx context.Context, c client.Client, namespace string, wn workerNode) error {
	obj := &clusterv1alpha1.WorkerNode{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: wn.name}}
	return client.IgnoreNotFound(c.Delete(ctx, obj, client.Preconditions{UID: &wn.uid}))
}
