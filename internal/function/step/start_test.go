package step_test

import (
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"

	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
)

func TestAFirstReconcileIsSoonFollowedByAnother(t *testing.T) {
	group := func(r step.Response) { r.RequireByName("group", "v1", "Group", "ns", "a") }
	cases := map[string]struct {
		// before makes the requirements of the step in the previous reconcile, nil if there was none.
		before  func(step.Response)
		require func(step.Response)
		asks    time.Duration
		want    time.Duration
		calls   int
	}{
		"CrossplaneStarted":                  {nil, group, plan.AtRest, plan.InFlight, 2},
		"CrossplaneKnowsWhatTheXRDependsOn":  {group, group, plan.AtRest, plan.AtRest, 1},
		"OneThatIsCalledSoonerAnywayStaysSo": {nil, group, time.Second, time.Second, 2},
		"AStepThatRequiresMoreThanItDid": {group, func(r step.Response) {
			group(r)
			r.RequireByName("class", "v1", "Class", "ns", "a")
		}, plan.AtRest, plan.AtRest, 2},
		"AStepThatRequiresNothingCannotKnow": {nil, func(step.Response) {}, plan.AtRest, plan.AtRest, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls, require := 0, tc.before
			runner, steps := newRunner(func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				calls++
				rsp := step.NewResponse(req)
				require(rsp)
				rsp.CallAgain(tc.asks)
				step.MindTheStart(req, rsp.RunFunctionResponse)
				return rsp.RunFunctionResponse, nil
			}, func(s *fnv1.ResourceSelector) *fnv1.Resources {
				if s.GetKind() == "Class" {
					return &fnv1.Resources{Items: []*fnv1.Resource{{}}}
				}
				return nil
			})
			in := pipeline.Input{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"metadata": {"uid": "a"}}`)}}}
			if tc.before != nil {
				if _, err := runner.Run(t.Context(), steps, in); err != nil {
					t.Fatal(err)
				}
			}
			calls, require = 0, tc.require
			r, err := runner.Run(t.Context(), steps, in)
			if err != nil {
				t.Fatal(err)
			}
			if r.TTL != tc.want || calls != tc.calls {
				t.Errorf("again after %s, with %d calls, want %s with %d", r.TTL, calls, tc.want, tc.calls)
			}
		})
	}
}
