package gitops

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/test/kit"
)

// A version of an object, with the Machines that existed then.
type version struct {
	*unstructured.Unstructured
	deleted  bool
	revision int64
	machines []*unstructured.Unstructured
}

// A recorder has all versions of the objects in a namespace.
type recorder struct {
	mu       sync.Mutex
	versions []version
	faults   []string
	stops    []func()
	ended    sync.WaitGroup
}

// record all versions from now on.
func record(t *testing.T, f kit.Fleet) *recorder {
	t.Helper()
	r := &recorder{}
	for _, kind := range kinds {
		list := func() *unstructured.UnstructuredList {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			return l
		}
		now := list()
		if err := f.Client.List(t.Context(), now, client.InNamespace(f.Namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range now.Items {
			r.add(&now.Items[i], false)
		}
		w, err := watchtools.NewRetryWatcherWithContext(t.Context(), now.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return f.Client.Watch(ctx, list(), client.InNamespace(f.Namespace), &client.ListOptions{Raw: &o})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.stops = append(r.stops, w.Stop)
		r.ended.Go(func() {
			for e := range w.ResultChan() {
				if o, ok := e.Object.(*unstructured.Unstructured); ok {
					r.add(o, e.Type == watch.Deleted)
				} else {
					r.fault("the watch of " + kind.Kind + " ended")
				}
			}
		})
	}
	return r
}

func (r *recorder) add(o *unstructured.Unstructured, deleted bool) {
	revision, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		r.fault(err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions = append(r.versions, version{Unstructured: o, deleted: deleted, revision: revision})
}

func (r *recorder) fault(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, s)
}

// history returns all versions in the order in which the API server accepted them. The revisions
// of all kinds come from one store.
func (r *recorder) history(t *testing.T) []version {
	t.Helper()
	for _, stop := range r.stops {
		stop()
	}
	r.ended.Wait()
	for _, f := range r.faults {
		t.Fatal(f)
	}
	slices.SortStableFunc(r.versions, func(a, b version) int { return int(a.revision - b.revision) })
	machines := map[string]*unstructured.Unstructured{}
	for i := range r.versions {
		v := &r.versions[i]
		if v.GetKind() == "Machine" {
			if v.deleted {
				delete(machines, v.GetName())
			} else {
				machines[v.GetName()] = v.Unstructured
			}
		}
		v.machines = slices.Collect(maps.Values(machines))
	}
	return r.versions
}
