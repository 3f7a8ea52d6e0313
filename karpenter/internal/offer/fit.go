package offer

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func fits(requests, allocatable corev1.ResourceList) bool {
	for name, q := range requests {
		if has := allocatable[name]; q.Cmp(has) > 0 {
			return false
		}
	}
	return true
}

// sortByPrice is stable: of several offerings with the same price, each call returns the same first.
func sortByPrice(all []Offering) {
	slices.SortStableFunc(all, func(a, b Offering) int { return cmp.Compare(a.Price, b.Price) })
}

// Find returns the offering of a class in a zone.
func (o Offer) Find(class Key, zone string) (Offering, bool) {
	for _, of := range o.Offerings {
		if of.Class == class.Class && of.FailureDomain == class.FailureDomain && of.Zone == zone {
			return of, true
		}
	}
	return Offering{}, false
}
