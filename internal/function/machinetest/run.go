package machinetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// A Result is the decision of a run of the pipeline.
type Result struct {
	Desired *fnv1.State
	// Bootstrap and VM are the results of the steps in the context.
	Bootstrap plan.Bootstrap
	VM        plan.VM
	// Node has the parameters for the Node, nil if there are none.
	Node *workernode.Parameters
	// Conditions of the Machine by type.
	Conditions map[string]*fnv1.Condition
	Events     []*fnv1.Result
	TTL        time.Duration
	// Requests of all calls of steps.
	Requests []*fnv1.RunFunctionRequest
	// Requirements of the last call of each step.
	Requirements []string
}

// calls of a run.
type calls struct {
	requests []*fnv1.RunFunctionRequest
	// required has the requirements of the last responses, by step.
	required map[string]*fnv1.Requirements
}

// Pipe runs the pipeline once, without an effect on the world. It makes each call twice: equal
// requests must have equal responses.
func (p *Plane) Pipe() (Result, error) {
	p.t.Helper()
	p.calls = calls{required: map[string]*fnv1.Requirements{}}
	p.observeNode()
	r, err := p.runner.Run(context.Background(), p.steps(), p.input())
	out := Result{Desired: r.Desired, Conditions: map[string]*fnv1.Condition{}, Events: r.Results, TTL: r.TTL, Requests: p.requests}
	for _, c := range r.Conditions {
		out.Conditions[c.GetType()] = c
	}
	for _, s := range p.steps() {
		for name := range p.required[s.Name].GetResources() {
			out.Requirements = append(out.Requirements, name)
		}
		for name := range p.required[s.Name].GetSchemas() {
			out.Requirements = append(out.Requirements, name)
		}
	}
	if err != nil {
		return out, err
	}
	node := workernode.WorkerNode{}
	for key, into := range map[string]any{step.ContextBootstrap: &out.Bootstrap, step.ContextVM: &out.VM, step.ContextNode: &node} {
		if _, err := step.Context(&fnv1.RunFunctionRequest{Context: r.Context}, key, into); err != nil {
			return out, err
		}
	}
	if node.Parameters.ProviderID != "" {
		out.Node = &node.Parameters
	}
	return out, nil
}

func (p *Plane) steps() []pipeline.Step {
	var out []pipeline.Step
	for i, input := range p.Pipeline {
		out = append(out, pipeline.Step{Name: strconv.Itoa(i), Function: "drover", Input: input})
	}
	return out
}

// input returns the input of the pipeline, as the Machine's controller makes it.
func (p *Plane) input() pipeline.Input {
	p.t.Helper()
	s := &fnv1.State{
		Composite: &fnv1.Resource{Resource: asStruct(p.t, p.Machine.Object)},
		Resources: map[string]*fnv1.Resource{},
	}
	for role, o := range p.Composed {
		if !slices.Contains(p.Forgotten, role) {
			s.Resources[role] = &fnv1.Resource{Resource: asStruct(p.t, o.Object)}
		}
	}
	if details, ok := p.Connection[machinev1alpha1.ResourceUserData]; ok {
		secret := asStruct(p.t, map[string]any{"apiVersion": "v1", "kind": "Secret"})
		s.Resources[machinev1alpha1.ResourceUserData] = &fnv1.Resource{Resource: secret, ConnectionDetails: details}
	}
	seeds := map[string]any{step.ContextJoin: p.join}
	if p.Node != nil {
		seeds[step.ContextNode] = p.Node
	}
	return pipeline.Input{Observed: s, Context: asStruct(p.t, seeds)}
}

func (p *Plane) local(s pipeline.Step) (pipeline.RunFunc, bool) {
	return func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		req.Meta = &fnv1.RequestMeta{Capabilities: p.Capabilities}
		p.requests = append(p.requests, proto.CloneOf(req))
		again := proto.CloneOf(req)
		rsp, err := p.Run(p.Now, req)
		if err != nil {
			return nil, err
		}
		if same, err := p.Run(p.Now, again); err != nil || !proto.Equal(rsp, same) {
			p.t.Errorf("the same request has two answers:\n%v\n%v\n%v", rsp, same, err)
		}
		p.required[s.Name] = rsp.GetRequirements()
		return rsp, nil
	}, true
}

// Fetch returns the object that a selector matches by name.
func (p *Plane) Fetch(_ context.Context, s *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	out := &fnv1.Resources{}
	all := append(slices.Clone(p.Others), p.Cluster)
	for _, c := range p.Composed {
		all = append(all, c)
	}
	for _, o := range all {
		if o.GetAPIVersion() == s.GetApiVersion() && o.GetKind() == s.GetKind() && o.GetNamespace() == s.GetNamespace() && o.GetName() == s.GetMatchName() {
			out.Items = append(out.Items, &fnv1.Resource{Resource: asStruct(p.t, o.Object)})
		}
	}
	return out, nil
}

// Schema returns the schema of a kind, nil if it is not installed.
func (p *Plane) Schema(_ context.Context, gvk schema.GroupVersionKind) (*structpb.Struct, error) {
	return p.Schemas[fmt.Sprintf("%s %s", gvk.GroupVersion(), gvk.Kind)], nil
}
