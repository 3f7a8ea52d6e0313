package jsonmap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	object := func(name string, v any) map[string]any { return map[string]any{name: v} }
	cases := map[string]struct{ into, from, want map[string]any }{
		"AFieldIsAdded":                  {object("a", 1), object("b", 2), map[string]any{"a": 1, "b": 2}},
		"AValueIsReplaced":               {object("a", 1), object("a", 2), object("a", 2)},
		"AnObjectIsMerged":               {object("a", object("b", 1)), object("a", object("c", 2)), object("a", map[string]any{"b": 1, "c": 2})},
		"AListIsReplaced":                {object("a", []any{1, 2}), object("a", []any{3}), object("a", []any{3})},
		"AnObjectReplacesAnythingElse":   {object("a", 1), object("a", object("b", 2)), object("a", object("b", 2))},
		"AnythingElseReplacesAnObject":   {object("a", object("b", 2)), object("a", nil), object("a", nil)},
		"AnEmptyObjectChangesNothing":    {object("a", object("b", 1)), object("a", map[string]any{}), object("a", object("b", 1))},
		"OfNothingNothingIsMerged":       {object("a", 1), nil, object("a", 1)},
		"AnEmptyMapGetsAllThatThereIs":   {map[string]any{}, object("a", object("b", 1)), object("a", object("b", 1))},
		"ObjectsInObjectsAreMergedToo":   {object("a", object("b", object("c", 1))), object("a", object("b", object("d", 2))), object("a", object("b", map[string]any{"c": 1, "d": 2}))},
		"WhatIsInAListIsNeverMergedInto": {object("a", []any{object("b", 1)}), object("a", []any{object("c", 2)}), object("a", []any{object("c", 2)})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if Merge(tc.into, tc.from); !cmp.Equal(tc.into, tc.want) {
				t.Errorf("-want +got:\n%s", cmp.Diff(tc.want, tc.into))
			}
		})
	}
}
