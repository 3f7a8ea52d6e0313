package pipeline

import (
	"encoding/json"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Step is one step of a pipeline. Runs share it and never change it.
type Step struct {
	// Name of the step, unique in its pipeline.
	Name string
	// Function is the name of the Function that the step calls.
	Function string
	// Input of the function, nil if the step has none.
	Input *structpb.Struct
	// Credentials that the function gets.
	Credentials []Credential
	// RequiredResources are read before the function is called.
	RequiredResources []RequiredResource
	// RequiredSchemas are read before the function is called.
	RequiredSchemas []RequiredSchema
}

// A Credential is a Secret whose data a function gets under a name.
type Credential struct {
	Name   string
	Secret types.NamespacedName
}

// A RequiredResource selects resources that a function gets under a name.
type RequiredResource struct {
	Name     string
	Selector *fnv1.ResourceSelector
}

// A RequiredSchema selects a kind whose schema a function gets under a name.
type RequiredSchema struct {
	Name     string
	Selector *fnv1.SchemaSelector
}

// pipelineStep is an item of a CompositionRevision's spec.pipeline.
type pipelineStep struct {
	Step        string `json:"step"`
	FunctionRef struct {
		Name string `json:"name"`
	} `json:"functionRef"`
	Input       json.RawMessage `json:"input"`
	Credentials []struct {
		Name      string `json:"name"`
		Source    string `json:"source"`
		SecretRef *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"secretRef"`
	} `json:"credentials"`
	Requirements struct {
		RequiredResources []requiredResource `json:"requiredResources"`
		RequiredSchemas   []struct {
			RequirementName string `json:"requirementName"`
			APIVersion      string `json:"apiVersion"`
			Kind            string `json:"kind"`
		} `json:"requiredSchemas"`
	} `json:"requirements"`
}

type requiredResource struct {
	RequirementName string            `json:"requirementName"`
	APIVersion      string            `json:"apiVersion"`
	Kind            string            `json:"kind"`
	Namespace       *string           `json:"namespace"`
	Name            *string           `json:"name"`
	MatchLabels     map[string]string `json:"matchLabels"`
}

// StepsOf returns the steps of a CompositionRevision. Its error names the field.
func StepsOf(revision *unstructured.Unstructured) ([]Step, error) {
	path := field.NewPath("spec", "pipeline")
	value, _, err := unstructured.NestedFieldNoCopy(revision.Object, "spec", "pipeline")
	if err != nil {
		return nil, field.Invalid(path, "", err.Error())
	}
	items, ok := value.([]any)
	if !ok || len(items) == 0 {
		return nil, field.Required(path, "a CompositionRevision has at least one step")
	}
	steps := make([]Step, 0, len(items))
	names := map[string]bool{}
	for i, item := range items {
		s, err := stepOf(path.Index(i), item)
		if err != nil {
			return nil, err
		}
		if names[s.Name] {
			return nil, field.Duplicate(path.Index(i).Child("step"), s.Name)
		}
		names[s.Name] = true
		steps = append(steps, s)
	}
	return steps, nil
}

func stepOf(path *field.Path, item any) (Step, error) {
	b, err := json.Marshal(item)
	if err != nil {
		return Step{}, fmt.Errorf("%s: %w", path, err)
	}
	p := pipelineStep{}
	if err := json.Unmarshal(b, &p); err != nil {
		return Step{}, fmt.Errorf("%s: %w", path, err)
	}
	if p.Step == "" {
		return Step{}, field.Required(path.Child("step"), "a step has a name")
	}
	if p.FunctionRef.Name == "" {
		return Step{}, field.Required(path.Child("functionRef", "name"), "a step calls a Function")
	}
	input, err := p.input()
	if err != nil {
		return Step{}, fmt.Errorf("%s: %w", path.Child("input"), err)
	}
	return Step{
		Name: p.Step, Function: p.FunctionRef.Name, Input: input, Credentials: p.credentials(),
		RequiredResources: p.requiredResources(), RequiredSchemas: p.requiredSchemas(),
	}, nil
}

func (p pipelineStep) input() (*structpb.Struct, error) {
	if len(p.Input) == 0 || string(p.Input) == "null" {
		return nil, nil
	}
	s := &structpb.Struct{}
	return s, s.UnmarshalJSON(p.Input)
}

// credentials returns the credentials from Secrets. Crossplane too skips other sources.
func (p pipelineStep) credentials() []Credential {
	var credentials []Credential
	for _, c := range p.Credentials {
		if c.Source == "Secret" && c.SecretRef != nil {
			credentials = append(credentials, Credential{
				Name:   c.Name,
				Secret: types.NamespacedName{Namespace: c.SecretRef.Namespace, Name: c.SecretRef.Name},
			})
		}
	}
	return credentials
}

func (p pipelineStep) requiredResources() []RequiredResource {
	var resources []RequiredResource
	for _, r := range p.Requirements.RequiredResources {
		resources = append(resources, RequiredResource{Name: r.RequirementName, Selector: r.selector()})
	}
	return resources
}

// selector prefers the name. Without name and labels it selects all resources of the kind.
func (r requiredResource) selector() *fnv1.ResourceSelector {
	s := &fnv1.ResourceSelector{ApiVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace}
	switch {
	case r.Name != nil:
		s.Match = &fnv1.ResourceSelector_MatchName{MatchName: *r.Name}
	case r.MatchLabels != nil:
		s.Match = &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: r.MatchLabels}}
	}
	return s
}

func (p pipelineStep) requiredSchemas() []RequiredSchema {
	var schemas []RequiredSchema
	for _, s := range p.Requirements.RequiredSchemas {
		schemas = append(schemas, RequiredSchema{
			Name:     s.RequirementName,
			Selector: &fnv1.SchemaSelector{ApiVersion: s.APIVersion, Kind: s.Kind},
		})
	}
	return schemas
}
