package mr

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// managerWith gives the managed reconciler another client.
type managerWith struct {
	manager.Manager
	client client.Client
}

func (m managerWith) GetClient() client.Client { return m.client }

// Quiet returns the manager with a client that leaves out the writes of the managed
// reconciler that change nothing, and that reads its own writes.
func Quiet(m manager.Manager) manager.Manager {
	return managerWith{Manager: m, client: quietClient{Client: m.GetClient(), own: newOwnWrites()}}
}

// quietClient leaves out two writes of the managed reconciler that change nothing:
// the status that it sends at the end of every reconcile, changed or not, and the
// connection Secret that it creates before there is anything to put into it.
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
	reader client.Reader // that the reconciler read its object from
	own    *ownWrites
}

func (w quietStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	was, ok := obj.DeepCopyObject().(client.Object)
	if ok && w.reader.Get(ctx, client.ObjectKeyFromObject(obj), was) == nil && equality.Semantic.DeepEqual(was, obj) {
		return nil
	}
	return w.own.remember(obj, w.SubResourceWriter.Update(ctx, obj, opts...))
}
