package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// nodeWatch watches a kubelet's own Node, the only one that it may read.
type nodeWatch struct {
	name       string
	store      cache.Store
	controller cache.Controller
	// changed holds at most one signal. The Node itself is in the store.
	changed chan struct{}
}

func newNodeWatch(client kubernetes.Interface, name string) *nodeWatch {
	w := &nodeWatch{name: name, changed: make(chan struct{}, 1)}
	signal := func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	w.store, w.controller = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = selector
				return client.CoreV1().Nodes().List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = selector
				return client.CoreV1().Nodes().Watch(ctx, o)
			},
		},
		ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { signal() },
			UpdateFunc: func(any, any) { signal() },
			DeleteFunc: func(any) { signal() },
		},
	})
	return w
}

func (w *nodeWatch) run(ctx context.Context) { w.controller.RunWithContext(ctx) }

func (w *nodeWatch) waitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), w.controller.HasSynced)
}

// current returns the Node as last observed.
func (w *nodeWatch) current() (*corev1.Node, bool) { return w.Get(w.name) }

// Get, GetWithNamespace and List implement kwok's interface of a cache of Nodes.
func (w *nodeWatch) Get(name string) (*corev1.Node, bool) {
	obj, ok, err := w.store.GetByKey(name)
	if err != nil || !ok {
		return nil, false
	}
	n, ok := obj.(*corev1.Node)
	return n, ok
}

// GetWithNamespace is Get, because Nodes have no namespace.
func (w *nodeWatch) GetWithNamespace(name, _ string) (*corev1.Node, bool) { return w.Get(name) }

// List returns the Node, if it exists.
func (w *nodeWatch) List() []*corev1.Node {
	if n, ok := w.current(); ok {
		return []*corev1.Node{n}
	}
	return nil
}
