package target

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// Indexes of Nodes.
const (
	byToken = "token"
	byUID   = "uid"
)

// A NodeIdentity has what Machines know their Nodes by.
type NodeIdentity struct {
	// Token is the UID of the Machine with whose join token the Node registered.
	Token string
	// Name of the Node.
	Name string
}

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

func startNodes(kube kubernetes.Interface, notify func(NodeIdentity)) (*nodes, error) {
	n := &nodes{informer: coreinformers.NewNodeInformer(kube, 0, cache.Indexers{
		byToken: func(obj any) ([]string, error) {
			return indexed(obj, func(n *corev1.Node) string { return identity(n).Token })
		},
		byUID: func(obj any) ([]string, error) {
			return indexed(obj, func(n *corev1.Node) string { return string(n.GetUID()) })
		},
	})}
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

func indexed(obj any, key func(*corev1.Node) string) ([]string, error) {
	n, ok := obj.(*corev1.Node)
	if !ok || key(n) == "" {
		return nil, nil
	}
	return []string{key(n)}, nil
}

func identity(n *corev1.Node) NodeIdentity {
	return NodeIdentity{Token: n.GetLabels()[v1alpha1.LabelJoinToken], Name: n.GetName()}
}

// find returns the Nodes that registered with the token, the Node of the name and that of
// the UID, each once. None of these is asked for if it is empty.
func (n *nodes) find(ctx context.Context, token, name, uid string) ([]*corev1.Node, error) {
	if err := n.synced(ctx); err != nil {
		return nil, err
	}
	found := map[string]*corev1.Node{}
	add := func(objs ...any) {
		for _, obj := range objs {
			if node, ok := obj.(*corev1.Node); ok {
				found[node.GetName()] = node
			}
		}
	}
	for index, key := range map[string]string{byToken: token, byUID: uid} {
		if key == "" {
			continue
		}
		objs, err := n.informer.GetIndexer().ByIndex(index, key)
		if err != nil {
			return nil, err
		}
		add(objs...)
	}
	if obj, ok, err := n.informer.GetIndexer().GetByKey(name); ok && err == nil {
		add(obj)
	}
	out := make([]*corev1.Node, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
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

func handler(notify func(NodeIdentity)) cache.ResourceEventHandler {
	tell := func(objs ...any) {
		var last NodeIdentity
		for _, obj := range objs {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			node, ok := obj.(*corev1.Node)
			if !ok || identity(node) == last {
				continue
			}
			last = identity(node)
			notify(last)
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
