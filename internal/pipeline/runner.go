package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A FunctionRunner calls Functions by name.
type FunctionRunner interface {
	RunFunction(ctx context.Context, name string, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)
}

// Options connect a Runner to functions and a cluster. If a step needs an option that is nil,
// the step fails.
type Options struct {
	// Local returns the function of a step that runs in this process. The function may
	// change the desired state and the context of its request, but nothing else: steps and
	// runs share the rest. Its request has no tag.
	Local func(Step) (RunFunc, bool)
	// Functions runs all other steps.
	Functions FunctionRunner
	// Resources reads the resources that steps require.
	Resources Resources
	// Schemas reads the schemas that steps require.
	Schemas Schemas
	// Secrets reads the credentials of steps.
	Secrets client.Reader
}

// A Runner runs pipelines. It is safe for concurrent use.
type Runner struct {
	Options
	memory *memory
}

// New returns a Runner.
func New(o Options) *Runner {
	return &Runner{Options: o, memory: newMemory()}
}

// An Input is the start of a run.
type Input struct {
	// Observed state: the composite and its composed resources. The run does not change it.
	Observed *fnv1.State
	// Context of the first step. The run does not change it.
	Context *structpb.Struct
}

// A Result is the end of a run.
type Result struct {
	// Desired state that the last step returned, nil if the run failed.
	Desired *fnv1.State
	// Context that the last step returned, nil if the run failed.
	Context *structpb.Struct
	// TTL is the shortest TTL of all steps, 0 if no step returned a TTL.
	TTL time.Duration
	// Conditions of all steps, in their order.
	Conditions []*fnv1.Condition
	// Results of all steps that are not fatal, in their order. Crossplane treats an unknown
	// severity as a warning.
	Results []*fnv1.Result
	// Required are the selectors of the Composition and of the steps' last answers, in the
	// order of the steps. After an error it has the selectors known until then.
	Required []Requirement
}

// A Requirement is a selector of resources that a step requires.
type Requirement struct {
	Step     string
	Name     string
	Selector *fnv1.ResourceSelector
}

// A FatalError is the fatal result of a step.
type FatalError struct {
	Step    string
	Message string
}

// Error returns Crossplane's text.
func (e *FatalError) Error() string {
	return fmt.Sprintf("pipeline step %q returned a fatal result: %s", e.Step, e.Message)
}

// Run a pipeline. If it fails, the Result has conditions, results and requirements up to
// the error, which is a [FatalError] if a step returned a fatal result.
func (r *Runner) Run(ctx context.Context, steps []Step, in Input) (Result, error) {
	uid := uidOf(in.Observed)
	run := newRun(r, in, r.memory.of(uid))
	for _, s := range steps {
		if err := run.step(ctx, s); err != nil {
			return run.result, err
		}
	}
	r.memory.set(uid, run.now)
	run.result.Desired, run.result.Context, run.result.TTL = run.desired, run.context, run.ttl
	return run.result, nil
}

func uidOf(observed *fnv1.State) types.UID {
	metadata := observed.GetComposite().GetResource().GetFields()["metadata"].GetStructValue()
	return types.UID(metadata.GetFields()["uid"].GetStringValue())
}

// A run is one run of a pipeline.
type run struct {
	*Runner
	snapshot *snapshot
	observed *fnv1.State
	// last are the steps' requirements of the last run, now those of this run.
	last, now remembered

	// desired and context of the last step's answer.
	desired *fnv1.State
	context *structpb.Struct
	ttl     time.Duration
	result  Result
}

func newRun(r *Runner, in Input, last remembered) *run {
	seeds := in.Context
	if seeds == nil {
		seeds = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	return &run{
		Runner: r, snapshot: newSnapshot(r.Resources, r.Schemas), observed: in.Observed,
		last: last, now: remembered{}, desired: &fnv1.State{}, context: seeds,
	}
}

func (r *run) step(ctx context.Context, s Step) error {
	req, err := r.request(ctx, s)
	if err != nil {
		return fmt.Errorf("cannot run pipeline step %q: %w", s.Name, err)
	}
	rsp, err := r.callUntilStable(ctx, r.callerOf(s, req), req)
	if err != nil {
		return fmt.Errorf("cannot run pipeline step %q: %w", s.Name, err)
	}
	r.recordRequirements(s, rsp.GetRequirements())
	if ttl := rsp.GetMeta().GetTtl().AsDuration(); ttl > 0 && (r.ttl == 0 || ttl < r.ttl) {
		r.ttl = ttl
	}
	r.desired, r.context = rsp.GetDesired(), rsp.GetContext()
	r.result.Conditions = append(r.result.Conditions, rsp.GetConditions()...)
	return r.recordResults(s, rsp.GetResults())
}

// callerOf returns how to call the function of a step, and adds the meta to its first request.
func (r *run) callerOf(s Step, req *fnv1.RunFunctionRequest) RunFunc {
	if r.Local != nil {
		if call, ok := r.Local(s); ok {
			req.Meta = &fnv1.RequestMeta{Capabilities: capabilities}
			return isolated(call)
		}
	}
	req.Meta = &fnv1.RequestMeta{Tag: tagOf(req), Capabilities: capabilities}
	return func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if r.Functions == nil {
			return nil, fmt.Errorf("the Function %q does not run in this process, and this runner calls no others", s.Function)
		}
		return r.Functions.RunFunction(ctx, s.Function, req)
	}
}

// isolated copies the request, its desired state and its context for each call: a function
// builds its answer on them, and the next iteration must get them unchanged.
func isolated(call RunFunc) RunFunc {
	return func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return call(ctx, &fnv1.RunFunctionRequest{
			Meta:              req.GetMeta(),
			Observed:          req.GetObserved(),
			Desired:           proto.CloneOf(req.GetDesired()),
			Input:             req.GetInput(),
			Context:           proto.CloneOf(req.GetContext()),
			ExtraResources:    req.GetExtraResources(),
			Credentials:       req.GetCredentials(),
			RequiredResources: req.GetRequiredResources(),
			RequiredSchemas:   req.GetRequiredSchemas(),
		})
	}
}

func (r *run) recordRequirements(s Step, reqs *fnv1.Requirements) {
	r.now[s.Name] = remember(reqs)
	for _, selectors := range []map[string]*fnv1.ResourceSelector{reqs.GetResources(), extraResources(reqs)} {
		for _, name := range slices.Sorted(maps.Keys(selectors)) {
			r.require(s.Name, name, selectors[name])
		}
	}
}

func (r *run) require(step, name string, selector *fnv1.ResourceSelector) {
	r.result.Required = append(r.result.Required, Requirement{Step: step, Name: name, Selector: selector})
}

// recordResults records the results up to the first fatal result, and returns that as an error.
func (r *run) recordResults(s Step, results []*fnv1.Result) error {
	for _, result := range results {
		if result.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return &FatalError{Step: s.Name, Message: result.GetMessage()}
		}
		r.result.Results = append(r.result.Results, result)
	}
	return nil
}
