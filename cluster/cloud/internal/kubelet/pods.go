package kubelet

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/config/resources"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/informer"
)

// runPods lets kwok simulate the pods that are bound to the Node, with the node's own identity.
// Like a node, it may only watch its own pods.
func (k *kubelet) runPods(ctx context.Context, all *sync.WaitGroup) error {
	lc, err := podLifecycle()
	if err != nil {
		return fmt.Errorf("pod stages: %w", err)
	}
	pods, err := controllers.NewPodController(controllers.PodControllerConfig{
		Clock:                endingClock{Clock: k.clock, ctx: ctx},
		TypedClient:          k.client,
		NodeCacheGetter:      k.nodes,
		NodeGetFunc:          func(name string) (*controllers.NodeInfo, bool) { return &controllers.NodeInfo{}, name == k.NodeName },
		NodeIP:               k.IP,
		CIDR:                 k.Facts.PodCIDR,
		Lifecycle:            resources.NewStaticGetter(lc),
		PlayStageParallelism: 1,
	})
	if err != nil {
		return fmt.Errorf("start pods: %w", err)
	}
	events := make(chan informer.Event[*corev1.Pod])
	if err := pods.Start(log.NewContext(ctx, log.NewLogger(os.Stderr, log.LevelError)), events); err != nil {
		return fmt.Errorf("start pods: %w", err)
	}
	watcher := k.podWatch(ctx, events)
	all.Go(func() { watcher.RunWithContext(ctx) })
	return nil
}

// podWatch sends the changes of the Node's pods. It does not use kwok's own informer, which would
// wait forever for a reader that has ended.
func (k *kubelet) podWatch(ctx context.Context, events chan<- informer.Event[*corev1.Pod]) cache.Controller {
	send := func(t informer.EventType, obj any) {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return
		}
		select {
		case events <- informer.Event[*corev1.Pod]{Type: t, Object: pod}:
		case <-ctx.Done():
		}
	}
	selector := fields.OneTermEqualSelector("spec.nodeName", k.NodeName).String()
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
				o.FieldSelector = selector
				return k.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = selector
				return k.client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, o)
			},
		},
		ObjectType: &corev1.Pod{},
		// Changes that failed while the VM was disconnected are sent again, because kwok does not
		// retry them.
		ResyncPeriod: 30 * time.Second,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { send(informer.Added, obj) },
			UpdateFunc: func(_, obj any) { send(informer.Modified, obj) },
			DeleteFunc: func(obj any) { send(informer.Deleted, obj) },
		},
	})
	return controller
}

// endingClock ends the goroutine that waits on it once the context is done. The queue in kwok's
// controller cannot be stopped in any other way, and a cloud outlives many VMs.
type endingClock struct {
	clock.Clock
	ctx context.Context //nolint:containedctx // The interface of a clock has no context.
}

// After implements clock.Clock.
func (c endingClock) After(d time.Duration) <-chan time.Time {
	if c.ctx.Err() != nil {
		runtime.Goexit()
	}
	return c.Clock.After(d)
}
