package mr

import (
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/stored"
)

// managerWith is a manager with another client.
type managerWith struct {
	manager.Manager
	client client.Client
}

func (m managerWith) GetClient() client.Client { return m.client }

// Quiet returns the manager with a client that omits the writes of the managed reconciler that change
// nothing, and that reads its own writes.
func Quiet(m manager.Manager) manager.Manager {
	return managerWith{Manager: m, client: quietClient{Client: m.GetClient(), own: newOwnWrites()}}
}

// quietClient omits two writes of the managed reconciler that change nothing: the status at the end
// of every reconcile if it is unchanged, and the connection Secret while it has no data.
type quietClient struct {
	client.Client
	own *ownWrites
}

func (c quietClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if s, ok := obj.(*corev1.Secret); ok && s.Type == resource.SecretTypeConnection && len(s.Data) == 0 {
		return nil
	}
	return c.Client.Create(ctx, obj, opts...)
}

// update writes only the metadata of an object of which a field was dropped when it was decoded: an update of all would
// drop the field in the API server too, and be refused if the field is immutable. The finalizer of such an object could
// not be removed.
func (c quietClient) update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if stored.Faults(obj) == "" {
		return c.Client.Update(ctx, obj, opts...)
	}
	kinds, _, err := c.Scheme().ObjectKinds(obj)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.GetResourceVersion(), "finalizers": obj.GetFinalizers(), "annotations": obj.GetAnnotations(), "labels": obj.GetLabels(),
	}})
	if err != nil {
		return err
	}
	written := finalizer.NewMetadata(kinds[0])
	written.SetNamespace(obj.GetNamespace())
	written.SetName(obj.GetName())
	if err := c.Client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	obj.SetResourceVersion(written.GetResourceVersion())
	return nil
}

func (c quietClient) Status() client.SubResourceWriter {
	return quietStatus{SubResourceWriter: c.Client.Status(), reader: c, own: c.own}
}

type quietStatus struct {
	client.SubResourceWriter
	reader client.Reader // the source of the reconciler's object
	own    *ownWrites
}

func (w quietStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	was, ok := obj.DeepCopyObject().(client.Object)
	if ok && w.reader.Get(ctx, client.ObjectKeyFromObject(obj), was) == nil && equality.Semantic.DeepEqual(was, obj) {
		return nil
	}
	return w.own.remember(obj, w.SubResourceWriter.Update(ctx, obj, opts...))
}
