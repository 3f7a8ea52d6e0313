package machinetest

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
)

// Fetching calls a function until two answers in a row require the same, as Crossplane's
// FetchingFunctionRunner does: it gives it what the last one required, and no more, and
// hands on its context.
func Fetching(
	req *fnv1.RunFunctionRequest,
	run func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error),
	find func(*fnv1.ResourceSelector) *fnv1.Resources,
	schema func(*fnv1.SchemaSelector) *fnv1.Schema,
) (*fnv1.RunFunctionResponse, error) {
	var before *fnv1.Requirements
	for range maxIterations + 1 {
		rsp, err := run(req)
		if err != nil {
			return nil, err
		}
		if proto.Equal(before, rsp.GetRequirements()) {
			return rsp, nil
		}
		before = rsp.GetRequirements()
		req.Context = rsp.GetContext()
		req.RequiredResources, req.RequiredSchemas = map[string]*fnv1.Resources{}, map[string]*fnv1.Schema{}
		for name, s := range before.GetResources() {
			req.RequiredResources[name] = find(s)
		}
		for name, s := range before.GetSchemas() {
			req.RequiredSchemas[name] = schema(s)
		}
	}
	return nil, fmt.Errorf("requirements did not come to rest: %v", before)
}
