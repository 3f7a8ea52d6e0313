package step

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/gzipb64"
)

// ContextDecided holds what a step has decided in this reconcile already: see
// [Response.Decided]. The last answer does not have it.
const ContextDecided = "drover.dev/decided"

// Decided makes a response one that does not depend on what these requirements found:
// they are looked at, and their changes wake nobody.
//
// Crossplane reconciles an XR whenever anything changes that a function required in its
// last answer, and counts that by its circuit breaker: a MachineSet would be reconciled
// at each of some twenty changes of each of its Machines. But it calls a function until
// two answers in a row require the same, and hands the context of one to the next. So
// the decision is kept there, and [Again] gives it as the last answer.
//
// Whoever uses it must be woken by something else.
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

// Again returns what the step has decided in this reconcile, if it has.
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
