package mr

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
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
