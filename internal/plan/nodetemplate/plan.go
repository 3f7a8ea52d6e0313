// Package nodetemplate decides which NodeTemplate a MachineDeployment or MachineSet gets. It
// describes the Nodes to the cluster-autoscaler before any exists.
//
// The autoscaler reads spec.template.spec.infrastructureRef, and then status.capacity and
// status.nodeInfo of the object that it names. A NodeTemplate is created only if the template has
// the reference: nothing reads it otherwise, and objects of the two kinds may have the same name.
package nodetemplate

import (
	"cmp"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
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
	case !isKnown(status.Capacity):
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
	for _, c := range []*machinev1alpha1.NodeCapacity{usable(o.Derived), o.Class.Spec.NodeCapacity} {
		if c == nil {
			continue
		}
		if len(c.Capacity) > 0 && status.Capacity == nil {
			status.Capacity = corev1.ResourceList{}
		}
		maps.Copy(status.Capacity, c.Capacity)
		status.NodeInfo.Architecture = cmp.Or(c.Architecture, status.NodeInfo.Architecture)
		status.NodeInfo.OperatingSystem = cmp.Or(c.OperatingSystem, status.NodeInfo.OperatingSystem)
	}
	if pods := o.Class.Spec.Kubelet.MaxPods; pods != nil && status.Capacity != nil {
		// The kubelet is configured with this value, so it overrides that of the class.
		status.Capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(*pods), resource.DecimalSI)
	}
	return status, true
}

// The firmware and the kernel of a VM reserve some of its memory, which the Node does not report.
// If the reported capacity is too high, the autoscaler creates Nodes on which its pods do not fit.
// If it is a little too low, only that difference is lost. Karpenter subtracts as much by default.
const usablePerMille int64 = 925

// usable returns the capacity of the Node of a VM, from the capacity of the VM.
func usable(vm *machinev1alpha1.NodeCapacity) *machinev1alpha1.NodeCapacity {
	if vm == nil {
		return nil
	}
	c := vm.DeepCopy()
	const mebi int64 = 1 << 20
	memory := c.Capacity[corev1.ResourceMemory]
	c.Capacity[corev1.ResourceMemory] = *resource.NewQuantity(memory.Value()/1000*usablePerMille/mebi*mebi, resource.BinarySI)
	return c
}

func unknown(o Observed) *plan.Condition {
	why := ""
	if o.NotDerived != "" {
		why = ", and it cannot be derived from spec.forProvider: " + o.NotDerived
	}
	return no(machinev1alpha1.ReasonNodeCapacityUnknown,
		"%s has no cpu and memory in spec.nodeCapacity.capacity%s: the cluster-autoscaler cannot scale up from zero", o.Class.Reference(), why)
}

// Lacks reports whether a class does not specify the cpu and the memory of its Nodes.
func Lacks(class *machinev1alpha1.MachineClass) bool {
	return class.Spec.NodeCapacity == nil || !isKnown(class.Spec.NodeCapacity.Capacity)
}

// isKnown reports whether the autoscaler can determine which pods fit on a Node.
func isKnown(capacity corev1.ResourceList) bool {
	cpu, memory := capacity[corev1.ResourceCPU], capacity[corev1.ResourceMemory]
	return cpu.Sign() > 0 && memory.Sign() > 0
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
