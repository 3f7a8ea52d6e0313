package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
)

const clusterClass = `
apiVersion: machine.drover.dev/v1alpha1
kind: ClusterMachineClass
metadata: {name: small}
spec:
  allowedNamespaces: [team-a]
  provider: local
  forProvider: {image: debian-12, size: small, anything: [1, {a: b}]}
`

// TestAClusterMachineClassIsImmutableButForItsNamespaces adds, changes and removes each field
// of the spec, so that one that is new is not forgotten.
func TestAClusterMachineClassIsImmutableButForItsNamespaces(t *testing.T) {
	changes := map[string]struct{ was, is any }{
		"provider":           {"local", "hcloud"},
		"forProvider":        {map[string]any{"a": []any{int64(1)}}, map[string]any{"a": []any{int64(2)}}},
		"instanceTypes":      {[]any{map[string]any{"name": "a", "forProvider": map[string]any{"cores": int64(2)}}}, []any{map[string]any{"name": "a", "forProvider": map[string]any{"cores": int64(4)}}}},
		"allocationStrategy": {"Prioritized", "LowestPrice"},
		"companions":         {map[string]any{"nic": map[string]any{"forProvider": map[string]any{"a": "b"}}}, map[string]any{"nic": map[string]any{"forProvider": map[string]any{"a": "c"}}}},
		"providerConfigRef":  {map[string]any{"kind": "ProviderConfig", "name": "a"}, map[string]any{"kind": "ProviderConfig", "name": "b"}},
		"operatingSystem":    {map[string]any{"profile": "acme-debian-12-v1"}, map[string]any{"profile": "acme-debian-12-v2"}},
		"kubelet":            {map[string]any{"configuration": map[string]any{"podsPerCore": int64(1)}}, map[string]any{"configuration": map[string]any{"podsPerCore": int64(2)}}},
		"userData":           {map[string]any{"secretRef": map[string]any{"name": "a", "namespace": "b"}}, map[string]any{"secretRef": map[string]any{"name": "a", "namespace": "c"}}},
		"nodeCapacity":       {map[string]any{"capacity": map[string]any{"cpu": int64(1)}}, map[string]any{"capacity": map[string]any{"cpu": int64(2)}}},
	}
	s := schematest.Load(t, clusterCRD)
	with := func(field string, value any) map[string]any {
		obj := parse(t, clusterClass)
		if value != nil {
			setPath(obj, "spec."+field, value)
		}
		if field == "allocationStrategy" {
			setPath(obj, "spec.instanceTypes", []any{map[string]any{"name": "a", "price": "0.1"}})
		}
		return obj
	}
	for field := range reflect.TypeFor[v1alpha1.MachineClassSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		change, ok := changes[name]
		if !ok {
			t.Errorf("field %s is not tried", name)
			continue
		}
		for what, tc := range map[string]struct{ was, is any }{
			"Changed": change, "Added": {nil, change.is}, "Removed": {change.is, nil}, "Kept": {change.was, change.was},
		} {
			t.Run(name+what, func(t *testing.T) {
				old, obj := with(name, tc.was), with(name, tc.is)
				if errs := s.Validate(old, nil); len(errs) > 0 {
					t.Fatal(errs.ToAggregate())
				}
				err := s.Validate(obj, old).ToAggregate()
				if refused := err != nil && strings.Contains(err.Error(), "a ClusterMachineClass is immutable but for allowedNamespaces"); refused == (what == "Kept") {
					t.Errorf("the update fails with %v", err)
				}
			})
		}
	}
	for what, value := range map[string]any{"Added": []any{"team-a", "team-b", "*"}, "Removed": []any{}} {
		t.Run("allowedNamespaces"+what, func(t *testing.T) {
			old := with("", nil)
			_ = s.Validate(old, nil)
			if errs := s.Validate(with("allowedNamespaces", value), old); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}

func TestReferencesToClasses(t *testing.T) {
	cases := map[string]struct {
		ref         v1alpha1.ClassReference
		key, string string
	}{
		"WithoutAKind": {v1alpha1.ClassReference{Name: "small"}, "small", `MachineClass "small"`},
		"OfANamespace": {v1alpha1.ClassReference{Kind: "MachineClass", Name: "small"}, "small", `MachineClass "small"`},
		"OfTheCluster": {v1alpha1.ClassReference{Kind: "ClusterMachineClass", Name: "small"}, "ClusterMachineClass/small", `ClusterMachineClass "small"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.ref.Key() != tc.key || tc.ref.String() != tc.string {
				t.Errorf("got %s and %s, want %s and %s", tc.ref.Key(), tc.ref, tc.key, tc.string)
			}
			for other, o := range cases {
				if equal := tc.ref.Equal(o.ref); equal != (tc.key == o.key) {
					t.Errorf("equal to %s: %v", other, equal)
				}
			}
		})
	}
}
