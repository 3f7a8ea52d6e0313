package drover

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/jsonmap"
)

// read reads an object into the state, as far as the state names its fields.
func (m *objectModel) read(ctx context.Context, is *unstructured.Unstructured) error {
	m.UID = types.StringValue(string(is.GetUID()))
	for _, of := range []struct {
		named *types.Map
		are   map[string]string
	}{{&m.Labels, is.GetLabels()}, {&m.Annotations, is.GetAnnotations()}} {
		if of.named.IsNull() {
			continue
		}
		have := map[string]string{}
		for name := range of.named.Elements() {
			if value, there := of.are[name]; there {
				have[name] = value
			}
		}
		v, diags := types.MapValueFrom(ctx, types.StringType, have)
		if err := errorOf(diags); err != nil {
			return err
		}
		*of.named = v
	}
	spec, _, err := unstructured.NestedMap(is.Object, "spec")
	if err != nil {
		return err
	}
	wanted, err := toAny(m.Spec)
	if err != nil {
		return err
	}
	if wanted == nil {
		// It is being imported.
		wanted = appliedOf(is)
	}
	has := project(wanted, spec)
	if equal(has, wanted) && !m.Spec.IsNull() {
		// Terraform distinguishes types that JSON does not, such as a list and a tuple.
		return nil
	}
	v, err := fromAny(has)
	if err != nil {
		return err
	}
	m.Spec = types.DynamicValue(v)
	return nil
}

// equal reports whether two documents have the same JSON.
func equal(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}

// appliedOf returns the fields of spec that this provider applied before, or else those that clients other than
// the object's controllers applied or wrote. Crossplane's own fields are left out.
func appliedOf(is *unstructured.Unstructured) any {
	entries := slices.DeleteFunc(is.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource != "" || e.FieldsV1 == nil
	})
	ofManager := func(is func(metav1.ManagedFieldsEntry) bool) any {
		out := map[string]any{}
		for _, e := range entries {
			owned := map[string]any{}
			if !is(e) || json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
				continue
			}
			if spec, ok := owned["f:spec"].(map[string]any); ok {
				jsonmap.Merge(out, named(spec))
			}
		}
		return out
	}
	own := ofManager(func(e metav1.ManagedFieldsEntry) bool { return e.Manager == fieldManager })
	if m, ok := own.(map[string]any); ok && len(m) > 0 {
		return own
	}
	out := ofManager(func(metav1.ManagedFieldsEntry) bool { return true })
	if m, ok := out.(map[string]any); ok {
		delete(m, "crossplane")
	}
	return out
}

// named returns the fields in a set of fields of metadata.managedFields. A list is taken as a whole.
func named(owned map[string]any) map[string]any {
	out := map[string]any{}
	for key, below := range owned {
		if len(key) < 2 || key[:2] != "f:" {
			continue
		}
		fields, _ := below.(map[string]any)
		inner := named(fields)
		if len(inner) == 0 {
			out[key[2:]] = true
			continue
		}
		out[key[2:]] = inner
	}
	return out
}
