package infrastructure

import (
	"fmt"
	"strings"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/response"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
)

const (
	requirementSchema = "virtual-machine-schema"
	requirementVM     = "virtual-machine"

	// Those of companions have their names before them.
	suffixSchema    = "-schema"
	suffixCompanion = "-companion"
)

// Run the step. An error means that nothing can be said of the Machine, and that
// all shall stay as it is.
func Run(_ time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := &fn.Infrastructure{}
	if err := step.Input(req, input); err != nil {
		return nil, err
	}
	b, err := bind(input)
	var invalid *step.Problem
	if err != nil {
		invalid = &step.Problem{Reason: ReasonBindingInvalid, Message: truncate("the Composition's input Infrastructure: " + err.Error())}
	}
	o, err := observe(req)
	if err != nil {
		return nil, err
	}

	rsp := step.NewResponse(req)
	complete := true
	switch {
	case b == nil:
	case o.VM == nil || !o.begun():
		invalid, complete = lookUp(req, rsp, b, &o)
	default:
		complete = lookUpForgotten(req, rsp, b, &o)
	}
	if !complete {
		return rsp.RunFunctionResponse, nil
	}

	d := Plan(b, invalid, o)
	if d.VM != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceVM, d.VM, d.Word.State == step.VMRunning); err != nil {
			return nil, err
		}
	}
	for name, c := range d.Companions {
		ready := o.Companions[name].Unstructured != nil && conditionsOf(o.Companions[name].Unstructured).Get(xpv1.TypeReady).Status == corev1.ConditionTrue
		if err := rsp.Compose(machinev1alpha1.ResourceCompanionPrefix+name, c, ready); err != nil {
			return nil, err
		}
	}
	return rsp.RunFunctionResponse, rsp.SetContext(step.ContextVM, d.Word)
}

// lookUp what is needed to create a VM: the class, the schema of the VM, and the
// VM itself, which a stale write of the Machine may have forgotten. It is false
// while Crossplane has not looked for all of it yet.
func lookUp(req *fnv1.RunFunctionRequest, rsp step.Response, b *binding, o *Observed) (invalid *step.Problem, complete bool) {
	rsp.RequireClass(o.Machine)
	rsp.RequireInstallation()
	class, problem, looked := step.Class(req, o.Machine, "spec.classRef.name")
	installation, unknown, looked2 := step.Installation(req)
	if !looked || !looked2 {
		return nil, false
	}
	o.Class, o.ClassProblem = class, problem
	o.Installation, o.InstallationProblem = installation, unknown

	// To look for a VM of a kind that is not there is an error of the whole pipeline.
	if problem, complete := requireSchemas(req, rsp, b, o); problem != nil || !complete {
		return problem, complete
	}
	complete = true
	if o.VM == nil {
		found, looked := lookFor(req, rsp, requirementVM, b.vm, names.OfMachine(o.Machine.Name, o.Machine.UID), o.Machine)
		o.VM, complete = found, looked
	}
	for _, c := range b.companionsOf(o.Class) {
		complete = lookForCompanion(req, rsp, c, o) && complete
	}
	return nil, complete
}

// lookUpForgotten looks for companions of a VM that is there: nobody deletes those that
// the Machine does not refer to. It is false while Crossplane has not looked for them.
func lookUpForgotten(req *fnv1.RunFunctionRequest, rsp step.Response, b *binding, o *Observed) bool {
	complete := true
	for _, c := range b.companionsMade(*o.VM) {
		if _, ok := o.Companions[c.name]; ok {
			continue
		}
		// The API server may have lost the kind since.
		there, looked := hasKind(req, rsp, c.name+suffixSchema, c.template)
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

func lookForCompanion(req *fnv1.RunFunctionRequest, rsp step.Response, c companion, o *Observed) bool {
	if _, ok := o.Companions[c.name]; ok {
		return true
	}
	found, looked := lookFor(req, rsp, c.name+suffixCompanion, c.template, names.OfCompanion(o.Machine.Name, o.Machine.UID, c.name), o.Machine)
	if found != nil {
		o.Companions[c.name] = *found
	}
	return looked
}

// lookFor a resource of the Machine, by its name. It is false while Crossplane has not.
func lookFor(req *fnv1.RunFunctionRequest, rsp step.Response, requirement string, t template, name string, m *machinev1alpha1.Machine) (*step.Object, bool) {
	apiVersion, kind := t.gvk.ToAPIVersionAndKind()
	rsp.RequireByName(requirement, apiVersion, kind, m.Namespace, name)
	found, looked := step.Required(req, requirement)
	if len(found) == 1 && metav1.IsControlledBy(found[0], m) {
		return &found[0], looked
	}
	return nil, looked
}

// requireSchemas of the VM's kind and of its companions', if Crossplane shows any. It is
// false while it has not looked for them.
func requireSchemas(req *fnv1.RunFunctionRequest, rsp step.Response, b *binding, o *Observed) (missing *step.Problem, complete bool) {
	if !request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return nil, true
	}
	complete = true
	o.Validators = map[string]*validator{}
	one := func(requirement string, t template) *validator {
		apiVersion, kind := t.gvk.ToAPIVersionAndKind()
		response.RequireSchema(rsp.RunFunctionResponse, requirement, apiVersion, kind)
		schema, looked := request.GetRequiredSchema(req, requirement)
		switch {
		case !looked:
			complete = false
		case schema == nil && missing == nil:
			missing = noSuchKind(t)
		case schema != nil:
			// A schema that is not understood is left to the API server.
			v, _ := validatorOf(schema)
			return v
		}
		return nil
	}
	o.Validator = one(requirementSchema, b.vm)
	for _, c := range b.companionsOf(o.Class) {
		o.Validators[c.name] = one(c.name+suffixSchema, c.template)
	}
	if !complete {
		return nil, false
	}
	return missing, true
}

// hasKind says whether the API server has a kind, and is false while Crossplane has not
// looked for it. Without the capability nobody knows, and it is taken to have it.
func hasKind(req *fnv1.RunFunctionRequest, rsp step.Response, requirement string, t template) (has, looked bool) {
	if !request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return true, true
	}
	apiVersion, kind := t.gvk.ToAPIVersionAndKind()
	response.RequireSchema(rsp.RunFunctionResponse, requirement, apiVersion, kind)
	schema, looked := request.GetRequiredSchema(req, requirement)
	return schema != nil, looked
}

func noSuchKind(t template) *step.Problem {
	apiVersion, kind := t.gvk.ToAPIVersionAndKind()
	return &step.Problem{
		Reason:  ReasonBindingInvalid,
		Message: fmt.Sprintf("%s: the API server has no kind %s of %s: is its provider installed?", t.place, kind, apiVersion),
	}
}

func observe(req *fnv1.RunFunctionRequest) (Observed, error) {
	o := Observed{Machine: &machinev1alpha1.Machine{}, Companions: map[string]step.Object{}}
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
	if o.Bootstrap.Key != "" {
		o.UserData = string(observed[machinev1alpha1.ResourceUserData].Connection[o.Bootstrap.Key])
	}
	return o, nil
}
