package vsphere

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// vmType is the object type of custom attributes of VMs.
const vmType = "VirtualMachine"

// attributesOf returns the custom attributes of a VM by name.
func attributesOf(fields object.CustomFieldDefList, values []types.BaseCustomFieldValue) map[string]string {
	names := map[int32]string{}
	for _, f := range fields {
		names[f.Key] = f.Name
	}
	out := map[string]string{}
	for _, v := range values {
		if s, ok := v.(*types.CustomFieldStringValue); ok {
			out[names[s.Key]] = s.Value
		}
	}
	return out
}

// attributesMissing returns the custom attributes that a VM lacks, or has with another value.
func attributesMissing(want map[string]string, fields object.CustomFieldDefList, values []types.BaseCustomFieldValue) map[string]string {
	has := attributesOf(fields, values)
	out := map[string]string{}
	for k, v := range want {
		if is, ok := has[k]; !ok || is != v {
			out[k] = v
		}
	}
	return out
}

// setAttributes defines the custom attributes that the vCenter lacks, and sets all of them.
func setAttributes(ctx context.Context, c *vim25.Client, vm types.ManagedObjectReference, attributes map[string]string) error {
	if len(attributes) == 0 {
		return nil
	}
	m, err := object.GetCustomFieldsManager(c)
	if err != nil {
		return classify("cannot use custom attributes", err)
	}
	fields, err := m.Field(ctx)
	if err != nil {
		return classify("cannot list custom attributes", err)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		key, err := keyOf(ctx, m, fields, name)
		if err != nil {
			return classify(fmt.Sprintf("cannot define the custom attribute %q of forProvider.customAttributes", name), err)
		}
		if err := m.Set(ctx, vm, key, attributes[name]); err != nil {
			return classify(fmt.Sprintf("cannot set the custom attribute %q of forProvider.customAttributes", name), err)
		}
	}
	return nil
}

func keyOf(ctx context.Context, m *object.CustomFieldsManager, fields object.CustomFieldDefList, name string) (int32, error) {
	if key, ok := fieldKey(fields, name); ok {
		return key, nil
	}
	def, err := m.Add(ctx, name, vmType, nil, nil)
	if err == nil {
		return def.Key, nil
	}
	if !is[*types.DuplicateName](err) {
		return 0, err
	}
	// Another client defined it in the meantime.
	again, lerr := m.Field(ctx)
	if lerr != nil {
		return 0, lerr
	}
	if key, ok := fieldKey(again, name); ok {
		return key, nil
	}
	return 0, err
}

func fieldKey(fields object.CustomFieldDefList, name string) (int32, bool) {
	for _, f := range fields {
		if f.Name == name && (f.ManagedObjectType == "" || f.ManagedObjectType == vmType) {
			return f.Key, true
		}
	}
	return 0, false
}

// tagsMissing returns the IDs of the tags that a VM lacks.
func tagsMissing(ctx context.Context, rc *rest.Client, want []v1alpha1.Tag, vm types.ManagedObjectReference) ([]string, error) {
	m := tags.NewManager(rc)
	has, err := m.ListAttachedTags(ctx, vm)
	if err != nil {
		return nil, err
	}
	var out []string
	for i, t := range want {
		id := text(t.ID)
		if t.ID == nil {
			if id, err = tagID(ctx, m, i, t); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(has, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

func tagID(ctx context.Context, m *tags.Manager, i int, t v1alpha1.Tag) (string, error) {
	field := fmt.Sprintf("tags[%d]", i)
	categories, err := m.GetCategories(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range categories {
		if c.Name != text(t.Category) {
			continue
		}
		of, err := m.GetTagsForCategory(ctx, c.ID)
		if err != nil {
			return "", err
		}
		for _, tag := range of {
			if tag.Name == text(t.Name) {
				return tag.ID, nil
			}
		}
		return "", native.Invalid(field, "there is no tag %q in category %q", text(t.Name), text(t.Category))
	}
	return "", native.Invalid(field, "there is no category %q", text(t.Category))
}

func attachTags(ctx context.Context, rc *rest.Client, ids []string, vm types.ManagedObjectReference) error {
	m := tags.NewManager(rc)
	for _, id := range ids {
		if err := m.AttachTag(ctx, id, vm); err != nil {
			return err
		}
	}
	return nil
}
