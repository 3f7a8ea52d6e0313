package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readTimeout bounds the read of one selector. The first read of a kind from a cache waits
// until the cache has all objects, which never ends without the right to list them.
const readTimeout = 15 * time.Second

// ClusterResources reads required resources from the API server, or from a cache.
type ClusterResources struct {
	reader  client.Reader
	timeout time.Duration
}

// NewClusterResources returns ClusterResources that read unstructured objects.
func NewClusterResources(reader client.Reader) *ClusterResources {
	return &ClusterResources{reader: reader, timeout: readTimeout}
}

// Fetch returns the resources that a selector matches: by name, by labels, or all of the kind.
// It returns nil if no resource has the name.
func (r *ClusterResources) Fetch(ctx context.Context, selector *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	objects, err := r.read(ctx, selector)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(selector, err)
	}
	return resourcesOf(objects)
}

func (r *ClusterResources) read(ctx context.Context, selector *fnv1.ResourceSelector) ([]unstructured.Unstructured, error) {
	gvk := schema.FromAPIVersionAndKind(selector.GetApiVersion(), selector.GetKind())
	if _, byName := selector.GetMatch().(*fnv1.ResourceSelector_MatchName); byName {
		u := unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		key := client.ObjectKey{Namespace: selector.GetNamespace(), Name: selector.GetMatchName()}
		err := r.reader.Get(ctx, key, &u, client.UnsafeDisableDeepCopy)
		return []unstructured.Unstructured{u}, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	opts := []client.ListOption{client.InNamespace(selector.GetNamespace()), client.UnsafeDisableDeepCopy}
	if labels := selector.GetMatchLabels().GetLabels(); len(labels) > 0 {
		opts = append(opts, client.MatchingLabels(labels))
	}
	err := r.reader.List(ctx, list, opts...)
	return list.Items, err
}

// resourcesOf converts objects, which a cache may share, in the order of namespace and
// name: a cache has none.
func resourcesOf(objects []unstructured.Unstructured) (*fnv1.Resources, error) {
	objects = slices.SortedFunc(slices.Values(objects), func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	resources := &fnv1.Resources{Items: make([]*fnv1.Resource, 0, len(objects))}
	for _, o := range objects {
		s, err := structpb.NewStruct(o.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot convert %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
		resources.Items = append(resources.Items, &fnv1.Resource{Resource: s})
	}
	return resources, nil
}

// explain an error by the kind that could not be read.
func explain(selector *fnv1.ResourceSelector, err error) error {
	kind := fmt.Sprintf("kind %q of apiVersion %q", selector.GetKind(), selector.GetApiVersion())
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the API server has no %s: %w", kind, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("provider-drover has no right to get, list and watch %s: %w", kind, err)
	case apierrors.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot read %s in time (has provider-drover the right to get, list and watch it?): %w", kind, err)
	}
	return fmt.Errorf("cannot read %s: %w", kind, err)
}
