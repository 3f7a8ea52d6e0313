// Package undecoded reports the objects in the caches of a provider that have fields that cannot be decoded: with a
// metric while they are there, and with an event and a line of the log when one is found. Package stored has the
// reason why such objects do not end the caches.
package undecoded

import (
	"errors"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

var desc = prometheus.NewDesc("drover_undecodable_object",
	"1 for each object with a field that cannot be decoded: nothing of it is changed until the field is corrected or the object is deleted.",
	[]string{"group", "kind", "namespace", "name"}, nil)

// A Tracker knows the objects with such fields. Its methods may be called concurrently.
type Tracker struct {
	mu      sync.Mutex
	objects map[types.UID]found
	notify  func(client.Object, string)
}

// found is an object with the description of its fields.
type found struct {
	object client.Object
	fields string
}

// NewTracker returns a Tracker of no objects.
func NewTracker() *Tracker {
	return &Tracker{objects: map[types.UID]found{}, notify: func(client.Object, string) {}}
}

// Report has the Tracker serve its metric, and report each object by the recorder and the log of a manager. It must
// be called before the caches start.
func (t *Tracker) Report(mgr ctrl.Manager, name string) error {
	record := event.NewAPIRecorder(mgr.GetEventRecorderFor(name))
	log, scheme := mgr.GetLogger().WithName("undecoded"), mgr.GetScheme()
	t.notify = func(obj client.Object, fields string) {
		kind, _ := apiutil.GVKForObject(obj, scheme)
		log.Error(errors.New(fields), "Cannot decode fields of an object", "kind", kind, "namespace", obj.GetNamespace(), "name", obj.GetName())
		record.Event(obj, event.Warning(machinev1alpha1.ReasonNotDecodable, errors.New("cannot decode "+fields)))
	}
	return metrics.Registry.Register(&collector{Tracker: t, scheme: scheme})
}

// NewInformer returns an informer whose objects the Tracker follows.
func (t *Tracker) NewInformer(lw cache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	i := cache.NewSharedIndexInformer(lw, kind, resync, indexers)
	if _, ok := kind.(interface{ UndecodedFields() string }); ok {
		// It fails only for an informer that was stopped.
		_, _ = i.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
			AddFunc:    t.observe,
			UpdateFunc: func(_, obj any) { t.observe(obj) },
			DeleteFunc: t.forget,
		}, 0)
	}
	return i
}

func (t *Tracker) observe(obj any) {
	o, ok := obj.(client.Object)
	if !ok {
		return
	}
	fields := stored.Faults(o)
	t.mu.Lock()
	was := t.objects[o.GetUID()]
	if fields == "" {
		delete(t.objects, o.GetUID())
	} else {
		t.objects[o.GetUID()] = found{object: o, fields: fields}
	}
	t.mu.Unlock()
	if fields != "" && fields != was.fields {
		t.notify(o, fields)
	}
}

func (t *Tracker) forget(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if o, ok := obj.(client.Object); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.objects, o.GetUID())
	}
}

// A collector serves the metric of a Tracker.
type collector struct {
	*Tracker
	scheme *runtime.Scheme
}

// Describe sends the description of the metric.
func Describe(ch chan<- *prometheus.Desc) { ch <- desc }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { Describe(ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.objects {
		kind, err := apiutil.GVKForObject(f.object, c.scheme)
		if err != nil {
			continue
		}
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, kind.Group, kind.Kind, f.object.GetNamespace(), f.object.GetName())
	}
}
