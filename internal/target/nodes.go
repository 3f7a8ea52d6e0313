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
	byToken      = "token"
	byUID        = "uid"
	byProviderID = "providerID"
)

// A NodeIdentity has the fields by which Machines find their Nodes.
type NodeIdentity struct {
	// Token is the UID of the Machine with whose join token the Node registered.
	Token string
	// Name of the Node.
	Name string
	// ProviderID of the Node. A kubelet chooses it.
	ProviderID string
}

// syncWait is how long a caller waits for the first list of Nodes. It counts from the start of the watch, so
// that a dead cluster makes few callers wait.
const syncWait = 2 * time.Second

// refusedFor is when the Nodes of a cluster that had too many are listed again.
const refusedFor = time.Minute

// nodes is the one watch of a cluster's Nodes.
type nodes struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	started  time.Time

	mu      sync.Mutex
	err     error     // of the last attempt to list or watch
	refused time.Time // when the cluster turned out to have too many Nodes, zero if it has not
}

func startNodes(kube kubernetes.Interface, notify func(NodeIdentity)) (*nodes, error) {
	n := &nodes{informer: coreinformers.NewNodeInformer(listed{kube}, 0, cache.Indexers{
		byToken: func(obj any) ([]string, error) {
			return indexed(obj, func(n *corev1.Node) string { return identity(n).Token })
		},
		byUID: func(obj any) ([]string, error) {
			return indexed(obj, func(n *corev1.Node) string { return string(n.GetUID()) })
		},
		byProviderID: func(obj any) ([]string, error) {
			return indexed(obj, func(n *corev1.Node) string { return n.Spec.ProviderID })
		},
	})}
	if err := n.informer.SetTransform(strip); err != nil {
		return nil, err
	}
	if err := n.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.refused.IsZero() {
			n.err = rephrase(err)
		}
	}); err != nil {
		return nil, err
	}
	if _, err := n.informer.AddEventHandler(handler(notify)); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.started = stop, time.Now()
	budget := &cacheBudget{exceeded: n.refuse}
	if _, err := n.informer.AddEventHandler(budget.handler(sizeOf)); err != nil {
		return nil, err
	}
	go n.informer.RunWithContext(ctx)
	return n, nil
}

// refuse stops the watch of a cluster with too many Nodes, and clears its cache.
func (n *nodes) refuse(err error) {
	n.stop()
	n.mu.Lock()
	n.err, n.refused = err, time.Now()
	n.mu.Unlock()
	_ = n.informer.GetIndexer().Replace(nil, "")
}

// isRefused reports whether the watch was refused, and whether it may be tried again.
func (n *nodes) isRefused() (refused, again bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	refused = !n.refused.IsZero()
	return refused, refused && time.Since(n.refused) > refusedFor
}

func indexed(obj any, key func(*corev1.Node) string) ([]string, error) {
	n, ok := obj.(*corev1.Node)
	if !ok || key(n) == "" {
		return nil, nil
	}
	return []string{key(n)}, nil
}

func identity(n *corev1.Node) NodeIdentity {
	return NodeIdentity{Token: n.GetLabels()[v1alpha1.LabelJoinToken], Name: n.GetName(), ProviderID: n.Spec.ProviderID}
}

// find returns the Nodes that registered with the token, the Node of the name and that of the UID, each once.
// An empty argument finds none.
func (n *nodes) find(ctx context.Context, token, name, uid string) ([]*corev1.Node, error) {
	found, err := n.indexed(ctx, map[string]string{byToken: token, byUID: uid})
	if err != nil {
		return nil, err
	}
	if obj, ok, err := n.informer.GetIndexer().GetByKey(name); ok && err == nil {
		if node, ok := obj.(*corev1.Node); ok {
			found[name] = node
		}
	}
	return sorted(found), nil
}

// ofVM returns the Nodes with a providerID.
func (n *nodes) ofVM(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	found, err := n.indexed(ctx, map[string]string{byProviderID: providerID})
	return sorted(found), err
}

// indexed returns the Nodes that the keys of indexes find, by their names. An empty key finds none.
func (n *nodes) indexed(ctx context.Context, keys map[string]string) (map[string]*corev1.Node, error) {
	if err := n.synced(ctx); err != nil {
		return nil, err
	}
	found := map[string]*corev1.Node{}
	for index, key := range keys {
		if key == "" {
			continue
		}
		objs, err := n.informer.GetIndexer().ByIndex(index, key)
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			if node, ok := obj.(*corev1.Node); ok {
				found[node.GetName()] = node
			}
		}
	}
	return found, nil
}

func sorted(found map[string]*corev1.Node) []*corev1.Node {
	out := make([]*corev1.Node, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

func (n *nodes) synced(ctx context.Context) error {
	if refused, _ := n.isRefused(); refused {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.err
	}
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
	handle := func(objs ...any) {
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
		AddFunc:    func(obj any) { handle(obj) },
		DeleteFunc: func(obj any) { handle(obj) },
		UpdateFunc: func(oldObj, newObj any) {
			o, ook := oldObj.(*corev1.Node)
			n, nok := newObj.(*corev1.Node)
			if ook && nok && sameFacts(o, n) {
				return
			}
			handle(oldObj, newObj)
		},
	}
}

// sameFacts reports whether two versions of a Node differ only in heartbeats.
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
