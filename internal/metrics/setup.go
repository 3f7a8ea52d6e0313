package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// collectTimeout bounds a scrape, whatever the state of the caches.
const collectTimeout = 5 * time.Second

// Setup serves the metrics with those of the manager. The views are a cache whose scheme
// has AddToScheme's kinds. Machines are read from the manager's cache.
func Setup(ctx context.Context, mgr ctrl.Manager, views cache.Cache) error {
	c := &collector{
		gauges:      gauges{views: views, manager: mgr.GetCache(), now: time.Now},
		transitions: newTransitions(),
		elected:     mgr.Elected(),
		log:         func(err error) { mgr.GetLogger().Error(err, "Cannot collect all metrics") },
	}
	if err := c.watch(ctx, views, mgr.GetCache()); err != nil {
		return err
	}
	return metrics.Registry.Register(c)
}

// collector of all metrics except those of orphans.
type collector struct {
	gauges
	*transitions
	elected <-chan struct{}
	log     func(error)
	// informers that must have synced.
	informers []cache.Informer
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	c.gauges.describe(ch)
	c.transitions.describe(ch)
}

// Collect sends nothing before all caches have synced: incomplete numbers would look like an incident.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	if !c.leads() {
		return
	}
	for _, i := range c.informers {
		if !i.HasSynced() {
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	if err := c.gauges.collect(ctx, ch); err != nil {
		c.log(err)
		return
	}
	deployments, sets, err := owners(ctx, c.views)
	if err != nil {
		c.log(err)
		return
	}
	c.transitions.collect(deployments, sets, ch)
}

func (c *collector) leads() bool { return closed(c.elected) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (c *collector) watch(ctx context.Context, views, manager cache.Cache) error {
	informer := func(from cache.Cache, obj client.Object) (cache.Informer, error) {
		i, err := from.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err == nil {
			c.informers = append(c.informers, i)
		}
		return i, err
	}
	machines, err := informer(manager, &v1alpha1.Machine{})
	if err != nil {
		return err
	}
	for obj, from := range map[client.Object]cache.Cache{
		&Deployment{}: views, &Set{}: views, &v1alpha1.RolloutPolicy{}: manager,
		&clusterv1alpha1.ProviderConfig{}: manager, &clusterv1alpha1.ClusterProviderConfig{}: manager,
	} {
		if _, err := informer(from, obj); err != nil {
			return err
		}
	}
	_, err = machines.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(oldObj, newObj any) {
			was, ok := oldObj.(*v1alpha1.Machine)
			is, ok2 := newObj.(*v1alpha1.Machine)
			if ok && ok2 && c.leads() {
				c.machine(was, is, time.Now())
			}
		},
		// If a new list lacks a Machine, the time of its deletion is unknown.
		DeleteFunc: func(obj any) {
			if m, ok := obj.(*v1alpha1.Machine); ok && c.leads() {
				c.machineGone(m, time.Now())
			}
		},
	})
	return err
}
