package infrastructure

import (
	"encoding/base64"
	"fmt"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/response"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
)

const (
	requirementSchema = "virtual-machine-schema"
	requirementVM     = "virtual-machine"
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
	if b != nil && (o.VM == nil || !o.begun()) {
		var complete bool
		if invalid, complete = lookUp(req, rsp, b, &o); !complete {
			return rsp.RunFunctionResponse, nil
		}
	}

	d := Plan(b, invalid, o)
	if d.VM != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceVM, d.VM, d.Word.State == step.VMRunning); err != nil {
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

	apiVersion, kind := b.vm.ToAPIVersionAndKind()
	if request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		response.RequireSchema(rsp.RunFunctionResponse, requirementSchema, apiVersion, kind)
		schema, looked := request.GetRequiredSchema(req, requirementSchema)
		if !looked {
			return nil, false
		}
		if schema == nil {
			// To look for a VM of a kind that is not there is an error of the
			// whole pipeline.
			return noSuchKind(b), true
		}
		// A schema that is not understood is left to the API server.
		o.Validator, _ = validatorOf(schema)
	}

	if o.VM == nil {
		rsp.RequireByName(requirementVM, apiVersion, kind, o.Machine.Namespace, names.OfMachine(o.Machine.Name, o.Machine.UID))
		found, looked := step.Required(req, requirementVM)
		if !looked {
			return nil, false
		}
		if len(found) == 1 && metav1.IsControlledBy(found[0], o.Machine) {
			o.VM = &found[0]
		}
	}
	return nil, true
}

func noSuchKind(b *binding) *step.Problem {
	apiVersion, kind := b.vm.ToAPIVersionAndKind()
	return &step.Problem{
		Reason:  ReasonBindingInvalid,
		Message: fmt.Sprintf("virtualMachine: the API server has no kind %s of %s: is its provider installed?", kind, apiVersion),
	}
}

func observe(req *fnv1.RunFunctionRequest) (Observed, error) {
	o := Observed{Machine: &machinev1alpha1.Machine{}}
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

	if vm, ok := step.Observed(req)[machinev1alpha1.ResourceVM]; ok {
		o.VM = &vm
	}
	if _, err := step.Context(req, step.ContextBootstrap, &o.Bootstrap); err != nil {
		return o, err
	}
	if s, ok := step.Desired(req, machinev1alpha1.ResourceUserData); ok && o.Bootstrap.Key != "" {
		encoded, _, _ := unstructured.NestedString(s.Object, "data", o.Bootstrap.Key)
		b, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return o, fmt.Errorf("cannot read key %q of Secret %q: %w", o.Bootstrap.Key, s.GetName(), err)
		}
		o.UserData = string(b)
	}
	return o, nil
}
