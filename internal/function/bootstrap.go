package function

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/bootstrap"
	"github.com/drover-dev/drover/internal/workernode"
)

// runBootstrap runs the step. An error means that nothing can be decided on the Machine, and that
// everything stays as it is.
func runBootstrap(_ time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := &fn.Bootstrap{}
	if err := step.Input(req, input); err != nil {
		return nil, err
	}
	o, err := observeBootstrap(req)
	if err != nil {
		return nil, err
	}
	rsp := step.NewResponse(req)
	if !o.VMMayExist && !o.VMLost {
		var looked bool
		if o.Class, o.ClassProblem, looked = rsp.Class(req, o.Machine, "spec.classRef.name"); !looked {
			return rsp.RunFunctionResponse, nil
		}
		if o.Class != nil {
			if o.Profile, o.ClassProblem, looked = rsp.Profile(req, o.Class); !looked {
				return rsp.RunFunctionResponse, nil
			}
		}
	}
	if done, err := runBootstrapConfig(req, rsp, &o); !done || err != nil {
		return rsp.RunFunctionResponse, err
	}
	return rsp.RunFunctionResponse, rsp.SetContext(step.ContextBootstrap, bootstrap.Plan(o, bootstrap.SettingsOf(input)))
}

func observeBootstrap(req *fnv1.RunFunctionRequest) (bootstrap.Observed, error) {
	o := bootstrap.Observed{Machine: &machinev1alpha1.Machine{}}
	if err := step.Composite(req, o.Machine); err != nil {
		return o, err
	}
	if _, err := step.Context(req, step.ContextJoin, &o.Join); err != nil {
		return o, err
	}
	wn := workernode.WorkerNode{}
	if _, err := step.Context(req, step.ContextNode, &wn); err != nil {
		return o, err
	}
	observed := step.Observed(req)
	vm, ok := observed[machinev1alpha1.ResourceVM]
	o.VMMayExist = ok && plan.CreationBegan(vm)
	// A client with write access to the status can forge it. A forged status can keep a Machine from
	// getting a token, and never give it one.
	o.VMLost = !ok && o.Machine.Status.ProviderID != ""
	if there, exists := observed[machinev1alpha1.ResourceBootstrap]; exists {
		o.Config = stateOfBootstrap(there)
	}
	o.NodeJoined = o.Machine.Status.NodeRef != nil || wn.Observation.NodeName != ""
	return o, nil
}
