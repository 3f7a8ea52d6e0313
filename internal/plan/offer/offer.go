// Package offer computes what a namespace may request with a NodePool: the part of a platform's offer that the
// Machines of the namespace would not be refused. Users see it by kubectl drover offer, and in the status of each NodePool.
package offer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
)

// largest size of a pool without a limit of the platform: that of the schema.
const largest = 10000

// An Offer is what NodePools of a namespace may select.
type Offer struct {
	// Composition that makes the offer, as spec.crossplane.compositionRef names it.
	Composition string `json:"composition"`
	// Classes that spec.class may name.
	Classes []Class `json:"classes"`
	// NotAllowed is how many further classes of the Composition the Machines of the namespace would be refused.
	NotAllowed int `json:"notAllowed,omitempty"`
	// Versions that spec.version may name. The first one is the default.
	Versions []string `json:"versions"`
	// MaxSize is the largest size of a pool, whatever its class.
	MaxSize int32 `json:"maxSize"`
	// ClusterRef names the cluster that the Nodes join.
	ClusterRef machinev1alpha1.ClusterReference `json:"clusterRef"`
}

// A Class of an offer.
type Class struct {
	Name string `json:"name"`
	// Size is the name by which the cloud knows the kind of VM, such as an instance type. It is empty if the class
	// gives none.
	Size string `json:"size,omitempty"`
	// Capacity of a Node, such as 4 CPUs and 16Gi. It is empty if the class does not declare it.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// FailureDomains that spec.failureDomains may name, which are also the default. There are none if the class
	// decides.
	FailureDomains []machinev1alpha1.FailureDomain `json:"failureDomains,omitempty"`
	// MaxSize is the largest size of a pool of the class.
	MaxSize int32 `json:"maxSize"`
	// Labels and Taints of all Nodes of the class.
	Labels map[string]string       `json:"labels,omitempty"`
	Taints []machinev1alpha1.Taint `json:"taints,omitempty"`
}

// A Spec is the spec of the class that a class of an offer stands for. AllowedNamespaces are nil for a MachineClass,
// which is of the namespace itself.
type Spec struct {
	machinev1alpha1.MachineClassSpec
	AllowedNamespaces []string
	// IsCluster means that it is a ClusterMachineClass, which needs a pattern that matches the namespace.
	IsCluster bool
}

// OfCluster returns the Spec of a ClusterMachineClass.
func OfCluster(c *machinev1alpha1.ClusterMachineClass) Spec {
	s := Spec{MachineClassSpec: c.Spec.MachineClassSpec, IsCluster: true}
	for _, p := range c.Spec.AllowedNamespaces {
		s.AllowedNamespaces = append(s.AllowedNamespaces, string(p))
	}
	return s
}

// Of returns the offer of a Composition to a namespace. Specs has the classes that exist, by the key of their
// reference: one that does not exist, or does not allow the namespace, is not offered.
func Of(composition, namespace string, pool fn.Pool, specs map[string]Spec) Offer {
	o := Offer{Composition: composition, Classes: []Class{}, Versions: pool.Versions, MaxSize: limit(pool.MaxSize), ClusterRef: pool.ClusterRef}
	// As the schema of the input has them.
	o.ClusterRef.Kind, o.ClusterRef.Name = cmp.Or(o.ClusterRef.Kind, "ClusterProviderConfig"), cmp.Or(o.ClusterRef.Name, "default")
	for _, c := range pool.Classes {
		spec, exists := specs[c.ClassRef.Key()]
		if !exists || spec.IsCluster && !allow.Namespace(spec.AllowedNamespaces, namespace) {
			o.NotAllowed++
			continue
		}
		class := Class{
			Name: c.Name, FailureDomains: c.FailureDomains, MaxSize: min(limit(c.MaxSize), o.MaxSize), Labels: c.Labels, Taints: c.Taints, Size: sizeOf(spec.MachineClassSpec),
		}
		if spec.NodeCapacity != nil {
			class.Capacity = spec.NodeCapacity.Capacity
		}
		o.Classes = append(o.Classes, class)
	}
	slices.SortStableFunc(o.Classes, func(a, b Class) int { return cmp.Compare(a.Name, b.Name) })
	return o
}

// mostClasses in a status.
const mostClasses = 64

// Status returns the offer as the status of a NodePool has it: without labels and taints.
func (o Offer) Status() *machinev1alpha1.PoolOffer {
	out := &machinev1alpha1.PoolOffer{Versions: o.Versions, MaxSize: o.MaxSize, ClusterRef: o.ClusterRef}
	for _, c := range o.Classes[:min(len(o.Classes), mostClasses)] {
		out.Classes = append(out.Classes, machinev1alpha1.PoolClass{Name: c.Name, Size: c.Size, Capacity: c.Capacity, FailureDomains: c.FailureDomains, MaxSize: c.MaxSize})
	}
	return out
}

// FromStatus returns the offer that the status of a NodePool has. The Composition is that of the pool.
func FromStatus(composition string, s machinev1alpha1.PoolOffer) Offer {
	o := Offer{Composition: composition, Classes: []Class{}, Versions: s.Versions, MaxSize: s.MaxSize, ClusterRef: s.ClusterRef}
	for _, c := range s.Classes {
		o.Classes = append(o.Classes, Class{Name: c.Name, Size: c.Size, Capacity: c.Capacity, FailureDomains: c.FailureDomains, MaxSize: c.MaxSize})
	}
	return o
}

func limit(n *int32) int32 {
	if n == nil {
		return largest
	}
	return *n
}

// sizeFields are the names by which providers call the kind of VM in forProvider.
var sizeFields = []string{"instanceType", "serverType", "machineType", "flavorName", "size", "vmSize", "platformId", "instanceProfile"}

func sizeOf(s machinev1alpha1.MachineClassSpec) string {
	if s.ForProvider == nil {
		return ""
	}
	fields := map[string]any{}
	if json.Unmarshal(s.ForProvider.Raw, &fields) != nil {
		return ""
	}
	for _, f := range sizeFields {
		if v, ok := fields[f].(string); ok && v != "" {
			return v
		}
	}
	return ""
}

// String of a class's capacity, such as "4 CPU, 16Gi", "" if it is unknown.
func (c Class) String() string {
	cpu, memory := c.Capacity[corev1.ResourceCPU], c.Capacity[corev1.ResourceMemory]
	switch {
	case cpu.IsZero() && memory.IsZero():
		return ""
	case memory.IsZero():
		return cpu.String() + " CPU"
	case cpu.IsZero():
		return memory.String()
	}
	return fmt.Sprintf("%s CPU, %s", cpu.String(), memory.String())
}
