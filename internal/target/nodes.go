package target

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const byProviderID = "providerID"

// syncWait is for how long a caller waits for the first list of Nodes. It counts
// from the start of the watch, so that a dead cluster makes few callers wait.
const syncWait = 2 * time.Second

// nodes is the one watch of a cluster's Nodes.
type nodes struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	started  time.Time

	mu  sync.Mutex
	err error // of the last attempt to list or watch
}

func startNodes(kube kubernetes.Interface, notify func(providerID string)) (*nodes, error) {
	n := &nodes{informer: coreinformers.NewNodeInformer(kube, 0, cache.Indexers{byProviderID: func(obj any) ([]string, error) {
		node, ok := obj.(*corev1.Node)
		if !ok {
			return nil, nil
		}
		return []string{identity(node)}, nil
	}})}
	if err := n.informer.SetTransform(strip); err != nil {
		return nil, err
	}
	if err := n.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.err = err
	}); err != nil {
		return nil, err
	}
	if _, err := n.informer.AddEventHandler(handler(notify)); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.started = stop, time.Now()
	go n.informer.RunWithContext(ctx)
	return n, nil
}

// WithoutProviderID stands, where a providerID is asked for, for the Node of a name
// that has none.
func WithoutProviderID(name string) string { return "name:" + name }

func identity(n *corev1.Node) string {
	if n.Spec.ProviderID != "" {
		return n.Spec.ProviderID
	}
	return WithoutProviderID(n.GetName())
}

// find returns the Nodes with the providerID.
func (n *nodes) find(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	if err := n.synced(ctx); err != nil {
		return nil, err
	}
	objs, err := n.informer.GetIndexer().ByIndex(byProviderID, providerID)
	if err != nil {
		return nil, err
	}
	out := make([]*corev1.Node, 0, len(objs))
	for _, obj := range objs {
		if node, ok := obj.(*corev1.Node); ok {
			out = append(out, node)
		}
	}
	return out, nil
}

func (n *nodes) synced(ctx context.Context) error {
	const look = 20 * time.Millisecond
	giveUp := time.After(time.Until(n.started.Add(syncWait)))
	for !n.informer.HasSynced() {
		n.mu.Lock()
		err := n.err
		n.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-giveUp:
			if n.informer.HasSynced() {
				return nil
			}
			return fmt.Errorf("its Nodes are not listed yet: %w", context.DeadlineExceeded)
		case <-time.After(look):
		}
	}
	return nil
}

func handler(notify func(providerID string)) cache.ResourceEventHandler {
	tell := func(objs ...any) {
		told := ""
		for _, obj := range objs {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			node, ok := obj.(*corev1.Node)
			if !ok || identity(node) == told {
				continue
			}
			told = identity(node)
			notify(told)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell(obj) },
		DeleteFunc: func(obj any) { tell(obj) },
		UpdateFunc: func(old, new any) {
			o, ook := old.(*corev1.Node)
			n, nok := new.(*corev1.Node)
			if ook && nok && sameFacts(o, n) {
				return
			}
			tell(old, new)
		},
	}
}

// sameFacts reports whether two versions of a Node differ in heartbeats alone.
func sameFacts(a, b *corev1.Node) bool {
	return equality.Semantic.DeepEqual(facts(a), facts(b))
}

func facts(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	n.ResourceVersion = ""
	for i := range n.Status.Conditions {
		n.Status.Conditions[i].LastHeartbeatTime.Reset()
	}
	return n
}

// strip drops what is large and of no use to us.
func strip(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		n.ManagedFields = nil
		n.Status.Images = nil
		n.Status.VolumesAttached = nil
		n.Status.VolumesInUse = nil
	}
	return obj, nil
}
