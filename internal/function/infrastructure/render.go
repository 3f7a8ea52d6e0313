package infrastructure

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
)

// Reasons of problems with a class or a binding.
const (
	ReasonProviderMismatch   = "ProviderMismatch"
	ReasonBindingInvalid     = "BindingInvalid"
	ReasonForProviderInvalid = "ForProviderInvalid"
)

// render makes a VM from its class and what the binding places into it.
func render(b *binding, o Observed) (*unstructured.Unstructured, *step.Problem) {
	spec, problem := specOf(o.Class)
	if problem != nil {
		return nil, problem
	}
	vm := newVM(b, o.Machine, spec)

	variables := map[string]any{
		"machine":       o.RawMachine,
		"class":         rawClass(o.Class, spec),
		"name":          vm.GetName(),
		"userData":      map[string]string{"secretName": o.Bootstrap.SecretName, "key": o.Bootstrap.Key, "value": o.UserData},
		"tags":          tags(o.Machine, o.Installation),
		"failureDomain": "",
	}
	if fd := o.Machine.Spec.FailureDomain; fd != nil {
		variables["failureDomain"] = *fd
	}
	paved := fieldpath.Pave(vm.Object)
	for _, f := range b.fields {
		v, err := f.value.eval(variables)
		if err != nil {
			return nil, &step.Problem{Reason: ReasonBindingInvalid, Message: truncate(err.Error())}
		}
		if v == nil {
			continue
		}
		if err := place(paved, f.path, v); err != nil {
			return nil, problemOf(ReasonForProviderInvalid, o.Class, fmt.Sprintf("%s: has no room for what Drover sets there: %v", strings.TrimPrefix(f.path, "spec."), err))
		}
	}
	return vm, validate(b, o, vm)
}

func validate(b *binding, o Observed, vm *unstructured.Unstructured) *step.Problem {
	if o.Validator == nil {
		return nil
	}
	spec, _, err := unstructured.NestedMap(vm.Object, "spec")
	if err != nil {
		return &step.Problem{Reason: ReasonBindingInvalid, Message: err.Error()}
	}
	ofBinding, ofClass := b.explain(o.Validator.validate(spec))
	switch {
	case len(ofClass) > 0:
		return problemOf(ReasonForProviderInvalid, o.Class, some(ofClass))
	case len(ofBinding) > 0:
		return &step.Problem{Reason: ReasonBindingInvalid, Message: some(ofBinding)}
	}
	return nil
}

// newVM is a VM resource with nothing but what each has.
func newVM(b *binding, m *machinev1alpha1.Machine, spec map[string]any) *unstructured.Unstructured {
	vm := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	vm.SetGroupVersionKind(b.vm)
	vm.SetName(names.OfMachine(m.Name, m.UID))
	vm.SetLabels(map[string]string{machinev1alpha1.LabelMachine: m.Name})
	return vm
}

// specOf a VM, as its class has it.
func specOf(c *machinev1alpha1.MachineClass) (map[string]any, *step.Problem) {
	forProvider := map[string]any{}
	if raw := c.Spec.ForProvider; raw != nil && len(raw.Raw) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &forProvider); err != nil {
			return nil, problemOf(ReasonForProviderInvalid, c, fmt.Sprintf("forProvider: must be an object: %v", err))
		}
	}
	return map[string]any{
		"forProvider": forProvider,
		"providerConfigRef": map[string]any{
			"kind": c.Spec.ProviderConfigRef.Kind,
			"name": c.Spec.ProviderConfigRef.Name,
		},
	}, nil
}

// place a value at a path. A map is merged over the one that is there.
func place(paved *fieldpath.Paved, path string, value any) error {
	if m, ok := value.(map[string]any); ok {
		if there, err := paved.GetValue(path); err == nil {
			if t, ok := there.(map[string]any); ok {
				merged := runtime.DeepCopyJSON(t)
				for k, v := range m {
					merged[k] = v
				}
				value = merged
			}
		}
	}
	return paved.SetValue(path, value)
}

func tags(m *machinev1alpha1.Machine, installation string) map[string]string {
	return map[string]string{
		machinev1alpha1.TagInstallation: installation,

		machinev1alpha1.TagCluster:    m.Spec.ClusterRef.Name,
		machinev1alpha1.TagNamespace:  m.Namespace,
		machinev1alpha1.TagMachine:    m.Name,
		machinev1alpha1.TagMachineUID: string(m.UID),
	}
}

// rawClass is the class as an expression sees it. What a class may leave out is
// not always there.
func rawClass(c *machinev1alpha1.MachineClass, spec map[string]any) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return map[string]any{}
	}
	if s, ok := m["spec"].(map[string]any); ok {
		s["forProvider"] = runtime.DeepCopyJSON(spec)["forProvider"]
	}
	return map[string]any{"metadata": m["metadata"], "spec": m["spec"]}
}

func problemOf(reason string, c *machinev1alpha1.MachineClass, message string) *step.Problem {
	return &step.Problem{Reason: reason, Message: truncate(fmt.Sprintf("MachineClass %q: %s", c.Name, message))}
}

// some of the messages are enough to go on with.
func some(messages []string) string {
	const most = 5
	if len(messages) <= most {
		return strings.Join(messages, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(messages[:most], "; "), len(messages)-most)
}
