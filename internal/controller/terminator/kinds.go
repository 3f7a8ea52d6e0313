package terminator

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// annotationResourceName is what Crossplane calls a composed resource in its XR.
const annotationResourceName = "crossplane.io/composition-resource-name"

// vmKinds are the kinds of VMs that Machines were seen to compose. Which clouds
// there are is written nowhere else.
type vmKinds struct {
	live client.Reader
	// watch the kind, without waiting for its cache.
	watch func(schema.GroupVersionKind) error

	mu    sync.Mutex
	known map[schema.GroupVersionKind]bool
}

// learn the kind of the Machine's VM. It costs one call a kind, in all.
func (k *vmKinds) learn(ctx context.Context, m *Machine) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var candidates []types.NamespacedName
	var kinds []schema.GroupVersionKind
	for _, ref := range m.Spec.Crossplane.ResourceRefs {
		gvk := ref.GroupVersionKind()
		if k.known[gvk] {
			return nil
		}
		if gvk.Group == "" || gvk.Group == clusterv1alpha1.Group || ref.Name == "" {
			continue
		}
		candidates = append(candidates, types.NamespacedName{Namespace: m.GetNamespace(), Name: ref.Name})
		kinds = append(kinds, gvk)
	}
	for i, key := range candidates {
		obj := newMetadata(kinds[i])
		if err := k.live.Get(ctx, key, obj); err != nil {
			if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil {
				continue
			}
			return fmt.Errorf("cannot read %s %s, which may be the VM: %w", kinds[i].Kind, key.Name, err)
		}
		if obj.GetAnnotations()[annotationResourceName] != v1alpha1.ResourceVM {
			continue
		}
		if err := k.watch(kinds[i]); err != nil {
			return fmt.Errorf("cannot watch %s: %w", kinds[i].GroupKind(), err)
		}
		k.known[kinds[i]] = true
		return nil
	}
	return nil
}

func (k *vmKinds) all() []schema.GroupVersionKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]schema.GroupVersionKind, 0, len(k.known))
	for gvk := range k.known {
		out = append(out, gvk)
	}
	return out
}
