package step_test

import (
	"context"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/drover-dev/drover/internal/pipeline"
)

// fetch reads the resources that a step requires.
type fetch func(*fnv1.ResourceSelector) *fnv1.Resources

func (f fetch) Fetch(_ context.Context, s *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	return f(s), nil
}

// newRunner returns a runner of a pipeline whose only step is run.
func newRunner(run func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error), f fetch) (*pipeline.Runner, []pipeline.Step) {
	local := func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return run(req)
	}
	return pipeline.New(pipeline.Options{
		Local:     func(pipeline.Step) (pipeline.RunFunc, bool) { return local, true },
		Resources: f,
	}), []pipeline.Step{{Name: "step", Function: "drover"}}
}
