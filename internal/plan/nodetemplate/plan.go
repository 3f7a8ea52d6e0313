// Package nodetemplate decides what the cluster-autoscaler is told of the Nodes of a
// MachineDeployment or MachineSet before there are any.
//
// The autoscaler reads spec.template.spec.infrastructureRef, and of the object that it names
// status.capacity and status.nodeInfo. The template asks for the object: without the reference
// nothing reads it, and two kinds may have objects of the same name.
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

// Observed is what a step sees.
type Observed struct {
	// Owner is the MachineDeployment or MachineSet.
	Owner metav1.Object
	Kind  string
	// Ref of its template, nil if there is none.
	Ref *machinev1alpha1.InfrastructureReference
	// Class of the Machines that would be created now, nil if there is none that can be used.
	Class *machinev1alpha1.MachineClass
	// Derived is what the Composition of its provider derives from what the class asks of the
	// cloud, nil if that is nothing. Memory is that of the VM.
	Derived *machinev1alpha1.NodeCapacity
	// NotDerived is why the Composition could not tell, "" if it could or has nothing to tell.
	NotDerived string
	// There is the NodeTemplate of the owner's name, nil if there is none.
	There *machinev1alpha1.NodeTemplate
}

// A Decision is what a step wants.
type Decision struct {
	// NodeTemplate is nil if there shall be none.
	NodeTemplate *machinev1alpha1.NodeTemplate
	// Condition is nil for objects that ask for none.
	Condition *plan.Condition
}

// Asks reports whether a template asks for a NodeTemplate under the name of its owner.
func Asks(ref *machinev1alpha1.InfrastructureReference, owner string) bool {
	return ref.IsNodeTemplate() && ref.Name == owner
}

// Plan decides.
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

// statusOf the Nodes of the class. Without a class it stays as it is, and is not known.
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
		// The kubelet is configured with it, whatever the class tells.
		status.Capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(*pods), resource.DecimalSI)
	}
	return status, true
}

// Of the memory of a VM its firmware and its kernel keep some, which the Node does not report. An
// autoscaler that is told too much makes Nodes on which its pods do not fit, and one that is told
// a little less loses that little. Karpenter takes off as much by default.
const usablePerMille int64 = 925

// usable capacity of a Node, of what its VM has.
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

// Lacks reports whether a class does not tell the cpu and the memory of its Nodes itself.
func Lacks(class *machinev1alpha1.MachineClass) bool {
	return class.Spec.NodeCapacity == nil || !isKnown(class.Spec.NodeCapacity.Capacity)
}

// isKnown reports whether the autoscaler can tell which pods fit on a Node.
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
