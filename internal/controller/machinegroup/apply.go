package machinegroup

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

// fieldOwner of the fields that templates set on Machines.
const fieldOwner = client.FieldOwner("drover-machinegroup")

// apply carries out a change with one server-side apply. It creates a Machine that does not exist,
// adopts one without a controller, and removes the fields that an earlier template had set.
func apply(ctx context.Context, c client.Client, g *v1alpha1.MachineGroup, ch group.Change) error {
	m, err := manifest(g, ch)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(m), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot apply Machine %q: %w", ch.Name, err)
	}
	return nil
}

func manifest(g *v1alpha1.MachineGroup, ch group.Change) (*unstructured.Unstructured, error) {
	spec := map[string]any{}
	if err := json.Unmarshal(ch.Template.Spec.Raw, &spec); err != nil {
		return nil, fmt.Errorf("spec.templates: template %q of Machine %q cannot be read: %w", ch.Template.Name, ch.Name, err)
	}
	m := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	m.SetGroupVersionKind(v1alpha1.MachineGroupVersionKind)
	m.SetNamespace(g.Namespace)
	m.SetName(ch.Name)
	if ch.Existing != nil {
		// A Machine that was deleted meanwhile must not be created again: with a UID, the API server
		// refuses to create it.
		m.SetUID(ch.Existing.UID)
	}
	m.SetLabels(ch.Template.Metadata.Labels)
	m.SetAnnotations(labels.Merge(labels.Set{v1alpha1.AnnotationTemplate: ch.Template.Name}, ch.Template.Metadata.Annotations))
	m.SetFinalizers(ch.Template.Metadata.Finalizers)
	owner := metav1.GetControllerOf(g)
	refs, err := runtime.DefaultUnstructuredConverter.ToUnstructured(owner)
	if err != nil {
		return nil, err
	}
	return m, unstructured.SetNestedSlice(m.Object, []any{refs}, "metadata", "ownerReferences")
}
