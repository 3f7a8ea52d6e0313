package step

import (
	"encoding/json"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"
)

// Keys of the context by which steps pass results to later steps. A step of another function may read
// or replace the values.
const (
	// ContextSafety holds a [plan.Safety].
	ContextSafety = "drover.dev/safety"
	// ContextRolloutGate holds a [plan.RolloutGate], which only a step of the user's own sets.
	ContextRolloutGate = "drover.dev/rollout-gate"
	// ContextBootstrap holds a [plan.Bootstrap].
	ContextBootstrap = "drover.dev/bootstrap"
	// ContextVM holds a [plan.VM].
	ContextVM = "drover.dev/virtual-machine"
	// ContextJoin holds a [plan.JoinState] when the pipeline of a Machine starts.
	ContextJoin = "drover.dev/join"
	// ContextInventory holds a [plan.InventoryReport] when the pipeline of a Machine starts, if an
	// inventory of its cloud reports on its VM.
	ContextInventory = "drover.dev/inventory"
	// ContextMissingConfig holds a [plan.MissingConfig] when the pipeline of a Machine without a VM
	// starts, if the configuration that its VM would refer to does not exist.
	ContextMissingConfig = "drover.dev/missing-provider-config"
	// ContextNode holds a [workernode.WorkerNode]: the observed Node of the Machine when the pipeline
	// starts, and the desired one when it ends.
	ContextNode = "drover.dev/node"
)

// Context reads the value that an earlier step set, and returns false if there is none.
func Context(req *fnv1.RunFunctionRequest, key string, into any) (bool, error) {
	v, ok := req.GetContext().GetFields()[key]
	if !ok {
		return false, nil
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return false, fmt.Errorf("cannot read context %q: %w", key, err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, fmt.Errorf("cannot decode context %q: %w", key, err)
	}
	return true, nil
}

// SetContext sets a value for the steps after this one.
func (r Response) SetContext(key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode context %q: %w", key, err)
	}
	v := &structpb.Value{}
	if err := v.UnmarshalJSON(b); err != nil {
		return fmt.Errorf("cannot encode context %q: %w", key, err)
	}
	response.SetContextKey(r.RunFunctionResponse, key, v)
	return nil
}
