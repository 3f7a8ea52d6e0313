package step_test

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
)

func TestWhatIsOnlyLookedAtIsNotRequiredInTheEnd(t *testing.T) {
	fetched, decided, withMachines := map[string]int{}, 0, 0
	fetch := func(s *fnv1.ResourceSelector) *fnv1.Resources {
		fetched[s.GetKind()]++
		return &fnv1.Resources{}
	}
	run := func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if _, looked := step.Required(req, "machines"); looked {
			withMachines++
		}
		if rsp, ok, err := step.Again(req); ok || err != nil {
			return rsp, err
		}
		rsp := step.NewResponse(req)
		rsp.RequireByName("class", "v1", "Class", "ns", "a")
		rsp.RequireByLabels("machines", "v1", "Machine", "ns", nil)
		if _, looked := step.Required(req, "machines"); !looked {
			return rsp.RunFunctionResponse, nil
		}
		// An object of one requirement may lead to another requirement.
		rsp.RequireByName("composition", "v1", "Composition", "", "c")
		if _, looked := step.Required(req, "composition"); !looked {
			return rsp.RunFunctionResponse, nil
		}
		decided++
		rsp.Ready(true)
		rsp.Events(plan.Event{Reason: "Decided", Message: "once"})
		return rsp.RunFunctionResponse, rsp.Decided("machines")
	}
	in := pipeline.Input{Context: &structpb.Struct{Fields: map[string]*structpb.Value{"other": structpb.NewStringValue("kept")}}}
	runner, steps := newRunner(run, fetch)
	rsp, err := runner.Run(t.Context(), steps, in)
	if err != nil {
		t.Fatal(err)
	}

	required := map[string]bool{}
	for _, r := range rsp.Required {
		required[r.Name] = true
	}
	if diff := cmp.Diff(map[string]bool{"class": true, "composition": true}, required); diff != "" {
		t.Errorf("required in the end: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(in.Context.GetFields()["other"], rsp.Context.GetFields()["other"], protocmp.Transform()); diff != "" || len(rsp.Context.GetFields()) != 1 {
		t.Errorf("left in the context: %v", rsp.Context)
	}
	if decided != 1 || fetched["Machine"] != 1 || withMachines != 2 || !(rsp.Desired.GetComposite().GetReady() == fnv1.Ready_READY_TRUE) || len(rsp.Results) != 1 {
		t.Errorf("decided %d times, called %d times with Machines, fetched %v, answered %v", decided, withMachines, fetched, rsp)
	}
}

func TestAContextThatSomebodySpoiltIsAnError(t *testing.T) {
	for name, v := range map[string]*structpb.Value{
		"NoText":   structpb.NewNumberValue(1),
		"NoBase64": structpb.NewStringValue("%"),
		"NotZip":   structpb.NewStringValue("YWJj"),
	} {
		t.Run(name, func(t *testing.T) {
			req := &fnv1.RunFunctionRequest{Context: &structpb.Struct{Fields: map[string]*structpb.Value{step.ContextDecided: v}}}
			if _, _, err := step.Again(req); err == nil {
				t.Error("want an error")
			}
		})
	}
}
