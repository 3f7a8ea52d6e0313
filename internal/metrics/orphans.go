package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var orphansDesc = prometheus.NewDesc("drover_orphan_vms",
	"VMs without a Machine, by the OrphanCollector that found them; absent while the number is unknown.", []string{"name"}, nil)

// SetupOrphans serves the metrics of OrphanCollectors. They have a collector of their own, so that the
// remaining metrics are served even if this process may not watch OrphanCollectors.
func SetupOrphans(ctx context.Context, mgr ctrl.Manager, views cache.Cache) error {
	i, err := views.GetInformer(ctx, &v1alpha1.OrphanCollector{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return metrics.Registry.Register(&orphans{
		views: views, elected: mgr.Elected(), synced: i.HasSynced,
		log: func(err error) { mgr.GetLogger().Error(err, "Cannot count orphans") },
	})
}

// orphans counts orphans by their OrphanCollector.
type orphans struct {
	views   client.Reader
	elected <-chan struct{}
	synced  func() bool
	log     func(error)
}

// Describe implements prometheus.Collector.
func (o *orphans) Describe(ch chan<- *prometheus.Desc) { ch <- orphansDesc }

// Collect sends the counts in the status of each OrphanCollector.
func (o *orphans) Collect(ch chan<- prometheus.Metric) {
	if !closed(o.elected) || !o.synced() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	l := &v1alpha1.OrphanCollectorList{}
	if err := o.views.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		o.log(err)
		return
	}
	for i := range l.Items {
		c := &l.Items[i]
		if found := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionOrphansFound); found != nil && found.Status != metav1.ConditionUnknown {
			ch <- prometheus.MustNewConstMetric(orphansDesc, prometheus.GaugeValue, float64(c.Status.Orphans), c.GetName())
		}
	}
}
