// Package render renders an XR with Crossplane's own reconciler. The Crossplane binary runs it with
// only the given objects, without an API server.
package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	renderv1alpha1 "github.com/crossplane/crossplane/v2/proto/render/v1alpha1"
)

// compositionResourceName is the annotation in which Crossplane stores a function's name for a
// composed resource.
const compositionResourceName = "crossplane.io/composition-resource-name"

// Input is the input of a render.
type Input struct {
	// XR and Composition are required. XRD is required only for XRs of scope LegacyCluster.
	XR, Composition, XRD *unstructured.Unstructured
	// Observed are composed resources of an earlier render. They need the
	// annotation crossplane.io/composition-resource-name and the XR as controller.
	Observed []*unstructured.Unstructured
	// Required are objects that the functions may request.
	Required []*unstructured.Unstructured
	// RequiredSchemas are OpenAPI v3 documents.
	RequiredSchemas []*unstructured.Unstructured
	// Functions are the addresses of functions by their names in the Composition. A function
	// without an address of its own has the one under "".
	Functions map[string]string
	// Context of the pipeline at its start. If it is not nil, the Output has the context at the end
	// of the pipeline. The Machine controller passes facts to the pipeline in the context, and
	// reads decisions from it.
	Context map[string]any
}

// Output is the effects that Crossplane would have.
type Output struct {
	// Composite is the XR with its status.
	Composite map[string]any `json:"composite"`
	// Composed would be applied, and Deleted would be deleted. Both are ordered by the functions'
	// names for them.
	Composed []map[string]any `json:"composed,omitempty"`
	Deleted  []map[string]any `json:"deleted,omitempty"`
	Events   []Event          `json:"events,omitempty"`
	// RequiredResources and RequiredSchemas are the requests of the functions.
	RequiredResources []map[string]any `json:"requiredResources,omitempty"`
	RequiredSchemas   []map[string]any `json:"requiredSchemas,omitempty"`
	// Context at the end of the pipeline, if the Input has a Context.
	Context map[string]any `json:"context,omitempty"`
}

// An Event is an event that would be emitted for the XR.
type Event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Run renders with the Crossplane binary. If the pipeline ends with a fatal result, Run returns
// both an Output and an error.
func Run(ctx context.Context, binary string, in Input) (*Output, error) {
	if in.Context == nil {
		return run(ctx, binary, in)
	}
	in, served, err := withContext(in)
	if err != nil {
		return nil, err
	}
	defer served.stop()
	out, err := run(ctx, binary, in)
	if out != nil {
		out.Context = served.result()
	}
	return out, err
}

func run(ctx context.Context, binary string, in Input) (*Output, error) {
	req, err := request(in)
	if err != nil {
		return nil, err
	}
	b, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "internal", "render")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(b), &out, &log
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("crossplane internal render: %w: %s", err, strings.TrimSpace(log.String()))
		if !errors.As(err, new(*exec.ExitError)) || out.Len() == 0 {
			return nil, err
		}
	}
	rsp := &renderv1alpha1.RenderResponse{}
	if uerr := proto.Unmarshal(out.Bytes(), rsp); uerr != nil {
		return nil, errors.Join(err, uerr)
	}
	return output(rsp.GetComposite()), err
}

func request(in Input) (*renderv1alpha1.RenderRequest, error) {
	c := &renderv1alpha1.CompositeInput{}
	for _, one := range []struct {
		field    string
		required bool
		object   *unstructured.Unstructured
		into     **structpb.Struct
	}{
		{"xr", true, in.XR, &c.CompositeResource},
		{"composition", true, in.Composition, &c.Composition},
		{"xrd", false, in.XRD, &c.CompositeResourceDefinition},
	} {
		if one.object == nil {
			if one.required {
				return nil, fmt.Errorf("%s: required", one.field)
			}
			continue
		}
		s, err := structpb.NewStruct(one.object.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.field, err)
		}
		*one.into = s
	}
	for _, many := range []struct {
		field   string
		objects []*unstructured.Unstructured
		into    *[]*structpb.Struct
	}{
		{"observed", in.Observed, &c.ObservedResources},
		{"required", in.Required, &c.RequiredResources},
		{"required-schema", in.RequiredSchemas, &c.RequiredSchemas},
	} {
		for _, o := range many.objects {
			s, err := structpb.NewStruct(o.Object)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", many.field, o.GetName(), err)
			}
			*many.into = append(*many.into, s)
		}
	}
	var err error
	if c.Functions, err = functions(in.Composition, in.Functions); err != nil {
		return nil, err
	}
	return &renderv1alpha1.RenderRequest{
		Meta:  &renderv1alpha1.RequestMeta{},
		Input: &renderv1alpha1.RenderRequest_Composite{Composite: c},
	}, nil
}

// functions returns every function of the Composition's pipeline with its address.
func functions(composition *unstructured.Unstructured, addresses map[string]string) ([]*renderv1alpha1.FunctionInput, error) {
	steps, _, err := unstructured.NestedSlice(composition.Object, "spec", "pipeline")
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	var names []string
	for i, step := range steps {
		step, _ := step.(map[string]any)
		name, _, _ := unstructured.NestedString(step, "functionRef", "name")
		if name == "" {
			return nil, fmt.Errorf("composition: spec.pipeline[%d].functionRef.name: required", i)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var inputs []*renderv1alpha1.FunctionInput
	for _, name := range names {
		address := cmp.Or(addresses[name], addresses[""])
		if address == "" {
			return nil, fmt.Errorf("function %q of the Composition: no address is given", name)
		}
		inputs = append(inputs, &renderv1alpha1.FunctionInput{Name: name, Address: address})
	}
	return inputs, nil
}

func output(c *renderv1alpha1.CompositeOutput) *Output {
	out := &Output{
		Composite:         c.GetCompositeResource().AsMap(),
		Composed:          maps(c.GetComposedResources()),
		Deleted:           maps(c.GetDeletedResources()),
		RequiredResources: maps(c.GetRequiredResources()),
		RequiredSchemas:   maps(c.GetRequiredSchemas()),
	}
	for _, e := range c.GetEvents() {
		out.Events = append(out.Events, Event{Type: e.GetType(), Reason: e.GetReason(), Message: e.GetMessage()})
	}
	slices.SortStableFunc(out.Composed, byName)
	slices.SortStableFunc(out.Deleted, byName)
	stabilize(out.Composite)
	for _, o := range out.Composed {
		stabilize(o)
	}
	return out
}

func maps(structs []*structpb.Struct) []map[string]any {
	var all []map[string]any
	for _, s := range structs {
		all = append(all, s.AsMap())
	}
	return all
}

func byName(a, b map[string]any) int {
	x, y := unstructured.Unstructured{Object: a}, unstructured.Unstructured{Object: b}
	return cmp.Or(
		cmp.Compare(x.GetAnnotations()[compositionResourceName], y.GetAnnotations()[compositionResourceName]),
		cmp.Compare(x.GetKind(), y.GetKind()), cmp.Compare(x.GetName(), y.GetName()))
}

// stabilize removes the times of conditions, which differ between runs.
func stabilize(object map[string]any) {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			delete(c, "lastTransitionTime")
		}
	}
	if conditions != nil {
		// It was a slice before, so it can be set.
		_ = unstructured.SetNestedSlice(object, conditions, "status", "conditions")
	}
}
