package vm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/jsonmap"
	"github.com/drover-dev/drover/internal/plan"
)

// A variant is a class with one of its instance types. A class that lists none has one variant without a name.
type variant struct {
	machinev1alpha1.InstanceType
	// class has the forProvider of the instance type.
	class *machinev1alpha1.MachineClass
}

// variantsOf returns the variants of a class in the order in which they are tried.
func (b *Binding) variantsOf(class *machinev1alpha1.MachineClass) ([]variant, *plan.Problem) {
	if len(class.Spec.InstanceTypes) == 0 {
		return []variant{{class: class}}, nil
	}
	out := make([]variant, 0, len(class.Spec.InstanceTypes))
	for i, t := range class.Spec.InstanceTypes {
		v, problem := b.variantOf(class, i)
		if problem != nil {
			return nil, problem
		}
		if j := slices.IndexFunc(out, func(o variant) bool {
			return string(o.class.Spec.ForProvider.Raw) == string(v.class.Spec.ForProvider.Raw)
		}); j >= 0 {
			return nil, problemOf(machinev1alpha1.ReasonForProviderInvalid, class, fmt.Sprintf("instanceTypes[%d]: %q requests the same VM as %q: remove one, or set another instanceType or forProvider", i, t.Name, out[j].Name))
		}
		out = append(out, v)
	}
	if class.Spec.AllocationStrategy == machinev1alpha1.AllocationLowestPrice {
		slices.SortStableFunc(out, func(x, y variant) int {
			switch px, py := x.price(), y.price(); {
			case px < py:
				return -1
			case px > py:
				return 1
			}
			return 0
		})
	}
	return out, nil
}

// price of an entry. The schema allows numbers only.
func (v variant) price() float64 {
	p, _ := strconv.ParseFloat(v.Price, 64)
	return p
}

// variantOf returns the variant of one entry.
func (b *Binding) variantOf(class *machinev1alpha1.MachineClass, i int) (variant, *plan.Problem) {
	t := class.Spec.InstanceTypes[i]
	invalid := func(format string, args ...any) (variant, *plan.Problem) {
		return variant{}, problemOf(machinev1alpha1.ReasonForProviderInvalid, class, fmt.Sprintf(format, args...))
	}
	forProvider, err := decode(class.Spec.ForProvider)
	if err != nil {
		return invalid("forProvider: must be an object: %v", err)
	}
	own, err := decode(t.ForProvider)
	if err != nil {
		return invalid("instanceTypes[%d].forProvider: must be an object: %v", i, err)
	}
	field := strings.TrimPrefix(b.instanceTypePath, "spec.")
	if b.instanceTypePath == "" {
		switch {
		case t.InstanceType != "":
			return invalid("instanceTypes[%d].instanceType: is %q: must be absent, because VMs of provider %q have no field for an instance type: set the size in instanceTypes[%d].forProvider", i, t.InstanceType, b.provider, i)
		case len(own) == 0:
			return invalid("instanceTypes[%d].forProvider: must have the size, because VMs of provider %q have no field for an instance type", i, b.provider)
		}
	} else {
		if is, ok := valueAt(forProvider, b.instanceTypePath); ok {
			return invalid("%s: is %v: must be absent, because instanceTypes lists the instance types: add it there", field, is)
		}
		if is, ok := valueAt(own, b.instanceTypePath); ok {
			return invalid("instanceTypes[%d].%s: is %v: must be absent: set instanceTypes[%d].instanceType", i, field, is, i)
		}
	}
	jsonmap.Merge(forProvider, own)
	whole := map[string]any{"spec": map[string]any{"forProvider": forProvider}}
	if b.instanceTypePath != "" {
		if err := fieldpath.Pave(whole).SetValue(b.instanceTypePath, t.Type()); err != nil {
			return invalid("%s: has no room for the instance type: %v", field, err)
		}
	}
	raw, err := json.Marshal(forProvider)
	if err != nil {
		return invalid("instanceTypes[%d].forProvider: %v", i, err)
	}
	v := variant{InstanceType: t, class: class.DeepCopy()}
	v.class.Spec.ForProvider = &runtime.RawExtension{Raw: raw}
	return v, nil
}

// valueAt returns the value of a field in forProvider, by its path in the VM resource.
func valueAt(forProvider map[string]any, path string) (any, bool) {
	v, err := fieldpath.Pave(map[string]any{"spec": map[string]any{"forProvider": forProvider}}).GetValue(path)
	return v, err == nil
}

// classFor returns the class of a VM with the instance type that the VM was requested with.
func (b *Binding) classFor(class *machinev1alpha1.MachineClass, vm plan.Object) *machinev1alpha1.MachineClass {
	name := vm.GetAnnotations()[machinev1alpha1.AnnotationInstanceType]
	if i := slices.IndexFunc(class.Spec.InstanceTypes, func(t machinev1alpha1.InstanceType) bool { return t.Name == name }); i >= 0 {
		if v, problem := b.variantOf(class, i); problem == nil {
			return v.class
		}
	}
	return class
}

// renderVariant renders the VM of a variant. A problem names the entry of the class.
func renderVariant(b *Binding, o Observed, v variant) (rendering, *plan.Problem) {
	class := o.Class
	o.Class = v.class
	made, problem := render(b, o, v.Name)
	if problem != nil && v.Name != "" && problem.Reason == machinev1alpha1.ReasonForProviderInvalid {
		of := class.Reference().String() + ": "
		problem = &plan.Problem{Reason: problem.Reason, Message: truncate(of + fmt.Sprintf("instanceTypes %q: ", v.Name) + strings.TrimPrefix(problem.Message, of))}
	}
	return made, problem
}

// A NodeOfInstanceType is a Node of one of the instance types of a class.
type NodeOfInstanceType struct {
	Name string
	// Capacity that the class specifies, and that the binding derives from the instance type. It is nil if both are
	// unknown.
	Capacity *machinev1alpha1.NodeCapacity
}

// NodesOf returns the Nodes of the instance types of a class, in the order in which they are tried. There are none if the
// class lists none. The error is the first one of the expression that derives the capacity.
func (b *Binding) NodesOf(class *machinev1alpha1.MachineClass) ([]NodeOfInstanceType, error) {
	if len(class.Spec.InstanceTypes) == 0 {
		return nil, nil
	}
	variants, problem := b.variantsOf(class)
	if problem != nil {
		return nil, fmt.Errorf("%s", problem.Message)
	}
	var first error
	out := make([]NodeOfInstanceType, 0, len(variants))
	for _, v := range variants {
		capacity, err := b.capacityOf(v)
		if err != nil && first == nil {
			first = err
		}
		out = append(out, NodeOfInstanceType{Name: v.Name, Capacity: capacity})
	}
	return out, first
}

// capacityOf returns the capacity of a Node of the variant.
func (b *Binding) capacityOf(v variant) (*machinev1alpha1.NodeCapacity, error) {
	derived, err := b.NodeCapacity(v.class)
	return plan.MergedCapacity(plan.CapacityOfNode(derived), v.InstanceType.NodeCapacity), err
}
