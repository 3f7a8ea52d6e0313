package terminator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// annotationResourceName is what Crossplane calls a composed resource in its XR.
const annotationResourceName = "crossplane.io/composition-resource-name"

// vmKinds are the kinds of VMs, and of their companions, that Machines were seen to
// compose. Which clouds there are is written nowhere else.
type vmKinds struct {
	live client.Reader
	// watch the kind, without waiting for its cache.
	watch func(schema.GroupVersionKind) error

	mu    sync.Mutex
	known map[schema.GroupVersionKind]bool
	// foreign resources were looked at, and are neither: steps of others compose them.
	foreign *lru.Cache
}

func newVMKinds(live client.Reader, watch func(schema.GroupVersionKind) error) *vmKinds {
	return &vmKinds{live: live, watch: watch, known: map[schema.GroupVersionKind]bool{}, foreign: lru.New(4096)}
}

// reference to what a Machine composes.
type reference struct {
	machine types.UID
	gvk     schema.GroupVersionKind
	name    string
}

// learn the kinds of the Machine's VM and of its companions. It costs one call a kind,
// in all, and one for each resource that others compose.
func (k *vmKinds) learn(ctx context.Context, m *Machine) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, ref := range m.Spec.Crossplane.ResourceRefs {
		gvk := ref.GroupVersionKind()
		r := reference{machine: m.GetUID(), gvk: gvk, name: ref.Name}
		if _, foreign := k.foreign.Get(r); foreign || k.known[gvk] || gvk.Group == "" || gvk.Group == clusterv1alpha1.Group || ref.Name == "" {
			continue
		}
		errs = append(errs, k.look(ctx, r, m.GetNamespace()))
	}
	return errors.Join(errs...)
}

func (k *vmKinds) look(ctx context.Context, r reference, namespace string) error {
	obj := newMetadata(r.gvk)
	if err := k.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: r.name}, obj); err != nil {
		if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("cannot read %s %s, which may be the VM: %w", r.gvk.Kind, r.name, err)
	}
	if role := obj.GetAnnotations()[annotationResourceName]; role != v1alpha1.ResourceVM && !v1alpha1.IsCompanion(role) {
		k.foreign.Add(r, nil)
		return nil
	}
	if err := k.watch(r.gvk); err != nil {
		return fmt.Errorf("cannot watch %s: %w", r.gvk.GroupKind(), err)
	}
	k.known[r.gvk] = true
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
