package step

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/gzipb64"
)

// ContextDecided holds the decision that a step already made in this reconcile: see
// [Response.Decided]. The last response does not have it.
const ContextDecided = "drover.dev/decided"

// Decided makes a response independent of the results of these requirements: they are read once, and
// their changes enqueue no reconcile.
//
// Crossplane reconciles an XR whenever an object changes that a function required in its last
// response, and counts that in its circuit breaker: a MachineSet would be reconciled at each of some
// twenty changes per Machine. But it calls a function until two responses in a row have the same
// requirements, and passes the context of one to the next call. So the decision is kept there, and
// [Again] returns it as the last response.
//
// A step that uses it needs another event that enqueues its XR.
func (r Response) Decided(lookedAt ...string) error {
	for _, requirement := range lookedAt {
		delete(r.GetRequirements().GetResources(), requirement)
	}
	decided, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.RunFunctionResponse)
	if err != nil {
		return fmt.Errorf("cannot encode what was decided: %w", err)
	}
	packed, err := gzipb64.Encode(decided)
	if err != nil {
		return fmt.Errorf("cannot pack what was decided: %w", err)
	}
	response.SetContextKey(r.RunFunctionResponse, ContextDecided, structpb.NewStringValue(packed))
	return nil
}

// Again returns the decision that the step already made in this reconcile, if any.
func Again(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, bool, error) {
	v, ok := req.GetContext().GetFields()[ContextDecided]
	if !ok {
		return nil, false, nil
	}
	rsp, err := unpack(v.GetStringValue())
	if err != nil {
		return nil, false, fmt.Errorf("cannot read context %q: %w", ContextDecided, err)
	}
	return rsp, true, nil
}

func unpack(packed string) (*fnv1.RunFunctionResponse, error) {
	decided, err := gzipb64.Decode(packed)
	if err != nil {
		return nil, err
	}
	rsp := &fnv1.RunFunctionResponse{}
	return rsp, proto.Unmarshal(decided, rsp)
}
