package vm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
)

// InvalidInput is the problem of a Composition whose input cannot be bound.
func InvalidInput(err error) *plan.Problem {
	return invalidBinding(fmt.Errorf("the Composition's input Infrastructure: %w", err))
}

func invalidBinding(err error) *plan.Problem {
	return &plan.Problem{Reason: machinev1alpha1.ReasonBindingInvalid, Message: truncate(err.Error())}
}

// A rendering has the resources that a class and a binding yield for one Machine.
type rendering struct {
	b  *Binding
	o  Observed
	vm *unstructured.Unstructured
	// companions by their names.
	companions map[string]*unstructured.Unstructured
	// variables of the expressions of fields.
	variables map[string]any
	// wrong are the problems that the API server would have with the resources.
	wrong problems
	// instanceType is the name of the variant of the class, "" if the class lists no instance types.
	instanceType string
}

func newRendering(b *Binding, o Observed) rendering {
	r := rendering{b: b, o: o, companions: map[string]*unstructured.Unstructured{}, variables: map[string]any{
		"machine":       o.RawMachine,
		"class":         rawClass(o.Class),
		"userData":      userData(o),
		"tags":          tags(o.Machine, o.Installation),
		"failureDomain": "",
		"companions":    map[string]any{},
	}}
	if fd := o.Machine.Spec.FailureDomain; fd != nil {
		r.variables["failureDomain"] = *fd
	}
	return r
}

// render creates a VM and its companions from their class and the fields of the binding. A
// reference to a companion uses the existing one, if there is one. A companion that is created after
// the VM is rendered with the desired VM, so that an invalid one is reported before anything is
// created.
func render(b *Binding, o Observed, instanceType string) (rendering, *plan.Problem) {
	r := newRendering(b, o)
	r.instanceType = instanceType
	if problem := unknownCompanion(b, o.Class); problem != nil {
		return r, problem
	}
	companions := b.CompanionsOf(o.Class)
	for _, c := range companions {
		if c.afterVM {
			continue
		}
		if problem := r.renderCompanion(c); problem != nil {
			return r, problem
		}
	}
	if problem := r.renderVM(companions); problem != nil {
		return r, problem
	}
	r.variables["vm"] = whole(r.vm.Object)
	for _, c := range companions {
		if !c.afterVM {
			continue
		}
		if problem := r.renderCompanion(c); problem != nil {
			return r, problem
		}
	}
	return r, r.wrong.of(o.Class)
}

func (r *rendering) renderVM(companions []Companion) *plan.Problem {
	o := r.o
	name := names.OfMachine(o.Machine.Name, o.Machine.UID)
	spec, problem := specOf(o.Class, o.Class.Spec.ForProvider, "")
	if problem != nil {
		return problem
	}
	r.vm = newResource(r.b.VM, o.Machine, name, spec)
	annotations := map[string]string{
		machinev1alpha1.AnnotationMachineUID: string(o.Machine.UID), machinev1alpha1.AnnotationNodeName: name,
		machinev1alpha1.AnnotationInstallation: o.Installation,
	}
	if r.instanceType != "" {
		annotations[machinev1alpha1.AnnotationInstanceType] = r.instanceType
	}
	var with []string
	for _, c := range companions {
		with = append(with, c.Name)
	}
	if len(with) > 0 {
		annotations[machinev1alpha1.AnnotationCompanions] = strings.Join(with, ",")
	}
	r.variables["name"] = name
	interval, err := r.b.pollIntervalOf(r.variables)
	if err != nil {
		return invalidBinding(err)
	}
	if interval != "" {
		annotations[meta.AnnotationKeyPollInterval] = interval
	}
	r.vm.SetAnnotations(annotations)
	return r.fillAndJudge(r.b.VM, "", r.vm, o.Validator)
}

// renderCompanion creates a companion, and adds it to the companions that the next expressions may
// use.
func (r *rendering) renderCompanion(c Companion) *plan.Problem {
	o := r.o
	spec, problem := specOf(c.of(o.Class))
	if problem != nil {
		return problem
	}
	made := newResource(c.Template, o.Machine, names.OfCompanion(o.Machine.Name, o.Machine.UID, c.Name), spec)
	annotations := map[string]string{machinev1alpha1.AnnotationOrder: strconv.Itoa(r.b.orderOf(c.Name))}
	if c.afterVM {
		annotations[machinev1alpha1.AnnotationAfterVM] = "true"
	}
	made.SetAnnotations(annotations)
	r.variables["name"] = made.GetName()
	if problem := r.fillAndJudge(c.Template, c.inClass(), made, o.Validators[c.Name]); problem != nil {
		return problem
	}
	r.companions[c.Name] = made
	value := whole(made.Object)
	if there, ok := o.Companions[c.Name]; ok {
		value = whole(there.Object)
	}
	if known, ok := r.variables["companions"].(map[string]any); ok {
		known[c.Name] = value
	}
	return nil
}

// fillAndJudge sets the fields of the binding in a resource, and adds the problems that the API
// server would have with it. The returned problem is one of the binding.
func (r *rendering) fillAndJudge(t Template, inClass string, made *unstructured.Unstructured, v *Validator) *plan.Problem {
	set, problem := fill(t, r.o, inClass, made, r.variables)
	if problem != nil {
		return problem
	}
	r.wrong.judge(t, set, inClass, made, v)
	v.finalize(made)
	return nil
}

// userData lacks the value as long as it is unknown, so that no VM is created with empty user data.
func userData(o Observed) map[string]string {
	out := map[string]string{"secretName": o.Bootstrap.SecretName, "key": o.Bootstrap.Key}
	if o.UserData != "" {
		out["value"] = o.UserData
	}
	return out
}

// fill sets the fields of the binding in a resource, and returns their paths. Each remaining field
// keeps the value of the class. inClass is the prefix of the class's paths in messages.
func fill(t Template, o Observed, inClass string, made *unstructured.Unstructured, variables map[string]any) (map[string]bool, *plan.Problem) {
	paved, set := fieldpath.Pave(made.Object), map[string]bool{}
	for _, f := range t.fields {
		value, err := f.value.eval(variables)
		if err != nil {
			return nil, invalidBinding(err)
		}
		if value == nil {
			continue
		}
		set[f.path] = true
		if err := place(paved, f.path, value); err != nil {
			return nil, problemOf(machinev1alpha1.ReasonForProviderInvalid, o.Class, fmt.Sprintf("%s%s: has no room for what Drover sets there: %v", inClass, strings.TrimPrefix(f.path, "spec."), err))
		}
	}
	return set, nil
}

// problems that the API server would have with the rendered resources.
type problems struct{ ofBinding, ofClass []string }

func (p *problems) judge(t Template, set map[string]bool, inClass string, made *unstructured.Unstructured, v *Validator) {
	spec, ok := made.Object["spec"].(map[string]any)
	if v == nil || !ok {
		return
	}
	ofBinding, ofClass := t.explain(set, inClass, v.validate(spec))
	p.ofBinding, p.ofClass = append(p.ofBinding, ofBinding...), append(p.ofClass, ofClass...)
}

// of returns one problem for all, preferably of the class.
func (p problems) of(class *machinev1alpha1.MachineClass) *plan.Problem {
	switch {
	case len(p.ofClass) > 0:
		return problemOf(machinev1alpha1.ReasonForProviderInvalid, class, some(p.ofClass))
	case len(p.ofBinding) > 0:
		return &plan.Problem{Reason: machinev1alpha1.ReasonBindingInvalid, Message: some(p.ofBinding)}
	}
	return nil
}

// newResource returns a resource with only the fields that all resources have.
func newResource(t Template, m *machinev1alpha1.Machine, name string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(t.GVK)
	made.SetName(name)
	made.SetLabels(map[string]string{machinev1alpha1.LabelMachine: m.Name})
	return made
}

// specOf returns the spec of a resource from its class, at a path.
func specOf(c *machinev1alpha1.MachineClass, raw *runtime.RawExtension, inClass string) (map[string]any, *plan.Problem) {
	forProvider, err := decode(raw)
	if err != nil {
		return nil, problemOf(machinev1alpha1.ReasonForProviderInvalid, c, fmt.Sprintf("%sforProvider: must be an object: %v", inClass, err))
	}
	return map[string]any{
		"forProvider": forProvider,
		"providerConfigRef": map[string]any{
			"kind": c.Spec.ProviderConfigRef.Kind,
			"name": c.Spec.ProviderConfigRef.Name,
		},
	}, nil
}

func decode(raw *runtime.RawExtension) (map[string]any, error) {
	forProvider := map[string]any{}
	if raw == nil || len(raw.Raw) == 0 {
		return forProvider, nil
	}
	return forProvider, kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &forProvider)
}

// place a value at a path. A map is merged over an existing one.
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

// rawClass returns the class for expressions. forProvider is always there, but other optional
// fields may be missing.
func rawClass(c *machinev1alpha1.MachineClass) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return map[string]any{}
	}
	spec, ok := m["spec"].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	// The converter's forProvider has another type of numbers.
	spec["forProvider"], _ = decode(c.Spec.ForProvider)
	companions := map[string]any{}
	for name, companion := range c.Spec.Companions {
		forProvider, _ := decode(companion.ForProvider)
		companions[name] = map[string]any{"forProvider": forProvider}
	}
	spec["companions"] = companions
	return map[string]any{"metadata": m["metadata"], "spec": spec}
}

func problemOf(reason string, c *machinev1alpha1.MachineClass, message string) *plan.Problem {
	return &plan.Problem{Reason: reason, Message: truncate(fmt.Sprintf("%s: %s", c.Reference(), message))}
}

// some returns the first messages. They are enough for a user to continue.
func some(messages []string) string {
	const most = 5
	if len(messages) <= most {
		return strings.Join(messages, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(messages[:most], "; "), len(messages)-most)
}

// unknownCompanion returns the problem of a class with a companion that is not in the binding.
func unknownCompanion(b *Binding, class *machinev1alpha1.MachineClass) *plan.Problem {
	known := make([]string, 0, len(b.companions))
	for _, c := range b.companions {
		known = append(known, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(class.Spec.Companions)) {
		if slices.Contains(known, name) {
			continue
		}
		has := "none"
		if len(known) > 0 {
			has = strings.Join(known, ", ")
		}
		return problemOf(machinev1alpha1.ReasonForProviderInvalid, class, fmt.Sprintf("companions.%s: VMs of provider %q have no such companion: they may have %s", name, b.provider, has))
	}
	return nil
}
