package function

import (
	"crypto/sha256"
	"strings"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/bootstrap"
	"github.com/drover-dev/drover/internal/plan/vm"
	"github.com/drover-dev/drover/internal/workernode"
)

const (
	requirementSchema = "virtual-machine-schema"
	requirementVM     = "virtual-machine"

	// Requirements of companions start with the companion's name.
	suffixSchema    = "-schema"
	suffixCompanion = "-companion"
)

// runInfrastructure runs the step. An error means that nothing can be decided on the Machine, and
// that everything stays as it is.
func runInfrastructure(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := &fn.Infrastructure{}
	if err := step.Input(req, input); err != nil {
		return nil, err
	}
	b, err := vm.Bind(input)
	var invalid *plan.Problem
	if err != nil {
		invalid = vm.InvalidInput(err)
	}
	o, err := observeVM(now, req)
	if err != nil {
		return nil, err
	}

	rsp := step.NewResponse(req)
	complete := true
	switch {
	case b == nil:
	case o.VM == nil || !o.Begun():
		invalid, complete = lookUp(req, rsp, b, &o)
	default:
		invalid, complete = lookUpBegun(req, rsp, b, &o)
	}
	if !complete {
		return rsp.RunFunctionResponse, nil
	}

	d := vm.Plan(b, invalid, o)
	if d.VM != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceVM, d.VM, d.Word.State == plan.VMRunning); err != nil {
			return nil, err
		}
	}
	for name, c := range d.Companions {
		ready := o.Companions[name].Unstructured != nil && vm.IsReady(o.Companions[name])
		if err := rsp.Compose(machinev1alpha1.ResourceCompanionPrefix+name, c, ready); err != nil {
			return nil, err
		}
	}
	return rsp.RunFunctionResponse, rsp.SetContext(step.ContextVM, d.Word)
}

// lookUp requires the objects that are needed to create a VM: the class, the schema of the VM, and
// the VM itself, which a stale write may have removed from the Machine's references. It returns false
// while Crossplane has not looked for all of them yet.
func lookUp(req *fnv1.RunFunctionRequest, rsp step.Response, b *vm.Binding, o *vm.Observed) (invalid *plan.Problem, complete bool) {
	class, problem, looked := rsp.Class(req, o.Machine, "spec.classRef.name")
	installation, unknown, looked2 := rsp.Installation(req)
	if !looked || !looked2 {
		return nil, false
	}
	o.Class, o.ClassProblem = class, problem
	o.Installation, o.InstallationProblem = installation, unknown

	// Requiring a VM of a kind that does not exist is an error of the whole pipeline.
	if problem, complete := requireSchemas(req, rsp, b.VM, b.CompanionsOf(o.Class), o); problem != nil || !complete {
		return problem, complete
	}
	complete = true
	if o.VM == nil {
		found, looked := lookFor(req, rsp, requirementVM, b.VM, names.OfMachine(o.Machine.Name, o.Machine.UID), o.Machine)
		o.VM, complete = found, looked
	}
	for _, c := range b.CompanionsOf(o.Class) {
		complete = lookForCompanion(req, rsp, c, o) && complete
	}
	return nil, complete
}

// lookUpBegun requires the objects that are needed for a VM that exists or may exist: companions that
// the Machine no longer refers to and, as long as a companion that depends on the VM was not created,
// its class and its schema. It returns false while Crossplane has not looked for all of them yet.
func lookUpBegun(req *fnv1.RunFunctionRequest, rsp step.Response, b *vm.Binding, o *vm.Observed) (invalid *plan.Problem, complete bool) {
	complete = lookUpForgotten(req, rsp, b, o)
	lacking := b.LackingDependents(*o)
	if len(lacking) == 0 && !o.NeedsInstanceTypes() {
		return nil, complete
	}
	class, problem, looked := rsp.Class(req, o.Machine, "spec.classRef.name")
	installation, unknown, looked2 := rsp.Installation(req)
	o.Class, o.ClassProblem = class, problem
	o.Installation, o.InstallationProblem = installation, unknown
	missing, looked3 := requireCompanionSchemas(req, rsp, lacking, o)
	return missing, complete && looked && looked2 && looked3
}

// lookUpForgotten looks for further companions of a VM that exists: a companion without a reference
// from the Machine would never be deleted. It returns false while Crossplane has not looked for them
// yet.
func lookUpForgotten(req *fnv1.RunFunctionRequest, rsp step.Response, b *vm.Binding, o *vm.Observed) bool {
	complete := true
	for _, c := range b.CompanionsMade(*o.VM) {
		if _, ok := o.Companions[c.Name]; ok {
			continue
		}
		// The kind may have been removed from the API server since.
		there, looked := hasKind(req, rsp, c.Name+suffixSchema, c.GVK)
		if !looked {
			complete = false
			continue
		}
		if there {
			complete = lookForCompanion(req, rsp, c, o) && complete
		}
	}
	return complete
}

func lookForCompanion(req *fnv1.RunFunctionRequest, rsp step.Response, c vm.Companion, o *vm.Observed) bool {
	if _, ok := o.Companions[c.Name]; ok {
		return true
	}
	found, looked := lookFor(req, rsp, c.Name+suffixCompanion, c.Template, names.OfCompanion(o.Machine.Name, o.Machine.UID, c.Name), o.Machine)
	if found != nil {
		o.Companions[c.Name] = *found
	}
	return looked
}

// lookFor returns a resource of the Machine by its name. It returns false while Crossplane has not
// looked for it yet.
func lookFor(req *fnv1.RunFunctionRequest, rsp step.Response, requirement string, t vm.Template, name string, m *machinev1alpha1.Machine) (*plan.Object, bool) {
	apiVersion, kind := t.GVK.ToAPIVersionAndKind()
	rsp.RequireByName(requirement, apiVersion, kind, m.Namespace, name)
	found, looked := step.Required(req, requirement)
	if len(found) == 1 && metav1.IsControlledBy(found[0], m) {
		return &found[0], looked
	}
	return nil, looked
}

// requireSchemas requires the schemas of the VM's kind and of the kinds of its companions, if
// Crossplane supports that. It returns false while Crossplane has not looked for them yet.
func requireSchemas(req *fnv1.RunFunctionRequest, rsp step.Response, t vm.Template, companions []vm.Companion, o *vm.Observed) (missing *plan.Problem, complete bool) {
	validator, missing, complete := requireSchema(req, rsp, requirementSchema, t)
	o.Validator = validator
	another, looked := requireCompanionSchemas(req, rsp, companions, o)
	if missing == nil {
		missing = another
	}
	if !complete || !looked {
		return nil, false
	}
	return missing, true
}

// requireCompanionSchemas is requireSchemas for companions only.
func requireCompanionSchemas(req *fnv1.RunFunctionRequest, rsp step.Response, companions []vm.Companion, o *vm.Observed) (missing *plan.Problem, complete bool) {
	o.Validators, complete = map[string]*vm.Validator{}, true
	for _, c := range companions {
		validator, problem, looked := requireSchema(req, rsp, c.Name+suffixSchema, c.Template)
		o.Validators[c.Name] = validator
		complete = complete && looked
		if missing == nil {
			missing = problem
		}
	}
	if !complete {
		return nil, false
	}
	return missing, true
}

// requireSchema requires the schema of a kind, if Crossplane supports that. The validator is nil if
// there is no schema. The last result is false while Crossplane has not looked for it yet.
func requireSchema(req *fnv1.RunFunctionRequest, rsp step.Response, requirement string, t vm.Template) (*vm.Validator, *plan.Problem, bool) {
	if !request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return nil, nil, true
	}
	apiVersion, kind := t.GVK.ToAPIVersionAndKind()
	response.RequireSchema(rsp.RunFunctionResponse, requirement, apiVersion, kind)
	schema, looked := request.GetRequiredSchema(req, requirement)
	switch {
	case !looked:
		return nil, nil, false
	case schema == nil:
		return nil, t.NotInstalled(), true
	}
	// A schema that cannot be parsed is left to the API server.
	v, _ := validatorOf(schema)
	return v, nil, true
}

// hasKind reports whether the API server has a kind. Without the capability, it is assumed to have
// it. The last result is false while Crossplane has not looked for it yet.
func hasKind(req *fnv1.RunFunctionRequest, rsp step.Response, requirement string, gvk schema.GroupVersionKind) (has, looked bool) {
	if !request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return true, true
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	response.RequireSchema(rsp.RunFunctionResponse, requirement, apiVersion, kind)
	published, looked := request.GetRequiredSchema(req, requirement)
	return published != nil, looked
}

func observeVM(now time.Time, req *fnv1.RunFunctionRequest) (vm.Observed, error) {
	o := vm.Observed{Now: now, Machine: &machinev1alpha1.Machine{}, Companions: map[string]plan.Object{}}
	if err := step.Composite(req, o.Machine); err != nil {
		return o, err
	}
	raw := struct {
		Metadata map[string]any `json:"metadata"`
		Spec     map[string]any `json:"spec"`
	}{}
	if err := step.Composite(req, &raw); err != nil {
		return o, err
	}
	o.RawMachine = map[string]any{"metadata": raw.Metadata, "spec": raw.Spec}

	observed := step.Observed(req)
	for name, there := range observed {
		switch {
		case name == machinev1alpha1.ResourceVM:
			o.VM = &there
		case machinev1alpha1.IsCompanion(name):
			o.Companions[strings.TrimPrefix(name, machinev1alpha1.ResourceCompanionPrefix)] = there
		}
	}
	if _, err := step.Context(req, step.ContextBootstrap, &o.Bootstrap); err != nil {
		return o, err
	}
	report := &plan.InventoryReport{}
	if known, err := step.Context(req, step.ContextInventory, report); err != nil {
		return o, err
	} else if known {
		o.Inventory = report
	}
	missing := &plan.MissingConfig{}
	if known, err := step.Context(req, step.ContextMissingConfig, missing); err != nil {
		return o, err
	} else if known {
		o.MissingConfig = missing
	}
	node := workernode.WorkerNode{}
	if _, err := step.Context(req, step.ContextNode, &node); err != nil {
		return o, err
	}
	o.Node = node.Observation
	if o.Bootstrap.Key != "" {
		o.UserData = string(observed[machinev1alpha1.ResourceUserData].Connection[o.Bootstrap.Key])
	}
	o.Secrets = secretsOf(observed[machinev1alpha1.ResourceUserData])
	return o, nil
}

// secretsOf returns the secrets of user data: its join token, and the secret half of the token.
func secretsOf(userData plan.Object) []string {
	token := string(userData.Connection[clusterv1alpha1.ConnectionToken])
	if _, secret, found := strings.Cut(token, "."); found {
		return []string{token, secret}
	}
	return nil
}

// checkClass returns the problem with the VMs that Machines of a class and a template would get,
// before there is any. It renders one with the Composition's input Infrastructure, and validates it
// by the schema of its kind. The last result is false while Crossplane has not looked for that yet.
//
// If Crossplane does not show the schema, the check is left to the API server.
func checkClass(req *fnv1.RunFunctionRequest, rsp step.Response, composition plan.Object, class *machinev1alpha1.MachineClass, template *machinev1alpha1.Machine) (problem *plan.Problem, complete bool) {
	b, problem := vm.BindingOf(composition, class)
	if b == nil {
		return problem, true
	}
	o := vm.Specimen(class, template)
	profile, problem, looked := rsp.Profile(req, class)
	if problem != nil {
		return problem, true
	}
	// Schemas are required in the same call as the profile: each further call repeats all
	// requirements in its request, and Crossplane makes at most six.
	problem, complete = requireSchemas(req, rsp, b.VM, b.CompanionsOf(class), &o)
	lacking, known := lacksBootstraps(req, rsp, class)
	if !complete || !looked || !known {
		return nil, false
	}
	// Only the absence of schemas is a problem here.
	if lacking != nil {
		if packaged, known := arePackaged(req, rsp, clusterapi.BootstrapGroupVersionKind); packaged || !known {
			return nil, known
		}
		return lacking, true
	}
	if problem != nil {
		if installed, known := areInstalled(req, rsp, b, b.CompanionsOf(class)); installed || !known {
			return nil, known
		}
		return problem, true
	}
	if problem := vm.Check(b, o); problem != nil {
		return problem, true
	}
	return bootstrap.Check(composition, bootstrap.Observed{Machine: o.Machine, Class: class, Profile: profile}), true
}

// validators caches validators by the hash of their schema: parsing a schema costs more than
// validating with it.
var validators = lru.New(32)

// validatorOf returns the validator of a kind's published OpenAPI schema. It only reads the schema of
// the spec.
func validatorOf(schema *structpb.Struct) (*vm.Validator, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(schema)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(b)
	if v, ok := validators.Get(key); ok {
		return v.(*vm.Validator), nil //nolint:forcetypeassert // Nothing else is stored.
	}
	v, err := vm.NewValidator(schema.AsMap())
	if err != nil {
		return nil, err
	}
	validators.Add(key, v)
	return v, nil
}
