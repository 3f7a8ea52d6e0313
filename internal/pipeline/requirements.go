package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
)

// maxIterations is how often a step is called again because its requirements changed.
const maxIterations = 5

// A RunFunc calls a function once.
type RunFunc func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// callUntilStable calls a function until its requirements are stable, and returns its last
// answer. A fatal answer ends the calls.
func (r *run) callUntilStable(ctx context.Context, call RunFunc, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	first := given{resources: req.RequiredResources, schemas: req.RequiredSchemas}
	var before *fnv1.Requirements
	for i := range maxIterations + 1 {
		rsp, err := call(ctx, req)
		if err != nil {
			return nil, err
		}
		if rsp == nil {
			return nil, errors.New("the function returned no response")
		}
		if isFatal(rsp) || proto.Equal(before, rsp.GetRequirements()) {
			return rsp, nil
		}
		before = rsp.GetRequirements()
		next, err := r.resolve(ctx, first, before)
		if err != nil {
			return nil, err
		}
		if i == 0 && next.equal(givenIn(req)) {
			// A second call would get the same request, and so give the same answer.
			return rsp, nil
		}
		next.setIn(req)
		req.Context = rsp.GetContext()
	}
	return nil, fmt.Errorf("the requirements did not stabilize after %d iterations", maxIterations)
}

// resolve reads the requirements of an answer, and adds them to the content of the first request.
func (r *run) resolve(ctx context.Context, first given, reqs *fnv1.Requirements) (given, error) {
	next := given{
		resources: map[string]*fnv1.Resources{}, extra: map[string]*fnv1.Resources{}, schemas: map[string]*fnv1.Schema{},
	}
	maps.Copy(next.resources, first.resources)
	maps.Copy(next.schemas, first.schemas)
	var err error
	for name, selector := range extraResources(reqs) {
		if next.extra[name], err = r.snapshot.fetch(ctx, selector); err != nil {
			return given{}, fmt.Errorf("cannot fetch required resources %q: %w", name, err)
		}
	}
	for name, selector := range reqs.GetResources() {
		if next.resources[name], err = r.snapshot.fetch(ctx, selector); err != nil {
			return given{}, fmt.Errorf("cannot fetch required resources %q: %w", name, err)
		}
	}
	for name, selector := range reqs.GetSchemas() {
		if next.schemas[name], err = r.snapshot.schema(ctx, selector); err != nil {
			return given{}, fmt.Errorf("cannot fetch required schema %q: %w", name, err)
		}
	}
	return next, nil
}

// given are the resources and schemas in a request.
type given struct {
	resources map[string]*fnv1.Resources
	extra     map[string]*fnv1.Resources
	schemas   map[string]*fnv1.Schema
}

func givenIn(req *fnv1.RunFunctionRequest) given {
	return given{
		resources: req.GetRequiredResources(),
		extra:     req.GetExtraResources(),
		schemas:   req.GetRequiredSchemas(),
	}
}

func (g given) setIn(req *fnv1.RunFunctionRequest) {
	req.RequiredResources = g.resources
	req.ExtraResources = g.extra
	req.RequiredSchemas = g.schemas
}

func (g given) equal(other given) bool {
	return maps.EqualFunc(g.resources, other.resources, equal) &&
		maps.EqualFunc(g.extra, other.extra, equal) &&
		maps.EqualFunc(g.schemas, other.schemas, equal)
}

func equal[M proto.Message](a, b M) bool { return proto.Equal(a, b) }

func isFatal(rsp *fnv1.RunFunctionResponse) bool {
	for _, result := range rsp.GetResults() {
		if result.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return true
		}
	}
	return false
}
