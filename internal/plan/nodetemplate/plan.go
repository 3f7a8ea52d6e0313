// Package nodetemplate decides which NodeTemplate a MachineDeployment or MachineSet gets. It
// describes the Nodes to the cluster-autoscaler before any exists.
//
// The autoscaler reads spec.template.spec.infrastructureRef, and then status.capacity and
// status.nodeInfo of the object that it names. A NodeTemplate is created only if the template has
// the reference: nothing reads it otherwise, and objects of the two kinds may have the same name.
package nodetemplate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/vm"
)

const refField = "spec.template.spec.infrastructureRef"

// Observed is the view of the planner.
type Observed struct {
	// Owner is the MachineDeployment or MachineSet.
	Owner metav1.Object
	Kind  string
	// Ref of the owner's template, nil if there is none.
	Ref *machinev1alpha1.InfrastructureReference
	// Class of a Machine that would be created now, nil if no class can be used.
	Class *machinev1alpha1.MachineClass
	// Derived is the capacity that the provider's Composition derives from the class, nil if it
	// derives none. Memory is that of the VM.
	Derived *machinev1alpha1.NodeCapacity
	// InstanceTypes are the Nodes of the instance types of the class, if it lists any. Derived is nil then.
	InstanceTypes []vm.NodeOfInstanceType
	// NotDerived is the reason why the Composition could not derive the capacity, "" if it could or
	// does not derive any.
	NotDerived string
	// There is the existing NodeTemplate of the owner's name, nil if there is none.
	There *machinev1alpha1.NodeTemplate
}

// A Decision is the output of the planner.
type Decision struct {
	// NodeTemplate is nil if none shall exist.
	NodeTemplate *machinev1alpha1.NodeTemplate
	// Condition is nil for an owner that does not request a NodeTemplate.
	Condition *plan.Condition
}

// Asks reports whether a template requests a NodeTemplate under the name of its owner.
func Asks(ref *machinev1alpha1.InfrastructureReference, owner string) bool {
	return ref.IsNodeTemplate() && ref.Name == owner
}

// Plan decides the NodeTemplate and the condition of an owner.
func Plan(o Observed) Decision {
	switch {
	case !o.Ref.IsNodeTemplate():
		return Decision{}
	case !Asks(o.Ref, o.Owner.GetName()):
		return invalid("%s.name: is %q: must be %q, the name of the %s", refField, o.Ref.Name, o.Owner.GetName(), o.Kind)
	case o.There != nil && !metav1.IsControlledBy(o.There, o.Owner):
		return invalid("%s.name: the NodeTemplate %q is of %s: rename the %s", refField, o.Ref.Name, ownerOf(o.There), o.Kind)
	}
	status, ok := statusOf(o)
	d := Decision{NodeTemplate: newNodeTemplate(o.Owner, status)}
	switch {
	case !ok:
		d.Condition = no(machinev1alpha1.ReasonNodeCapacityUnknown, "the class of the template cannot be used")
	case !plan.HasCPUAndMemory(&machinev1alpha1.NodeCapacity{Capacity: status.Capacity}):
		d.Condition = unknown(o)
	default:
		d.Condition = &plan.Condition{Type: machinev1alpha1.ConditionScalesFromZero, Status: "True", Reason: machinev1alpha1.ReasonNodeCapacityKnown}
	}
	return d
}

// statusOf returns the status for the Nodes of the class. Without a usable class it returns the
// existing status and false.
func statusOf(o Observed) (machinev1alpha1.NodeTemplateStatus, bool) {
	status := machinev1alpha1.NodeTemplateStatus{}
	if o.Class == nil {
		if o.There != nil {
			status = o.There.Status
		}
		return status, false
	}
	if c := plan.MergedCapacity(plan.CapacityOfNode(o.Derived), o.smallest(), o.Class.Spec.NodeCapacity); c != nil {
		status.Capacity, status.NodeInfo.Architecture, status.NodeInfo.OperatingSystem = c.Capacity, c.Architecture, c.OperatingSystem
	}
	if pods := o.Class.Spec.Kubelet.MaxPods; pods != nil && status.Capacity != nil {
		// The kubelet is configured with this value, so it overrides that of the class.
		status.Capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(*pods), resource.DecimalSI)
	}
	return status, true
}

// smallest returns the capacity that a Node of any instance type of the class has at least, nil if that is not known.
func (o Observed) smallest() *machinev1alpha1.NodeCapacity {
	all := make([]*machinev1alpha1.NodeCapacity, 0, len(o.InstanceTypes))
	for _, t := range o.InstanceTypes {
		if !plan.HasCPUAndMemory(t.Capacity) {
			return nil
		}
		all = append(all, t.Capacity)
	}
	return plan.SmallestCapacity(all)
}

func unknown(o Observed) *plan.Condition {
	why := ""
	for _, t := range o.InstanceTypes {
		if !plan.HasCPUAndMemory(t.Capacity) {
			why = fmt.Sprintf(" or in spec.instanceTypes %q", t.Name)
			break
		}
	}
	if o.NotDerived != "" {
		why += ", and it cannot be derived from spec.forProvider: " + o.NotDerived
	}
	return no(machinev1alpha1.ReasonNodeCapacityUnknown,
		"%s has no cpu and memory in spec.nodeCapacity.capacity%s: the cluster-autoscaler cannot scale up from zero", o.Class.Reference(), why)
}

// Lacks reports whether a class does not specify the cpu and the memory of its Nodes.
func Lacks(class *machinev1alpha1.MachineClass) bool {
	return !plan.HasCPUAndMemory(class.Spec.NodeCapacity)
}

func newNodeTemplate(owner metav1.Object, status machinev1alpha1.NodeTemplateStatus) *machinev1alpha1.NodeTemplate {
	t := &machinev1alpha1.NodeTemplate{Status: status}
	t.SetGroupVersionKind(machinev1alpha1.NodeTemplateGroupVersionKind)
	t.Namespace, t.Name = owner.GetNamespace(), owner.GetName()
	return t
}

func ownerOf(t *machinev1alpha1.NodeTemplate) string {
	if by := metav1.GetControllerOfNoCopy(t); by != nil {
		return fmt.Sprintf("%s %q", by.Kind, by.Name)
	}
	return "no owner"
}

func invalid(format string, args ...any) Decision {
	return Decision{Condition: no(machinev1alpha1.ReasonInfrastructureRefInvalid, format, args...)}
}

func no(reason, format string, args ...any) *plan.Condition {
	return &plan.Condition{Type: machinev1alpha1.ConditionScalesFromZero, Status: "False", Reason: reason, Message: fmt.Sprintf(format, args...)}
}
