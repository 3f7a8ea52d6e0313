package safety

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// A composite is what MachineDeployments and MachineSets have in common.
type composite struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Run the step.
func Run(_ time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	if err := step.Input(req, &fn.Safety{}); err != nil {
		return nil, err
	}
	xr := &composite{}
	if err := step.Composite(req, xr); err != nil {
		return nil, err
	}
	d := Plan(Observed{Labels: xr.Labels, Conditions: xr.Status.Conditions})

	rsp := step.NewResponse(req)
	rsp.SetConditions(d.Condition)
	rsp.Events(d.Events...)
	return rsp.RunFunctionResponse, rsp.SetContext(step.ContextSafety, d.Safety)
}
