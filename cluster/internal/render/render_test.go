package render

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/crossplane/v2/proto/fn/v1"
	renderv1alpha1 "github.com/crossplane/crossplane/v2/proto/render/v1alpha1"
)

func object(t *testing.T, s string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(s), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

const composition = `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: c}
spec:
  pipeline:
  - {step: one, functionRef: {name: ours}}
  - {step: two, functionRef: {name: ours}}
  - {step: three, functionRef: {name: theirs}}
`

func TestEveryFunctionOfThePipelineGetsItsAddress(t *testing.T) {
	for _, tc := range []struct {
		name      string
		addresses map[string]string
		want      []string
		err       string
	}{
		{"OneAddressForAll", map[string]string{"": "a:1"}, []string{"ours=a:1", "theirs=a:1"}, ""},
		{"ANamedAddressWins", map[string]string{"": "a:1", "theirs": "b:2"}, []string{"ours=a:1", "theirs=b:2"}, ""},
		{"AMissingAddressIsAnError", map[string]string{"ours": "a:1"}, nil, `"theirs"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inputs, err := functions(object(t, composition), tc.addresses)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want an error with %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range inputs {
				got = append(got, i.GetName()+"="+i.GetAddress())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestOutputIsTheSameForTheSameResult(t *testing.T) {
	toStruct := func(s string) *structpb.Struct {
		st, err := structpb.NewStruct(object(t, s).Object)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	a := `{kind: A, metadata: {name: x, annotations: {crossplane.io/composition-resource-name: a}}}`
	b := `{kind: A, metadata: {name: w, annotations: {crossplane.io/composition-resource-name: b}}}`
	render := func(time string, composed ...string) string {
		c := &renderv1alpha1.CompositeOutput{CompositeResource: toStruct(`{status: {conditions: [{type: Ready, lastTransitionTime: "` + time + `"}]}}`)}
		for _, s := range composed {
			c.ComposedResources = append(c.ComposedResources, toStruct(s))
		}
		out, err := yaml.Marshal(output(c))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first, second := render("2026-01-01T00:00:00Z", a, b), render("2027-01-01T00:00:00Z", b, a)
	if first != second {
		t.Errorf("got\n%s\nand\n%s", first, second)
	}
	if !strings.Contains(first, "type: Ready") {
		t.Errorf("the condition itself is gone:\n%s", first)
	}
}

func TestWithoutAnXRNothingIsRendered(t *testing.T) {
	if _, err := request(Input{Composition: object(t, composition)}); err == nil || !strings.Contains(err.Error(), "xr") {
		t.Errorf("got %v, want an error that names xr", err)
	}
}

func TestTheStepsOfTheContextStandAroundThePipeline(t *testing.T) {
	in, served, err := withContext(Input{
		Composition: object(t, composition), Functions: map[string]string{"": "a:1"}, Context: map[string]any{"k": "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer served.stop()
	steps, _, err := unstructured.NestedSlice(in.Composition.Object, "spec", "pipeline")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.(map[string]any)["step"].(string))
	}
	if want := []string{stepContextBefore, "one", "two", "three", stepContextAfter}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	inputs, err := functions(in.Composition, in.Functions)
	if err != nil || len(inputs) != 3 || inputs[0].GetAddress() != served.address || inputs[1].GetAddress() != "a:1" {
		t.Errorf("functions %v, %v", inputs, err)
	}

	call := func(step string, context map[string]any) map[string]any {
		t.Helper()
		given, err := structpb.NewStruct(context)
		if err != nil {
			t.Fatal(err)
		}
		input, err := structpb.NewStruct(map[string]any{"step": step})
		if err != nil {
			t.Fatal(err)
		}
		rsp, err := served.RunFunction(t.Context(), &fnv1.RunFunctionRequest{Input: input, Context: given})
		if err != nil {
			t.Fatal(err)
		}
		return rsp.GetContext().AsMap()
	}
	if got := call(stepContextBefore, nil); got["k"] != "v" {
		t.Errorf("the pipeline begins with %v", got)
	}
	call(stepContextAfter, map[string]any{"k": "w"})
	if got := served.result(); got["k"] != "w" {
		t.Errorf("the pipeline ends with %v", got)
	}
}
