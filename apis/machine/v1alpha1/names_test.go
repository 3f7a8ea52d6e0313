package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/schematest"
)

// TestNamesThatBecomeLabelsAreRefusedIfTheyAreTooLong checks the kinds whose names become labels of
// the objects below them, host names, or names at clouds. A longer name is refused at once, and not after the finalizer of the object is set.
func TestNamesThatBecomeLabelsAreRefusedIfTheyAreTooLong(t *testing.T) {
	kinds := map[string]struct{ file, spec string }{
		"Machine":           {machineCRD, "{classRef: {name: small}, version: v1.35.4}"},
		"MachineSet":        {setXRD, "{replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {classRef: {name: small}, version: v1.35.4}}}"},
		"MachineDeployment": {deploymentXRD, "{replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {classRef: {name: small}, version: v1.35.4}}}"},
		"OrphanCollector":   {collectorXRD, "{policy: Delete, namespace: crossplane-system}"},
		"NodePool":          {"../xrds/machine.drover.dev_nodepools.yaml", "{class: small, size: 1}"},
	}
	object := func(kind, spec, namespace, name string) map[string]any {
		o := map[string]any{}
		text := fmt.Sprintf("apiVersion: machine.drover.dev/v1alpha1\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: %s\n", kind, namespace, name, spec)
		b, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = json.Unmarshal(b, &o) // Numbers are integers, as in the API server.
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	long := strings.Repeat("lone.", 12) + "end"
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) {
			schema := schematest.Load(t, k.file)
			for _, namespace := range []string{"default", strings.Repeat("n", 63)} {
				for _, name := range []string{long, long + "s", long + strings.Repeat("s", 190)} {
					errs := schema.Validate(object(kind, k.spec, namespace, name), nil)
					isRefused := len(errs) > 0 && strings.Contains(errs.ToAggregate().Error(), "metadata.name")
					if len(errs) > 0 && !isRefused || isRefused != (len(name) > 63) {
						t.Errorf("a name of %d characters, in a namespace of %d: errors %v", len(name), len(namespace), errs)
					}
				}
			}
			old := object(kind, k.spec, "default", long)
			schema.Validate(old, nil) // It has the defaults.
			now := runtime.DeepCopyJSON(old)
			for _, o := range []map[string]any{old, now} {
				if err := unstructured.SetNestedField(o, long+"s", "metadata", "name"); err != nil {
					t.Fatal(err)
				}
			}
			// A Machine that exists must lose its finalizers whatever its name is.
			if errs := schema.Validate(now, old); kind == "Machine" && len(errs) > 0 {
				t.Errorf("a change of an object that exists: errors %v", errs)
			}
		})
	}
}
