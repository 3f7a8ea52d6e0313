package step

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestANumberThatDoesNotFitIsAnErrorAndNoOtherNumber(t *testing.T) {
	set := func(replicas float64) *structpb.Struct {
		s, err := structpb.NewStruct(map[string]any{"metadata": map[string]any{"name": "s"}, "status": map[string]any{"replicas": replicas, "created": float64(1 << 40), "whatever": "else"}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	got, err := As[machinev1alpha1.MachineSet](object(&fnv1.Resource{Resource: set(7)}))
	if err != nil || got.Status.Replicas != 7 || got.Status.Created != 1<<40 {
		t.Errorf("%+v, error %v", got, err)
	}
	for _, n := range []float64{1 << 31, 1<<32 + 2, 1e300, 1.5} {
		if got, err := As[machinev1alpha1.MachineSet](object(&fnv1.Resource{Resource: set(n)})); err == nil {
			t.Errorf("%g replicas became %d", n, got.Status.Replicas)
		}
	}
	input, err := structpb.NewStruct(map[string]any{"overshoot": map[string]any{"upMargin": float64(1<<32 + 2)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Input(&fnv1.RunFunctionRequest{Input: input}, &fn.Safety{}); err == nil {
		t.Error("an input with a margin that does not fit is no error")
	}
}
