package machinetest

import (
	"fmt"
	"maps"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
)

// Fetching calls a function until two answers in a row require the same, as Crossplane's
// FetchingFunctionRunner does: it gives it what the last one required, and no more, and
// hands on its context. One call is enough if the request has all that the answer requires.
func Fetching(
	req *fnv1.RunFunctionRequest,
	run func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error),
	find func(*fnv1.ResourceSelector) *fnv1.Resources,
	schema func(*fnv1.SchemaSelector) *fnv1.Schema,
) (*fnv1.RunFunctionResponse, error) {
	var before *fnv1.Requirements
	for i := range maxIterations + 1 {
		rsp, err := run(req)
		if err != nil {
			return nil, err
		}
		if proto.Equal(before, rsp.GetRequirements()) {
			return rsp, nil
		}
		before = rsp.GetRequirements()
		resources, schemas := map[string]*fnv1.Resources{}, map[string]*fnv1.Schema{}
		for name, s := range before.GetResources() {
			resources[name] = find(s)
		}
		for name, s := range before.GetSchemas() {
			schemas[name] = schema(s)
		}
		if i == 0 && maps.EqualFunc(req.GetRequiredResources(), resources, equal) && maps.EqualFunc(req.GetRequiredSchemas(), schemas, equal) {
			return rsp, nil
		}
		req.Context, req.RequiredResources, req.RequiredSchemas = rsp.GetContext(), resources, schemas
	}
	return nil, fmt.Errorf("requirements did not come to rest: %v", before)
}

func equal[M proto.Message](a, b M) bool { return proto.Equal(a, b) }
