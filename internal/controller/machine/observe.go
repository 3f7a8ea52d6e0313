package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/pipeline"
)

// readTimeout bounds the first read of a kind, which waits until its cache is filled. Without the right to list
// the kind, that is never.
const readTimeout = 3 * time.Second

// observe returns the resources that the Machine controls, of those that it may have composed: those of its
// pipeline, whose names are known, and those that the status refers to. Only kinds that a pipeline composes are
// watched: a status can be forged.
func (r *Reconciler) observe(ctx context.Context, m *machinev1alpha1.Machine, steps []pipeline.Step) (composed, error) {
	kinds, _ := expectedKinds(m, steps)
	if err := r.watchKinds(slices.Collect(maps.Values(kinds))); err != nil {
		return nil, err
	}
	out := composed{}
	var errs []error
	for _, ref := range mayHave(m, kinds) {
		if out[ref.Role] != nil {
			continue
		}
		obj, err := r.resource(ctx, m, ref)
		if err != nil {
			errs = append(errs, err)
		}
		if obj != nil {
			out[ref.Role] = obj
		}
	}
	return out, errors.Join(errs...)
}

// mayHave returns references to the resources of the expected kinds, by role, and then those of the status: a
// status never replaces a resource that the pipeline names.
func mayHave(m *machinev1alpha1.Machine, kinds map[string]schema.GroupVersionKind) []machinev1alpha1.ComposedReference {
	var out []machinev1alpha1.ComposedReference
	for role, gvk := range kinds {
		name := names.OfMachine(m.GetName(), m.GetUID())
		if machinev1alpha1.IsCompanion(role) {
			name = names.OfCompanion(m.GetName(), m.GetUID(), role[len(machinev1alpha1.ResourceCompanionPrefix):])
		}
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		out = append(out, machinev1alpha1.ComposedReference{Role: role, APIVersion: apiVersion, Kind: kind, Name: name})
	}
	return append(out, m.Status.ResourceRefs...)
}

// expectedKinds returns the kinds of the resources that a Machine has by its pipeline, by role. Of the optional
// companions, these are the ones that its status refers to. A kind that no Machine uses may not be installed, and
// provider-drover may lack the rights for it. If the status lacks a companion, the step infrastructure requires
// it. The kinds of all optional companions are returned as well.
func expectedKinds(m *machinev1alpha1.Machine, steps []pipeline.Step) (out, optional map[string]schema.GroupVersionKind) {
	out, optional = kindsOf(steps)
	for _, ref := range m.Status.ResourceRefs {
		if gvk, ok := optional[ref.Role]; ok {
			out[ref.Role] = gvk
		}
	}
	return out, optional
}

// namedBy returns the kinds of the companions that a VM was created with.
func namedBy(vm metav1.Object, kinds map[string]schema.GroupVersionKind) map[string]schema.GroupVersionKind {
	out := map[string]schema.GroupVersionKind{}
	for name := range strings.SplitSeq(vm.GetAnnotations()[machinev1alpha1.AnnotationCompanions], ",") {
		role := machinev1alpha1.ResourceCompanionPrefix + name
		if gvk, ok := kinds[role]; ok {
			out[role] = gvk
		}
	}
	return out
}

// kindsOf returns the kinds of the VM and its companions by role, from the input of the step infrastructure. Those
// of optional companions are separate.
func kindsOf(steps []pipeline.Step) (out, optional map[string]schema.GroupVersionKind) {
	out, optional = map[string]schema.GroupVersionKind{}, map[string]schema.GroupVersionKind{}
	add := func(to map[string]schema.GroupVersionKind, role string, f map[string]*structpb.Value) {
		gvk := schema.FromAPIVersionAndKind(f["apiVersion"].GetStringValue(), f["kind"].GetStringValue())
		if gvk.Kind != "" && gvk.Version != "" {
			to[role] = gvk
		}
	}
	for _, s := range steps {
		input := s.Input.GetFields()
		if input["kind"].GetStringValue() != "Infrastructure" {
			continue
		}
		add(out, machinev1alpha1.ResourceVM, input["virtualMachine"].GetStructValue().GetFields())
		for _, c := range input["companions"].GetListValue().GetValues() {
			f, to := c.GetStructValue().GetFields(), out
			if f["optional"].GetBoolValue() {
				to = optional
			}
			add(to, machinev1alpha1.ResourceCompanionPrefix+f["name"].GetStringValue(), f)
		}
	}
	return out, optional
}

// resource returns the resource that a reference names, nil if there is none that the Machine controls.
func (r *Reconciler) resource(ctx context.Context, m *machinev1alpha1.Machine, ref machinev1alpha1.ComposedReference) (*unstructured.Unstructured, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if gvk.Group == "" || gvk.Group == machinev1alpha1.Group {
		return nil, nil // Drover composes none of these for a Machine.
	}
	read := r.read
	if !r.watches.has(gvk) {
		read = r.readLive
	}
	obj, err := read(ctx, gvk, types.NamespacedName{Namespace: m.GetNamespace(), Name: ref.Name})
	if err != nil || obj == nil || !metav1.IsControlledBy(obj, m) {
		return nil, err
	}
	if role := obj.GetAnnotations()[roleAnnotation]; role != "" && role != ref.Role {
		return nil, nil
	}
	return obj, nil
}

// watchKinds watches the kinds that a pipeline composes.
func (r *Reconciler) watchKinds(kinds []schema.GroupVersionKind) error {
	for _, gvk := range kinds {
		if gvk.Group == "" || gvk.Group == machinev1alpha1.Group {
			continue
		}
		if err := r.watches.ensure(gvk); err != nil {
			return fmt.Errorf("cannot watch %s: %w", gvk.GroupKind(), err)
		}
	}
	return nil
}

// readLive reads an object from the API server. It returns nil if there is none.
func (r *Reconciler) readLive(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	err := r.live.Get(ctx, key, obj)
	switch {
	case meta.IsNoMatchError(err) || kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read %s %q: %w", gvk.Kind, key.Name, err)
	}
	return obj, nil
}

// labeled returns the resources of a kind that have the Machine's name in a label, from the cache. They are
// shared with the cache and must not be changed. A list by the label itself would scan each resource of the
// namespace, for each Machine.
func (r *Reconciler) labeled(ctx context.Context, gvk schema.GroupVersionKind, m *machinev1alpha1.Machine) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.watches.ensureIndex(ctx, gvk); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := r.resources.List(ctx, list, client.InNamespace(m.GetNamespace()), client.MatchingFields{byMachine: m.GetName()}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// read reads an object from the cache, or as it was written last. It returns nil if there is none.
func (r *Reconciler) read(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	err := r.resources.Get(ctx, key, obj, client.UnsafeDisableDeepCopy)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case kerrors.IsNotFound(err):
		obj = nil
	case errors.Is(err, context.DeadlineExceeded), kerrors.IsTimeout(err):
		// The cache that was not filled in time has an error of its own.
		return nil, fmt.Errorf("cannot read %s %q: may provider-drover list and watch %s?", gvk.Kind, key.Name, gvk.GroupKind())
	case err != nil:
		return nil, fmt.Errorf("cannot read %s %q: %w", gvk.Kind, key.Name, err)
	}
	var cached client.Object
	if obj != nil {
		cached = obj
	}
	if written, ok := r.written.get(overlayKey{kind: gvk.GroupKind(), name: key}, cached); ok {
		if u, ok := written.(*unstructured.Unstructured); ok {
			return u, nil
		}
	}
	return obj, nil
}
