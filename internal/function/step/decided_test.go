package step_test

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/function/machinetest"
	"github.com/drover-dev/drover/internal/function/step"
)

func TestWhatIsOnlyLookedAtIsNotRequiredInTheEnd(t *testing.T) {
	fetched, decided := map[string]int{}, 0
	fetch := func(s *fnv1.ResourceSelector) *fnv1.Resources {
		fetched[s.GetKind()]++
		return &fnv1.Resources{}
	}
	run := func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if rsp, ok, err := step.Again(req); ok || err != nil {
			return rsp, err
		}
		rsp := step.NewResponse(req)
		rsp.RequireByName("class", "v1", "Class", "ns", "a")
		rsp.RequireByLabels("machines", "v1", "Machine", "ns", nil)
		if _, looked := step.Required(req, "machines"); !looked {
			return rsp.RunFunctionResponse, nil
		}
		// What it finds in one may make it look at another.
		rsp.RequireByName("composition", "v1", "Composition", "", "c")
		if _, looked := step.Required(req, "composition"); !looked {
			return rsp.RunFunctionResponse, nil
		}
		decided++
		rsp.Ready(true)
		rsp.Events(step.Event{Reason: "Decided", Message: "once"})
		return rsp.RunFunctionResponse, rsp.Decided("machines")
	}
	req := &fnv1.RunFunctionRequest{Context: &structpb.Struct{Fields: map[string]*structpb.Value{"other": structpb.NewStringValue("kept")}}}
	rsp, err := machinetest.Fetching(req, run, fetch, nil)
	if err != nil {
		t.Fatal(err)
	}

	required := map[string]bool{}
	for name := range rsp.GetRequirements().GetResources() {
		required[name] = true
	}
	if diff := cmp.Diff(map[string]bool{"class": true, "composition": true}, required); diff != "" {
		t.Errorf("required in the end: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(req.GetContext().GetFields()["other"], rsp.GetContext().GetFields()["other"], protocmp.Transform()); diff != "" || len(rsp.GetContext().GetFields()) != 1 {
		t.Errorf("left in the context: %v", rsp.GetContext())
	}
	if decided != 1 || fetched["Machine"] != 2 || !(rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_TRUE) || len(rsp.GetResults()) != 1 {
		t.Errorf("decided %d times, fetched %v, answered %v", decided, fetched, rsp)
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
