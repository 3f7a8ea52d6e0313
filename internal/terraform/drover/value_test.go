package drover

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"pgregory.net/rapid"
)

// documents of any shape that JSON has, without null.
func documents() *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Int64().AsAny())
	var document func(depth int) *rapid.Generator[any]
	document = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(document(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.StringMatching("[a-z]{1,5}"), document(depth-1), 0, 3), func(m map[string]any) any { return m }))
	}
	return document(3)
}

func TestADocumentIsTheSameAfterTerraformHadIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		is := documents().Draw(t, "document")
		v, err := fromAny(is)
		if err != nil {
			t.Fatal(err)
		}
		got, err := toAny(types.DynamicValue(v))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(is, got); d != "" {
			t.Errorf("-is +got\n%s", d)
		}
	})
}

// TestWhatIsProjectedOntoItselfIsItself is why there is no diff after an apply.
func TestWhatIsProjectedOntoItselfIsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		is := documents().Draw(t, "document")
		if d := cmp.Diff(is, project(is, is)); d != "" {
			t.Errorf("-is +got\n%s", d)
		}
	})
}

func TestProject(t *testing.T) {
	type m = map[string]any
	for name, tc := range map[string]struct{ wanted, is, want any }{
		"WhatTheServerDefaultedIsNoDrift":  {m{"replicas": int64(3)}, m{"replicas": int64(3), "paused": false}, m{"replicas": int64(3)}},
		"WhatSomebodyChangedIsDrift":       {m{"replicas": int64(3)}, m{"replicas": int64(5)}, m{"replicas": int64(5)}},
		"WhatSomebodyRemovedIsDrift":       {m{"replicas": int64(3)}, m{}, m{}},
		"AMapThatIsNoneAnyMoreIsDrift":     {m{"a": m{"b": int64(1)}}, m{"a": "b"}, m{"a": nil}},
		"DefaultsOfItemsAreNoDrift":        {[]any{m{"key": "a"}}, []any{m{"key": "a", "effect": "NoSchedule"}}, []any{m{"key": "a"}}},
		"AnItemThatSomebodyAddedIsDrift":   {[]any{m{"key": "a"}}, []any{m{"key": "a"}, m{"key": "b"}}, []any{m{"key": "a"}, m{"key": "b"}}},
		"AnItemThatSomebodyRemovedIsDrift": {[]any{m{"key": "a"}, m{"key": "b"}}, []any{m{"key": "b"}}, []any{m{"key": "b"}}},
		"AListThatIsNoneAnyMoreIsDrift":    {[]any{"a"}, "a", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, project(tc.wanted, tc.is)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestAValueThatIsNotKnownYetIsReportedAsSuch(t *testing.T) {
	object := types.ObjectValueMust(map[string]attr.Type{"name": types.StringType}, map[string]attr.Value{"name": types.StringUnknown()})
	for name, v := range map[string]attr.Value{"Itself": types.DynamicUnknown(), "APartOfIt": types.DynamicValue(object)} {
		t.Run(name, func(t *testing.T) {
			if a, err := toAny(v); !errors.Is(err, errUnknown) {
				t.Errorf("%v, %v", a, err)
			}
		})
	}
}

func TestANullAttributeIsAbsent(t *testing.T) {
	object := types.ObjectValueMust(map[string]attr.Type{"name": types.StringType, "zone": types.StringType},
		map[string]attr.Value{"name": types.StringValue("a"), "zone": types.StringNull()})
	got, err := toAny(types.DynamicValue(object))
	if err != nil || cmp.Diff(map[string]any{"name": "a"}, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
}
