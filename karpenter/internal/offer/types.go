package offer

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/drover-dev/drover/karpenter/internal/drover"
)

// A Key identifies VMs for which a cloud has room, or not: those of a class in a failure domain.
type Key struct {
	Class         drover.Reference
	FailureDomain string
}

// Key of the offering.
func (of Offering) Key() Key { return Key{Class: of.Class, FailureDomain: of.FailureDomain} }

// Types returns the offer as Karpenter sees it. Offerings are unavailable while their key is.
func (o Offer) Types(isUnavailable func(Key) bool) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	var zones, capacityTypes []string
	for i, of := range o.Offerings {
		if i == 0 || o.Offerings[i-1].InstanceType != of.InstanceType {
			out = append(out, newType(of))
			zones, capacityTypes = nil, nil
		}
		t := out[len(out)-1]
		zones, capacityTypes = append(zones, of.Zone), append(capacityTypes, of.CapacityType)
		t.Requirements[corev1.LabelTopologyZone] = in(corev1.LabelTopologyZone, zones...)
		t.Requirements[karpenterv1.CapacityTypeLabelKey] = in(karpenterv1.CapacityTypeLabelKey, capacityTypes...)
		t.Offerings = append(t.Offerings, &cloudprovider.Offering{
			Requirements: scheduling.NewRequirements(in(corev1.LabelTopologyZone, of.Zone), in(karpenterv1.CapacityTypeLabelKey, of.CapacityType)),
			Price:        of.Price,
			Available:    !isUnavailable(of.Key()),
		})
	}
	return out
}

func in(key string, values ...string) *scheduling.Requirement {
	return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
}

func newType(of Offering) *cloudprovider.InstanceType {
	return &cloudprovider.InstanceType{
		Name: of.InstanceType,
		Requirements: scheduling.NewRequirements(
			in(corev1.LabelInstanceTypeStable, of.InstanceType),
			in(corev1.LabelArchStable, of.Node.Architecture),
			in(corev1.LabelOSStable, of.Node.OperatingSystem),
			// Drover does not know them. A pod that selects one must not get a Node without it.
			scheduling.NewRequirement(corev1.LabelTopologyRegion, corev1.NodeSelectorOpDoesNotExist),
			scheduling.NewRequirement(corev1.LabelWindowsBuild, corev1.NodeSelectorOpDoesNotExist),
		),
		// Offers share the Node of their class.
		Capacity: maps.Clone(of.Node.Capacity),
		Overhead: &cloudprovider.InstanceTypeOverhead{
			KubeReserved: of.Node.KubeReserved, SystemReserved: of.Node.SystemReserved, EvictionThreshold: of.Node.Eviction,
		},
	}
}

// TypeOf returns the instance type of an offering.
func TypeOf(of Offering) *cloudprovider.InstanceType { return newType(of) }

// Fitting returns the available offerings that meet the requirements of a NodeClaim, the cheapest first.
func (o Offer) Fitting(claim *karpenterv1.NodeClaim, isUnavailable func(Key) bool) []Offering {
	requirements := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	var out []Offering
	for _, of := range o.Offerings {
		t := newType(of)
		t.Requirements.Add(in(corev1.LabelTopologyZone, of.Zone), in(karpenterv1.CapacityTypeLabelKey, of.CapacityType))
		if isUnavailable(of.Key()) || !requirements.IsCompatible(t.Requirements, scheduling.AllowUndefinedWellKnownLabels) ||
			!fits(claim.Spec.Resources.Requests, t.Allocatable()) {
			continue
		}
		out = append(out, of)
	}
	sortByPrice(out)
	return out
}
