package function

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestNoEventsOfComposedResourcesThatAreNotReady(t *testing.T) {
	cases := map[string]struct {
		xr, composed, want fnv1.Ready
	}{
		"WhenTheXRSaysThatItIsReady":    {fnv1.Ready_READY_TRUE, fnv1.Ready_READY_FALSE, fnv1.Ready_READY_TRUE},
		"WhenTheXRSaysThatItIsNotReady": {fnv1.Ready_READY_FALSE, fnv1.Ready_READY_FALSE, fnv1.Ready_READY_TRUE},
		"NotWhenTheXRFollowsThem":       {fnv1.Ready_READY_UNSPECIFIED, fnv1.Ready_READY_FALSE, fnv1.Ready_READY_FALSE},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := &fnv1.RunFunctionResponse{Desired: &fnv1.State{
				Composite: &fnv1.Resource{Ready: tc.xr},
				Resources: map[string]*fnv1.Resource{"c": {Ready: tc.composed}},
			}}
			quieten(rsp)
			if got := rsp.GetDesired().GetResources()["c"].GetReady(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRunFunction(t *testing.T) {
	input := func(apiVersion, kind string) *structpb.Struct {
		return resource.MustStructJSON(`{"apiVersion": "` + apiVersion + `", "kind": "` + kind + `"}`)
	}
	xr := &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"kind": "MachineDeployment", "metadata": {"name": "md"}}`)}}

	cases := map[string]struct {
		req   *fnv1.RunFunctionRequest
		fatal []string
	}{
		"TheKindChoosesTheStep": {
			req: &fnv1.RunFunctionRequest{Input: input("fn.drover.dev/v1alpha1", "Safety"), Observed: xr},
		},
		"AnUnknownKindSaysWhichThereAre": {
			req: &fnv1.RunFunctionRequest{Input: input("fn.drover.dev/v1alpha1", "Rollback"), Observed: xr},
			fatal: []string{
				`kind "Rollback" of apiVersion "fn.drover.dev/v1alpha1"`,
				"Bootstrap, Infrastructure, Lifecycle, Orphans, Pool, Replicas, Rollout, Safety of apiVersion fn.drover.dev/v1alpha1",
			},
		},
		"AnotherVersionIsUnknown": {
			req:   &fnv1.RunFunctionRequest{Input: input("fn.drover.dev/v9", "Safety"), Observed: xr},
			fatal: []string{`kind "Safety" of apiVersion "fn.drover.dev/v9"`, "must be one of"},
		},
		"AStepWithoutInputIsReported": {
			req:   &fnv1.RunFunctionRequest{Observed: xr},
			fatal: []string{"the step has no input", "must be one of Bootstrap"},
		},
		"AnErrorOfAStepNamesTheStep": {
			req:   &fnv1.RunFunctionRequest{Input: input("fn.drover.dev/v1alpha1", "Rollout")},
			fatal: []string{"cannot run step Rollout", "no observed composite resource"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp, err := New(logging.NewNopLogger(), time.Now).RunFunction(t.Context(), tc.req)
			if err != nil {
				t.Fatal(err)
			}
			var fatal string
			for _, r := range rsp.GetResults() {
				if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
					fatal = r.GetMessage()
				}
			}
			if len(tc.fatal) == 0 && fatal != "" {
				t.Errorf("fatal: %s", fatal)
			}
			for _, want := range tc.fatal {
				if !strings.Contains(fatal, want) {
					t.Errorf("got fatal %q, want it to hold %q", fatal, want)
				}
			}
		})
	}
}
