package pipeline

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func revision(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	body := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &body); err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = body
	return u
}

func mustStruct(t testing.TB, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStepsOfReadsAllThatAStepHas(t *testing.T) {
	got, err := StepsOf(revision(t, `
pipeline:
- step: bootstrap
  functionRef: {name: function-drover}
  input: {apiVersion: fn.drover.dev/v1alpha1, kind: Bootstrap, minutes: 3}
  credentials:
  - {name: none, source: None}
  - {name: incomplete, source: Secret}
  - {name: cloud, source: Secret, secretRef: {namespace: crossplane-system, name: cloud-token}}
  requirements:
    requiredResources:
    - {requirementName: one, apiVersion: v1, kind: ConfigMap, namespace: ns, name: cm}
    - {requirementName: some, apiVersion: v1, kind: ConfigMap, matchLabels: {a: b}}
    - {requirementName: all, apiVersion: v1, kind: Node}
    requiredSchemas:
    - {requirementName: server, apiVersion: hcloud.example.org/v1, kind: Server}
- step: plain
  functionRef: {name: function-auto-ready}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{
		{
			Name: "bootstrap", Function: "function-drover",
			Input:       mustStruct(t, map[string]any{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Bootstrap", "minutes": 3}),
			Credentials: []Credential{{Name: "cloud", Secret: types.NamespacedName{Namespace: "crossplane-system", Name: "cloud-token"}}},
			RequiredResources: []RequiredResource{
				{Name: "one", Selector: &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Namespace: ptr.To("ns"), Match: &fnv1.ResourceSelector_MatchName{MatchName: "cm"}}},
				{Name: "some", Selector: &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"a": "b"}}}}},
				{Name: "all", Selector: &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Node"}},
			},
			RequiredSchemas: []RequiredSchema{{Name: "server", Selector: &fnv1.SchemaSelector{ApiVersion: "hcloud.example.org/v1", Kind: "Server"}}},
		},
		{Name: "plain", Function: "function-auto-ready"},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("StepsOf: -want, +got:\n%s", diff)
	}
}

func TestStepsOfNamesTheFieldThatIsWrong(t *testing.T) {
	cases := map[string]struct {
		spec string
		want string
	}{
		"NoPipeline":             {spec: `{}`, want: "spec.pipeline: Required"},
		"EmptyPipeline":          {spec: `pipeline: []`, want: "spec.pipeline: Required"},
		"PipelineIsNoList":       {spec: `pipeline: {a: b}`, want: "spec.pipeline: Required"},
		"StepIsNoObject":         {spec: `pipeline: [1]`, want: "spec.pipeline[0]"},
		"StepWithoutName":        {spec: `pipeline: [{functionRef: {name: f}}]`, want: "spec.pipeline[0].step: Required"},
		"StepWithoutFunction":    {spec: `pipeline: [{step: a, functionRef: {name: f}}, {step: b}]`, want: "spec.pipeline[1].functionRef.name: Required"},
		"FunctionNameIsNoString": {spec: `pipeline: [{step: a, functionRef: {name: 1}}]`, want: "functionRef.name"},
		"TwoStepsOfOneName":      {spec: `pipeline: [{step: a, functionRef: {name: f}}, {step: a, functionRef: {name: f}}]`, want: "spec.pipeline[1].step: Duplicate"},
		"InputIsNoObject":        {spec: `pipeline: [{step: a, functionRef: {name: f}, input: [1]}]`, want: "spec.pipeline[0].input"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := StepsOf(revision(t, tc.spec))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("StepsOf: want an error with %q, got %v", tc.want, err)
			}
		})
	}
}

func TestStepCacheDecodesAGenerationOnce(t *testing.T) {
	c := NewStepCache(2)
	r := revision(t, `pipeline: [{step: a, functionRef: {name: f}}]`)
	r.SetUID("u")
	r.SetGeneration(1)
	first, err := c.StepsOf(r)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.StepsOf(r)
	if err != nil {
		t.Fatal(err)
	}
	if &first[0] != &second[0] {
		t.Error("the steps of one generation are decoded twice")
	}
	changed := revision(t, `pipeline: [{step: b, functionRef: {name: f}}]`)
	changed.SetUID("u")
	changed.SetGeneration(2)
	third, err := c.StepsOf(changed)
	if err != nil {
		t.Fatal(err)
	}
	if third[0].Name != "b" {
		t.Errorf("a new generation has step %q, want b", third[0].Name)
	}
}
