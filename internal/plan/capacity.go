package plan

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// The firmware and the kernel of a VM reserve some of its memory, which the Node does not report.
// If the reported capacity is too high, the autoscaler creates Nodes on which its pods do not fit.
// If it is a little too low, only that difference is lost. Karpenter subtracts as much by default.
const usablePerMille int64 = 925

// CapacityOfNode returns the capacity of the Node of a VM, from the capacity of the VM. It is nil if that is.
func CapacityOfNode(vm *machinev1alpha1.NodeCapacity) *machinev1alpha1.NodeCapacity {
	if vm == nil {
		return nil
	}
	c := vm.DeepCopy()
	const mebi int64 = 1 << 20
	memory := c.Capacity[corev1.ResourceMemory]
	c.Capacity[corev1.ResourceMemory] = *resource.NewQuantity(memory.Value()/1000*usablePerMille/mebi*mebi, resource.BinarySI)
	return c
}

// MergedCapacity returns a capacity with the values of all, of which later ones take precedence. Those that are nil do not
// count. It is nil if all are.
func MergedCapacity(all ...*machinev1alpha1.NodeCapacity) *machinev1alpha1.NodeCapacity {
	var out *machinev1alpha1.NodeCapacity
	for _, c := range all {
		if c == nil {
			continue
		}
		if out == nil {
			out = &machinev1alpha1.NodeCapacity{}
		}
		if len(c.Capacity) > 0 && out.Capacity == nil {
			out.Capacity = corev1.ResourceList{}
		}
		maps.Copy(out.Capacity, c.Capacity)
		out.Architecture = cmp.Or(c.Architecture, out.Architecture)
		out.OperatingSystem = cmp.Or(c.OperatingSystem, out.OperatingSystem)
	}
	return out
}

// SmallestCapacity returns the capacity that a Node has at least: the smallest value of each resource that all have. The
// architecture and the operating system are those of all, or empty if they differ. It is nil without any.
func SmallestCapacity(all []*machinev1alpha1.NodeCapacity) *machinev1alpha1.NodeCapacity {
	if len(all) == 0 {
		return nil
	}
	out := all[0].DeepCopy()
	for _, c := range all[1:] {
		for name, q := range out.Capacity {
			switch other, has := c.Capacity[name]; {
			case !has:
				delete(out.Capacity, name)
			case other.Cmp(q) < 0:
				out.Capacity[name] = other
			}
		}
		if c.Architecture != out.Architecture {
			out.Architecture = ""
		}
		if c.OperatingSystem != out.OperatingSystem {
			out.OperatingSystem = ""
		}
	}
	return out
}

// HasCPUAndMemory reports whether the cluster-autoscaler can determine which pods fit on a Node.
func HasCPUAndMemory(c *machinev1alpha1.NodeCapacity) bool {
	if c == nil {
		return false
	}
	cpu, memory := c.Capacity[corev1.ResourceCPU], c.Capacity[corev1.ResourceMemory]
	return cpu.Sign() > 0 && memory.Sign() > 0
}
