package step

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
)

// crossplane calls a function until two answers in a row require the same, as
// Crossplane's FetchingFunctionRunner does: it fetches what the last one required,
// and hands on its context.
func crossplane(t *testing.T, req *fnv1.RunFunctionRequest, fetch func(string) *fnv1.Resources, run func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse) *fnv1.RunFunctionResponse {
	t.Helper()
	var last *fnv1.Requirements
	for range 6 {
		rsp := run(req)
		if proto.Equal(last, rsp.GetRequirements()) {
			return rsp
		}
		last = rsp.GetRequirements()
		req.RequiredResources = map[string]*fnv1.Resources{}
		for name := range last.GetResources() {
			req.RequiredResources[name] = fetch(name)
		}
		req.Context = rsp.GetContext()
	}
	t.Fatal("the requirements did not come to rest")
	return nil
}

func TestWhatIsOnlyLookedAtIsNotRequiredInTheEnd(t *testing.T) {
	fetched, decided := map[string]int{}, 0
	fetch := func(name string) *fnv1.Resources {
		fetched[name]++
		return &fnv1.Resources{}
	}
	run := func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		if rsp, ok, err := Again(req); ok || err != nil {
			if err != nil {
				t.Fatal(err)
			}
			return rsp
		}
		rsp := NewResponse(req)
		rsp.RequireByName("class", "v1", "Class", "ns", "a")
		rsp.RequireByLabels("machines", "v1", "Machine", "ns", nil)
		if _, looked := Required(req, "machines"); !looked {
			return rsp.RunFunctionResponse
		}
		// What it finds in one may make it look at another.
		rsp.RequireByName("composition", "v1", "Composition", "", "c")
		if _, looked := Required(req, "composition"); !looked {
			return rsp.RunFunctionResponse
		}
		decided++
		rsp.Ready(true)
		rsp.Events(Event{Reason: "Decided", Message: "once"})
		if err := rsp.Decided("machines"); err != nil {
			t.Fatal(err)
		}
		return rsp.RunFunctionResponse
	}
	req := &fnv1.RunFunctionRequest{Context: &structpb.Struct{Fields: map[string]*structpb.Value{"other": structpb.NewStringValue("kept")}}}
	rsp := crossplane(t, req, fetch, run)

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
	if decided != 1 || fetched["machines"] != 2 || !(rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_TRUE) || len(rsp.GetResults()) != 1 {
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
			req := &fnv1.RunFunctionRequest{Context: &structpb.Struct{Fields: map[string]*structpb.Value{ContextDecided: v}}}
			if _, _, err := Again(req); err == nil {
				t.Error("want an error")
			}
		})
	}
}
