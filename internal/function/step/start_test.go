package step_test

import (
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/drover-dev/drover/internal/function/machinetest"
	"github.com/drover-dev/drover/internal/function/step"
)

func TestAFirstReconcileIsSoonFollowedByAnother(t *testing.T) {
	classes := &fnv1.Resources{Items: []*fnv1.Resource{{}}}
	cases := map[string]struct {
		require func(step.Response)
		known   map[string]*fnv1.Resources
		asks    time.Duration
		want    time.Duration
		calls   int
	}{
		"CrossplaneStarted":                  {func(r step.Response) { r.RequireStart("ns") }, nil, step.AtRest, step.InFlight, 2},
		"CrossplaneKnowsWhatTheXRDependsOn":  {func(r step.Response) { r.RequireStart("ns") }, map[string]*fnv1.Resources{"start": nil}, step.AtRest, step.AtRest, 1},
		"OneThatIsCalledSoonerAnywayStaysSo": {func(r step.Response) { r.RequireStart("ns") }, nil, time.Second, time.Second, 2},
		"AStepThatRequiresSomethingElse":     {func(r step.Response) { r.RequireByName("class", "v1", "Class", "ns", "a") }, nil, step.AtRest, step.InFlight, 2},
		"AStepThatRequiresMoreThanItDid": {func(r step.Response) {
			r.RequireStart("ns")
			r.RequireByName("class", "v1", "Class", "ns", "a")
		}, map[string]*fnv1.Resources{"start": nil}, step.AtRest, step.AtRest, 2},
		"AStepThatRequiresNothingCannotTell": {func(step.Response) {}, nil, step.AtRest, step.AtRest, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := 0
			run := func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				calls++
				rsp := step.NewResponse(req)
				tc.require(rsp)
				rsp.CallAgain(tc.asks)
				step.MindTheStart(req, rsp.RunFunctionResponse)
				return rsp.RunFunctionResponse, nil
			}
			find := func(s *fnv1.ResourceSelector) *fnv1.Resources {
				if s.GetKind() == "Class" {
					return classes
				}
				return nil
			}
			rsp, err := machinetest.Fetching(&fnv1.RunFunctionRequest{RequiredResources: tc.known}, run, find, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := rsp.GetMeta().GetTtl().AsDuration(); got != tc.want || calls != tc.calls {
				t.Errorf("again after %s, with %d calls, want %s with %d", got, calls, tc.want, tc.calls)
			}
		})
	}
}
