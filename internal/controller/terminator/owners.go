package terminator

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// byOwner indexes objects by the UIDs of their owners.
const byOwner = "drover.owner"

func ownersOf(obj client.Object) []string {
	var out []string
	for _, o := range obj.GetOwnerReferences() {
		out = append(out, string(o.UID))
	}
	return out
}

func ownedBy(obj client.Object, uid types.UID) bool {
	for _, o := range obj.GetOwnerReferences() {
		if o.UID == uid {
			return true
		}
	}
	return false
}

// ownerOfKind maps an object to its owner of a kind in Drover's API group.
func ownerOfKind[T client.Object](kind string) func(context.Context, T) []reconcile.Request {
	return func(_ context.Context, obj T) []reconcile.Request {
		for _, o := range obj.GetOwnerReferences() {
			gv, err := schema.ParseGroupVersion(o.APIVersion)
			if err == nil && gv.Group == v1alpha1.Group && o.Kind == kind {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: o.Name}}}
			}
		}
		return nil
	}
}

// owned lists the metadata of the objects of a kind that an owner has, by their label.
func owned(ctx context.Context, reader client.Reader, gvk schema.GroupVersionKind, label string, owner client.Object) ([]metav1.PartialObjectMetadata, error) {
	list := newMetadataList(gvk)
	if err := reader.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels{label: owner.GetName()}); err != nil {
		return nil, err
	}
	return keep(list.Items, owner.GetUID()), nil
}

// ownedCached does the same from a cache that is indexed by owner.
func ownedCached(ctx context.Context, cached client.Reader, gvk schema.GroupVersionKind, owner client.Object) ([]metav1.PartialObjectMetadata, error) {
	list := newMetadataList(gvk)
	err := cached.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingFields{byOwner: string(owner.GetUID())})
	return list.Items, err
}

func keep(items []metav1.PartialObjectMetadata, owner types.UID) []metav1.PartialObjectMetadata {
	var out []metav1.PartialObjectMetadata
	for i := range items {
		if ownedBy(&items[i], owner) {
			out = append(out, items[i])
		}
	}
	return out
}

func newMetadataList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	gvk.Kind += "List"
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	return list
}
