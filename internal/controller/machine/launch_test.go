package machine

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
)

// composedVM is a VM as it is applied for aMachine.
func composedVM(t *testing.T, change func(map[string]any)) *unstructured.Unstructured {
	t.Helper()
	raw := desiredVM(aMachine(false), "small")
	if change != nil {
		change(raw)
	}
	u, err := compose(aMachine(false), v1alpha1.ResourceVM, &fnv1.Resource{Resource: structOf(t, raw)})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestNeedsApply(t *testing.T) {
	forProvider := func(raw map[string]any) map[string]any {
		return raw["spec"].(map[string]any)["forProvider"].(map[string]any)
	}
	set := func(key string, value any) func(map[string]any) {
		return func(raw map[string]any) { forProvider(raw)[key] = value }
	}
	// observed is the applied resource with the changes of other clients.
	observed := func(u *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		out := u.DeepCopy()
		out.SetUID("uid-vm")
		out.SetResourceVersion("7")
		out.SetFinalizers(append(out.GetFinalizers(), "finalizer.managedresource.crossplane.io"))
		out.Object["status"] = map[string]any{"atProvider": map[string]any{"id": nodetest.ID}}
		for _, c := range changes {
			c(out)
		}
		return out
	}
	late := func(key string, value any) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, value, "spec", "forProvider", key)
		}
	}
	unhashed := func(u *unstructured.Unstructured) {
		a := u.GetAnnotations()
		delete(a, v1alpha1.AnnotationAppliedHash)
		u.SetAnnotations(a)
	}
	small := composedVM(t, nil)
	cases := map[string]struct {
		reason   string
		observed *unstructured.Unstructured
		want     *unstructured.Unstructured
		applies  bool
	}{
		"None":          {"There is nothing yet.", nil, small, true},
		"AsApplied":     {"Status, UID and finalizers of others do not count.", observed(small), small, false},
		"LateFields":    {"The provider fills in what it chose.", observed(small, late("zone", "a")), small, false},
		"AnotherValue":  {"The class changed.", observed(small), composedVM(t, set("size", "large")), true},
		"Drift":         {"Another client wrote the field.", observed(small, late("size", "large")), small, true},
		"FieldAdded":    {"The class has one more.", observed(small), composedVM(t, set("zone", "a")), true},
		"FieldRemoved":  {"All that is desired is there, but the hash is another one.", observed(composedVM(t, set("zone", "a"))), small, true},
		"ItemRemoved":   {"A list is compared by its items.", observed(composedVM(t, set("tags", []any{"a", "b"}))), composedVM(t, set("tags", []any{"a"})), true},
		"ItemsReversed": {"The order of a list may matter to its provider.", observed(composedVM(t, set("tags", []any{"a", "b"}))), composedVM(t, set("tags", []any{"b", "a"})), true},
		"SpecEqual":     {"Another hash, as of another version of Drover, is no reason: the spec is exactly as desired.", observed(small, unhashed), small, false},
		"SpecEqualButMore": {"Without hash the owner of the other field is unknown.",
			observed(small, unhashed, late("zone", "a")), small, true},
		"Deleting": {"Nothing would come of it.", observed(small, func(u *unstructured.Unstructured) {
			now := metav1.Now()
			u.SetDeletionTimestamp(&now)
		}), composedVM(t, set("size", "large")), false},
		"FinalizerMissing": {"The VM must not be deleted before its Node is drained.", observed(small, func(u *unstructured.Unstructured) {
			u.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
		}), small, true},
		"OwnerMissing":  {"The garbage collector needs it.", observed(small, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }), small, true},
		"LabelMissing":  {"The VM is found by it.", observed(small, func(u *unstructured.Unstructured) { u.SetLabels(nil) }), small, true},
		"NumberTypes":   {"The API server returns 20 as an int64, and an apply may have a float64.", observed(small, late("disk", float64(20))), small, false},
		"NumberValues":  {"20 and 20.5 differ.", observed(small, late("disk", 20.5)), small, true},
		"TextForNumber": {"20 and its text differ.", observed(small, late("disk", "20")), small, true},
		"EmptyForNone":  {"An empty object that is dropped is as good as there.", observed(small), composedVM(t, set("opts", map[string]any{})), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before map[string]any
			if tc.observed != nil {
				before = runtime.DeepCopyJSON(tc.observed.Object)
			}
			want := tc.want.DeepCopy()
			if got := needsApply(tc.observed, tc.want); got != tc.applies {
				t.Errorf("%s\napply %v, want %v", tc.reason, got, tc.applies)
			}
			if tc.observed != nil {
				if d := cmp.Diff(before, tc.observed.Object); d != "" {
					t.Errorf("the object of the cache changed:\n%s", d)
				}
			}
			if d := cmp.Diff(want.Object, tc.want.Object); d != "" {
				t.Errorf("the desired object changed:\n%s", d)
			}
		})
	}
}

func TestCoversAndEqual(t *testing.T) {
	type m = map[string]any
	type l = []any
	cases := map[string]struct {
		is, want      any
		covers, equal bool
	}{
		"Same":               {m{"a": "b"}, m{"a": "b"}, true, true},
		"More":               {m{"a": "b", "c": "d"}, m{"a": "b"}, true, false},
		"Less":               {m{}, m{"a": "b"}, false, false},
		"Integers":           {int64(1), int64(1), true, true},
		"IntegerAndFloat":    {int64(1), float64(1), true, true},
		"FloatAndInteger":    {float64(1), int64(1), true, true},
		"OtherNumber":        {float64(1.5), int64(1), false, false},
		"NumberAndText":      {int64(1), "1", false, false},
		"NumberAndBool":      {int64(1), true, false, false},
		"NumberInAList":      {l{float64(1)}, l{int64(1)}, true, true},
		"NoneAndEmptyObject": {nil, m{}, true, false},
		"NoneAndEmptyList":   {nil, l{}, true, false},
		"NoneAndNone":        {nil, nil, true, true},
		"NoneAndZero":        {nil, int64(0), false, false},
		"NoneAndFalse":       {nil, false, false, false},
		"ListWithMore":       {l{"a", "b"}, l{"b"}, true, false},
		"ListWithLess":       {l{"a"}, l{"a", "b"}, false, false},
		"ListInOtherOrder":   {l{"a", "b"}, l{"b", "a"}, true, false},
		"ObjectsInAList":     {l{m{"name": "a", "default": true}, m{"name": "b"}}, l{m{"name": "b"}, m{"name": "a"}}, true, false},
		"OtherObjectInAList": {l{m{"name": "a"}}, l{m{"name": "b"}}, false, false},
		"ObjectForList":      {m{}, l{}, false, false},
		"ListForObject":      {l{}, m{}, false, false},
		"NilInAnObject":      {m{}, m{"a": nil}, true, false},
		"NilInBoth":          {m{"a": nil}, m{"a": nil}, true, true},
		"AnotherKeyWithNil":  {m{"b": nil}, m{"a": nil}, true, false},
		"EmptyObjects":       {m{}, m{}, true, true},
		"ScalarForObject":    {"a", m{"a": "b"}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := covers(tc.is, tc.want); got != tc.covers {
				t.Errorf("covers %v, want %v", got, tc.covers)
			}
			if got := equal(tc.is, tc.want); got != tc.equal {
				t.Errorf("equal %v, want %v", got, tc.equal)
			}
		})
	}
}

func TestCompose(t *testing.T) {
	u := composedVM(t, func(raw map[string]any) {
		raw["status"] = map[string]any{"atProvider": "never applied"}
		raw["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"kind": "Other"}}
	})
	if _, ok := u.Object["status"]; ok || u.GetNamespace() != "ns" || !metav1.IsControlledBy(u, aMachine(false)) || len(u.GetOwnerReferences()) != 1 {
		t.Errorf("composed %v", u.Object)
	}
	if disk, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "forProvider", "disk"); disk != int64(20) {
		t.Errorf("disk is %T: an integer field refuses a float", disk)
	}
	if composedVM(t, nil).GetAnnotations()[v1alpha1.AnnotationAppliedHash] == composedVM(t, func(raw map[string]any) { raw["spec"] = map[string]any{} }).GetAnnotations()[v1alpha1.AnnotationAppliedHash] {
		t.Error("the hash of two specs is the same")
	}
	unnamed := composedVM(t, func(raw map[string]any) { raw["metadata"] = map[string]any{} })
	if again := composedVM(t, func(raw map[string]any) { raw["metadata"] = map[string]any{} }); unnamed.GetName() == "" || unnamed.GetName() != again.GetName() {
		t.Errorf("names %q and %q", unnamed.GetName(), again.GetName())
	}
	raw := desiredVM(aMachine(false), "small")
	raw["metadata"].(map[string]any)["namespace"] = "kube-system"
	_, err := compose(aMachine(false), "x", &fnv1.Resource{Resource: structOf(t, raw)})
	if err == nil || !strings.Contains(err.Error(), `metadata.namespace: invalid value "kube-system"`) {
		t.Errorf("error %v", err)
	}
}
