package function

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/plan"
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

// TestAFieldThatCannotBeDecodedIsACondition has a composite resource that is older than the schema that refuses it.
func TestAFieldThatCannotBeDecodedIsACondition(t *testing.T) {
	cases := map[string]struct {
		input, xr string
		want      map[string]fnv1.Status
		field     string
	}{
		"OfADeployment": {
			"Rollout", `{"kind": "MachineDeployment", "metadata": {"name": "md"}, "spec": {"template": {"spec": {"drain": {"hookTimeout": "99999999h"}}}}}`,
			map[string]fnv1.Status{"Valid": fnv1.Status_STATUS_CONDITION_FALSE, "Stalled": fnv1.Status_STATUS_CONDITION_TRUE},
			`spec.template.spec.drain.hookTimeout: "99999999h": `,
		},
		"OfASet": {
			"Safety", `{"kind": "MachineSet", "metadata": {"name": "s"}, "spec": {"template": {"spec": {"creationTimeout": "9999999h"}}}}`,
			map[string]fnv1.Status{"Valid": fnv1.Status_STATUS_CONDITION_FALSE, "Stalled": fnv1.Status_STATUS_CONDITION_TRUE},
			`spec.template.spec.creationTimeout: "9999999h": `,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp, err := New(logging.NewNopLogger(), time.Now).RunFunction(t.Context(), &fnv1.RunFunctionRequest{
				Input:    resource.MustStructJSON(`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "` + tc.input + `"}`),
				Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(tc.xr)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]fnv1.Status{}
			for _, c := range rsp.GetConditions() {
				got[c.GetType()] = c.GetStatus()
				if c.GetReason() != "NotDecodable" || !strings.Contains(c.GetMessage(), tc.field) {
					t.Errorf("condition %v", c)
				}
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("conditions %v, want %v", got, tc.want)
			}
			// Only a fatal result keeps Crossplane from deleting the resources that the step does not desire.
			if r := rsp.GetResults(); len(r) != 1 || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
				t.Errorf("results %v", r)
			}
		})
	}
}

func TestAMachineThatCannotBeDecodedIsStillOneOfItsSet(t *testing.T) {
	m := plan.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"kind": "Machine", "metadata": map[string]any{"name": "m"},
		"spec": map[string]any{"creationTimeout": "9999999h", "version": "v1.35.4"}, "status": map[string]any{"phase": "Running"},
	}}}
	got, err := machineOf(m)
	if err != nil || got.Name != "m" || got.Spec.Version != "v1.35.4" || got.Status.Phase != "Running" {
		t.Errorf("%+v, error %v", got.Machine, err)
	}
}
