// Package function is the server of function-drover: all steps of Drover's pipelines.
package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
)

// A Step responds to a request. An error means that there is no safe response: everything stays as it
// is.
type Step func(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// steps by the kind of their input.
var steps = map[string]Step{
	"Bootstrap":      runBootstrap,
	"Infrastructure": runInfrastructure,
	"Lifecycle":      runLifecycle,
	"Orphans":        runOrphans,
	"Pool":           runPool,
	"Replicas":       runReplicas,
	"Rollout":        runRollout,
	"Safety":         runSafety,
}

// A Function runs the step that the kind of a request's input names.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
	now func() time.Time
}

// New returns a Function that reads the time from now.
func New(log logging.Logger, now func() time.Time) *Function {
	return &Function{log: log, now: now}
}

// RunFunction runs a step.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	log := f.log.WithValues("tag", req.GetMeta().GetTag())

	run, kind, err := stepOf(req)
	if err == nil {
		var rsp *fnv1.RunFunctionResponse
		now := f.now()
		if rsp, err = run(now, req); err == nil {
			step.MindTheStart(req, rsp)
			step.MindTheBreaker(now, req, rsp)
			quieten(rsp)
			log.Debug("Ran step", "step", kind, "desired", len(rsp.GetDesired().GetResources()))
			return rsp, nil
		}
		err = fmt.Errorf("cannot run step %s: %w", kind, err)
	}
	log.Info("Cannot answer", "error", err)
	rsp := response.To(req, plan.InFlight)
	var fields *step.NotDecodableError
	if errors.As(err, &fields) {
		step.Response{RunFunctionResponse: rsp}.SetConditions(notDecodable(step.CompositeKind(req).Kind, err)...)
	}
	response.Fatal(rsp, err)
	return rsp, nil
}

// notDecodable returns the conditions of a composite resource about which nothing can be decided, since a
// field of it, or of an object below it, cannot be decoded. Crossplane sets them although the step fails.
func notDecodable(kind string, err error) []plan.Condition {
	condition := func(conditionType, status string) plan.Condition {
		return plan.Condition{Type: conditionType, Status: status, Reason: machinev1alpha1.ReasonNotDecodable, Message: err.Error()}
	}
	if kind == machinev1alpha1.OrphanCollectorGroupVersionKind.Kind {
		return []plan.Condition{condition(machinev1alpha1.ConditionOrphansFound, "Unknown")}
	}
	return []plan.Condition{condition(machinev1alpha1.ConditionValid, "False"), condition(machinev1alpha1.ConditionStalled, "True")}
}

// quieten prevents that Crossplane emits an event for each composed resource that is not ready, at
// each reconcile. These events would exhaust the rate limit that the API client has per object, and a
// user would miss the important ones. They have no use if a step reports the readiness of the XR
// itself, as Drover's steps do.
func quieten(rsp *fnv1.RunFunctionResponse) {
	if rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_UNSPECIFIED {
		return
	}
	for _, r := range rsp.GetDesired().GetResources() {
		r.Ready = fnv1.Ready_READY_TRUE
	}
}

func stepOf(req *fnv1.RunFunctionRequest) (Step, string, error) {
	apiVersion := req.GetInput().GetFields()["apiVersion"].GetStringValue()
	kind := req.GetInput().GetFields()["kind"].GetStringValue()
	allowed := fmt.Sprintf("must be one of %s of apiVersion %s/%s",
		strings.Join(slices.Sorted(maps.Keys(steps)), ", "), fn.Group, fn.Version)

	if req.GetInput() == nil {
		return nil, "", fmt.Errorf("the step has no input: its kind %s", allowed)
	}
	run, ok := steps[kind]
	if !ok || apiVersion != fn.Group+"/"+fn.Version {
		return nil, "", fmt.Errorf("input has kind %q of apiVersion %q: it %s", kind, apiVersion, allowed)
	}
	return run, kind, nil
}

// HasStep reports whether an input belongs to a step of Drover.
func HasStep(input *structpb.Struct) bool {
	_, _, err := stepOf(&fnv1.RunFunctionRequest{Input: input})
	return err == nil
}

// RunStep runs a step for a caller other than Crossplane. Such a caller reconciles at every change,
// so it needs no requeue for events that a circuit breaker or a start may hide.
func (f *Function) RunStep(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	run, kind, err := stepOf(req)
	if err != nil {
		return nil, err
	}
	rsp, err := run(f.now(), req)
	if err != nil {
		return nil, fmt.Errorf("cannot run step %s: %w", kind, err)
	}
	return rsp, nil
}
