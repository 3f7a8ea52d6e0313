package machinetest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
)

// inputs of steps, which no API server serves.
var inputs = map[string]func() any{
	"Orphans":        func() any { return &fn.Orphans{} },
	"Pool":           func() any { return &fn.Pool{} },
	"Safety":         func() any { return &fn.Safety{} },
	"Rollout":        func() any { return &fn.Rollout{} },
	"Replicas":       func() any { return &fn.Replicas{} },
	"Bootstrap":      func() any { return &fn.Bootstrap{} },
	"Infrastructure": func() any { return &fn.Infrastructure{} },
	"Lifecycle":      func() any { return &fn.Lifecycle{} },
}

// kindOf returns an empty object of a kind of the files that users copy, or of those in the package.
func kindOf(t *testing.T, gvk schema.GroupVersionKind) any {
	t.Helper()
	if into, ok := inputs[gvk.Kind]; ok && gvk.Group == "fn.drover.dev" {
		return into()
	}
	o, err := schematest.Scheme(t).New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// strict rejects unknown fields. Crossplane ignores them, and so does the API server unless it is
// asked to validate fields.
func strict(t *testing.T, where string, m map[string]any) {
	t.Helper()
	u := unstructured.Unstructured{Object: m}
	// Crossplane adds this to the spec of each composite resource.
	unstructured.RemoveNestedField(m, "spec", "crossplane")
	b, err := yaml.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, kindOf(t, u.GroupVersionKind())); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", dir, files, err)
	}
	return files
}

func TestExamplesHaveNoUnknownFields(t *testing.T) {
	for _, f := range filesOf(t, "examples/*") {
		o := readYAML(t, f)
		// Kinds of other projects are theirs to check, and a file of settings has no apiVersion.
		switch apiVersion, _ := o["apiVersion"].(string); {
		case strings.HasPrefix(apiVersion, "karpenter.drover.dev/"):
			strictByCRD(t, f, karpenterCRD, o)
		case strings.Contains(apiVersion, ".drover.dev/"):
			strict(t, f, o)
		}
	}
}

// karpenterCRD is in a module of its own, whose types this one does not import.
const karpenterCRD = root + "karpenter/apis/crds/karpenter.drover.dev_drovernodeclasses.yaml"

// strictByCRD rejects errors and fields that the schema of a kind does not have.
func strictByCRD(t *testing.T, where, crd string, m map[string]any) {
	t.Helper()
	pruned := runtime.DeepCopyJSON(m)
	if errs := schematest.Load(t, crd).Validate(pruned, nil); len(errs) > 0 {
		t.Errorf("%s: %v", where, errs.ToAggregate())
	}
	for _, field := range missing(m, pruned, "") {
		t.Errorf("%s: unknown field %s", where, field)
	}
}

// missing returns the fields of an object that another one does not have.
func missing(of, in any, path string) []string {
	var out []string
	switch of := of.(type) {
	case map[string]any:
		in, _ := in.(map[string]any)
		for k, v := range of {
			if _, ok := in[k]; !ok {
				out = append(out, path+"."+k)
				continue
			}
			out = append(out, missing(v, in[k], path+"."+k)...)
		}
	case []any:
		in, _ := in.([]any)
		for i := range min(len(of), len(in)) {
			out = append(out, missing(of[i], in[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return out
}

func TestAFieldThatAKindOfKarpenterLacksIsFound(t *testing.T) {
	pruned := map[string]any{"spec": map[string]any{"classes": []any{map[string]any{"name": "a"}}}}
	got := missing(map[string]any{"spec": map[string]any{"classes": []any{map[string]any{"name": "a", "prize": "1"}}}}, pruned, "")
	if len(got) != 1 || got[0] != ".spec.classes[0].prize" {
		t.Errorf("found %q", got)
	}
}

func TestCompositionsHaveInputsWithoutUnknownFields(t *testing.T) {
	for _, f := range filesOf(t, "apis/machine/compositions") {
		for _, s := range inputsOf(t, f) {
			strict(t, f, s.AsMap())
		}
	}
}

func TestTheClassOfTheExamplesMakesAMachine(t *testing.T) {
	p := newPlane(t)
	c := &unstructured.Unstructured{Object: readYAML(t, root+"examples/local/machineclass.yaml")}
	c.SetNamespace(p.Machine.GetNamespace())
	p.Others[0] = c
	p.ToRunning()
}
