package offer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/capacity"
	"github.com/drover-dev/drover/karpenter/internal/drover"
)

// A Class that was read in the control cluster.
type Class struct {
	Kind, Name string
	Labels     map[string]string
	// Node of the class, and why its capacity could not be derived, "" if it could or no Composition derives any.
	Node       capacity.Node
	NotDerived string
	// FailureDomains that the class names, nil if it does not restrict them.
	FailureDomains []string
	// Refused is why the namespace of the Machines may not use the class, "" if it may.
	Refused string
}

// A Cluster is the configuration of a target cluster, in the control cluster.
type Cluster struct {
	Kind, Name string
	// Refused is why the Machines of the namespace may not join the cluster, "" if they may.
	Refused string
}

// Known has the objects of the control cluster that an offer is made of.
type Known struct {
	// Classes in the namespace of the Machines, and all ClusterMachineClasses.
	Classes []Class
	// Clusters in the namespace of the Machines, and all ClusterProviderConfigs.
	Clusters []Cluster
}

func (c Class) reference() drover.Reference { return drover.Reference{Kind: c.Kind, Name: c.Name} }

// An Offering is a class in a zone.
type Offering struct {
	Class        drover.Reference
	InstanceType string
	CapacityType string
	Zone         string
	// FailureDomain of the Machines, "" for none.
	FailureDomain string
	Price         float64
	Node          capacity.Node
}

// A Problem of a DroverNodeClass, for one of its conditions.
type Problem struct {
	Condition, Reason, Message string
}

// An Offer of a DroverNodeClass.
type Offer struct {
	// Offerings, ordered by instance type, capacity type and zone.
	Offerings []Offering
	// Problems of which each keeps the DroverNodeClass from being Ready.
	Problems []Problem
}

// IsReady reports whether NodeClaims may be created.
func (o Offer) IsReady() bool { return len(o.Problems) == 0 && len(o.Offerings) > 0 }

// InstanceTypes returns the summary for the status.
func (o Offer) InstanceTypes() []v1alpha1.InstanceType {
	var out []v1alpha1.InstanceType
	for _, of := range o.Offerings {
		if len(out) == 0 || out[len(out)-1].Name != of.InstanceType {
			out = append(out, v1alpha1.InstanceType{Name: of.InstanceType, Capacity: of.Node.Capacity, Architecture: of.Node.Architecture})
		}
		last := &out[len(out)-1]
		last.Offerings = append(last.Offerings, of.Zone+"/"+of.CapacityType)
	}
	return out
}

// Reasons of the conditions of a DroverNodeClass.
const (
	ReasonClusterNotFound           = "ClusterNotFound"
	ReasonClusterNotAllowed         = "ClusterNotAllowed"
	ReasonClassNotFound             = "ClassNotFound"
	ReasonClassNotAllowed           = "ClassNotAllowed"
	ReasonNoClassSelected           = "NoClassSelected"
	ReasonInstanceTypeDiffers       = "InstanceTypeDiffers"
	ReasonInstanceTypeInvalid       = "InstanceTypeInvalid"
	ReasonNodeCapacityUnknown       = "NodeCapacityUnknown"
	ReasonPriceInvalid              = "PriceInvalid"
	ReasonPriceMissing              = "PriceMissing"
	ReasonZoneNotOfClass            = "ZoneNotOfClass"
	ReasonOfferedTwice              = "OfferedTwice"
	maxInstanceTypeName             = 63
	memoryPerCPU              int64 = 4 << 30
)

// Of computes the offer of a DroverNodeClass.
func Of(spec v1alpha1.DroverNodeClassSpec, known Known) Offer {
	o := Offer{}
	o.checkCluster(spec.ClusterRef, known.Clusters)
	priced := isPriced(spec)
	for i, entry := range spec.Classes {
		at := fmt.Sprintf("spec.classes[%d]", i)
		for _, class := range o.selected(at, entry, known.Classes) {
			o.offer(at, entry, class, priced)
		}
	}
	slices.SortStableFunc(o.Offerings, compare)
	o.checkAlike()
	if len(o.Problems) > 0 {
		o.Offerings = slices.DeleteFunc(o.Offerings, func(of Offering) bool { return !of.Node.IsKnown() })
	}
	return o
}

func compare(a, b Offering) int {
	return cmp.Or(cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.CapacityType, b.CapacityType), cmp.Compare(a.Zone, b.Zone))
}

func (o *Offer) problem(condition, reason, format string, args ...any) {
	o.Problems = append(o.Problems, Problem{Condition: condition, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// selected returns the classes of an entry that exist and may be used.
func (o *Offer) selected(at string, entry v1alpha1.Class, classes []Class) []Class {
	kind := cmp.Or(entry.Kind, drover.KindMachineClass)
	var out []Class
	refused := false
	for _, c := range classes {
		if c.Kind != kind || entry.Name != "" && c.Name != entry.Name || entry.Name == "" && !matches(entry.MatchLabels, c.Labels) {
			continue
		}
		if c.Refused != "" {
			o.problem(v1alpha1.ConditionClassesFound, ReasonClassNotAllowed, "%s: %s %q: %s", at, kind, c.Name, c.Refused)
			refused = true
			continue
		}
		out = append(out, c)
	}
	switch {
	case len(out) > 0 || refused:
	case entry.Name != "":
		o.problem(v1alpha1.ConditionClassesFound, ReasonClassNotFound,
			"%s.name: there is no %s %q%s: create it in the control cluster, or name another one", at, kind, entry.Name, namesOf(kind, classes))
	default:
		o.problem(v1alpha1.ConditionClassesFound, ReasonNoClassSelected, "%s.matchLabels: no %s has the labels %s: label a class, or remove the entry", at, kind, labelsOf(entry.MatchLabels))
	}
	return out
}

// checkCluster looks for the configuration of the target cluster.
func (o *Offer) checkCluster(ref v1alpha1.ClusterReference, clusters []Cluster) {
	kind, name := cmp.Or(ref.Kind, drover.KindClusterProviderConfig), cmp.Or(ref.Name, "default")
	var others []string
	for _, c := range clusters {
		switch {
		case c.Kind == kind && c.Name == name:
			if c.Refused != "" {
				o.problem(v1alpha1.ConditionClusterFound, ReasonClusterNotAllowed, "spec.clusterRef: %s %q: %s", kind, name, c.Refused)
			}
			return
		case c.Kind == kind:
			others = append(others, c.Name)
		}
	}
	o.problem(v1alpha1.ConditionClusterFound, ReasonClusterNotFound,
		"spec.clusterRef: there is no %s %q%s: create it in the control cluster, or create another DroverNodeClass, since clusterRef is immutable", kind, name, some(others))
}

// namesOf the classes of a kind.
func namesOf(kind string, classes []Class) string {
	var names []string
	for _, c := range classes {
		if c.Kind == kind {
			names = append(names, c.Name)
		}
	}
	return some(names)
}

// some of the names that exist, to choose from.
func some(names []string) string {
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return ", and none at all"
	case len(names) > 10:
		return fmt.Sprintf(", there are %s and %d others", strings.Join(names[:10], ", "), len(names)-10)
	}
	return ", there are " + strings.Join(names, ", ")
}

func matches(want map[string]v1alpha1.LabelValue, has map[string]string) bool {
	for k, v := range want {
		if got, ok := has[k]; !ok || got != string(v) {
			return false
		}
	}
	return true
}

func labelsOf(m map[string]v1alpha1.LabelValue) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+string(m[k]))
	}
	return strings.Join(out, ",")
}

// offer adds the offerings of a class.
func (o *Offer) offer(at string, entry v1alpha1.Class, class Class, priced bool) {
	name := cmp.Or(entry.InstanceType, class.Name)
	if len(name) > maxInstanceTypeName {
		o.problem(v1alpha1.ConditionClassesFound, ReasonInstanceTypeInvalid,
			"%s: the class %q has a name of %d characters, and a label value may have %d: set instanceType, and name the class by name", at, class.Name, len(name), maxInstanceTypeName)
		return
	}
	if !class.Node.IsKnown() {
		why := ""
		if class.NotDerived != "" {
			why = ", and they cannot be derived from spec.forProvider: " + class.NotDerived
		}
		o.problem(v1alpha1.ConditionCapacityKnown, ReasonNodeCapacityUnknown,
			"%s: %s %q has no cpu and memory in spec.nodeCapacity.capacity%s: create a class that has them, and name it here", at, class.Kind, class.Name, why)
	}
	for j, z := range entry.Zones {
		where := fmt.Sprintf("%s.zones[%d]", at, j)
		if d := z.Domain(); class.FailureDomains != nil && d != "" && !slices.Contains(class.FailureDomains, d) {
			o.problem(v1alpha1.ConditionZonesValid, ReasonZoneNotOfClass,
				"%s: the failure domain %q is none of %s %q, which has %s: name one of these in failureDomain", where, d, class.Kind, class.Name, strings.Join(class.FailureDomains, ", "))
			continue
		}
		price, ok := o.price(at, where, entry, z, class, priced)
		if !ok {
			continue
		}
		o.Offerings = append(o.Offerings, Offering{
			Class: class.reference(), InstanceType: name, CapacityType: cmp.Or(entry.CapacityType, "on-demand"),
			Zone: z.Name, FailureDomain: z.Domain(), Price: price, Node: class.Node,
		})
	}
}

// checkAlike looks for offerings that Karpenter could not distinguish, and for instance types whose classes differ in their
// capacity.
func (o *Offer) checkAlike() {
	for i := 1; i < len(o.Offerings); i++ {
		a, b := o.Offerings[i-1], o.Offerings[i]
		if a.InstanceType != b.InstanceType {
			continue
		}
		if compare(a, b) == 0 {
			o.problem(v1alpha1.ConditionZonesValid, ReasonOfferedTwice,
				"spec.classes: the classes %q and %q both offer the instance type %q in the zone %q as %s: give one of them another instanceType", a.Class.Name, b.Class.Name, a.InstanceType, a.Zone, a.CapacityType)
		}
		if !isAlike(a.Node, b.Node) {
			o.problem(v1alpha1.ConditionCapacityKnown, ReasonInstanceTypeDiffers,
				"spec.classes: the classes %q and %q have the instance type %q and not the same capacity: give one of them another instanceType", a.Class.Name, b.Class.Name, a.InstanceType)
		}
	}
}

func isAlike(a, b capacity.Node) bool {
	return a.Architecture == b.Architecture && a.OperatingSystem == b.OperatingSystem && equality.Semantic.DeepEqual(a.Capacity, b.Capacity)
}

// nominal is the price of a Node while no class has one.
func nominal(c corev1.ResourceList) float64 {
	return c.Cpu().AsApproximateFloat64() + float64(c.Memory().Value())/float64(memoryPerCPU)
}
