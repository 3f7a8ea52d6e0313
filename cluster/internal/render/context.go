package render

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fnv1 "github.com/crossplane/crossplane/v2/proto/fn/v1"
)

// Names of the steps around the pipeline, and of the function that serves them.
const (
	stepContextBefore = "render-context-before"
	stepContextAfter  = "render-context-after"
	contextFunction   = "render-context"
)

// maxTTL is the TTL of a response: the steps around the pipeline request no earlier reconcile.
const maxTTL = 24 * time.Hour

// A contextServer is a function with two steps: the first step, before the pipeline, sets the
// context, and the last step, after the pipeline, reads it. It is needed because a request to
// render has no field for a context.
type contextServer struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	address string
	stop    func()
	before  *structpb.Struct

	mu    sync.Mutex
	after map[string]any
}

// serveContext listens until stop is called.
func serveContext(before map[string]any) (*contextServer, error) {
	s, err := structpb.NewStruct(before)
	if err != nil {
		return nil, fmt.Errorf("context: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := grpc.NewServer()
	c := &contextServer{address: l.Addr().String(), stop: g.Stop, before: s}
	fnv1.RegisterFunctionRunnerServiceServer(g, c)
	go func() { _ = g.Serve(l) }()
	return c, nil
}

// RunFunction sets the context in the first step, and returns the desired state unchanged in the
// last one.
func (c *contextServer) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Ttl: durationpb.New(maxTTL)},
		Desired: req.GetDesired(),
		Context: req.GetContext(),
	}
	if req.GetInput().GetFields()["step"].GetStringValue() == stepContextBefore {
		rsp.Context = c.before
		return rsp, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = req.GetContext().AsMap()
	return rsp, nil
}

// around returns the Composition with the two steps around its pipeline.
func (c *contextServer) around(composition *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := composition.DeepCopy()
	steps, _, err := unstructured.NestedSlice(out.Object, "spec", "pipeline")
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	step := func(name string) any {
		return map[string]any{
			"step": name, "functionRef": map[string]any{"name": contextFunction},
			"input": map[string]any{"apiVersion": "render.drover.dev/v1", "kind": "Context", "step": name},
		}
	}
	steps = slices.Concat([]any{step(stepContextBefore)}, steps, []any{step(stepContextAfter)})
	return out, unstructured.SetNestedSlice(out.Object, steps, "spec", "pipeline")
}

// result returns the context at the end of the pipeline, nil if a step ended the pipeline before.
func (c *contextServer) result() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.after
}

// withContext returns the input with the two steps, and the server of them.
func withContext(in Input) (Input, *contextServer, error) {
	if in.Composition == nil {
		return in, nil, fmt.Errorf("composition: required")
	}
	c, err := serveContext(in.Context)
	if err != nil {
		return in, nil, err
	}
	if in.Composition, err = c.around(in.Composition); err != nil {
		c.stop()
		return in, nil, err
	}
	functions := map[string]string{contextFunction: c.address}
	for name, address := range in.Functions {
		functions[name] = address
	}
	in.Functions = functions
	return in, c, nil
}
