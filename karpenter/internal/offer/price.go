package offer

import (
	"math"
	"strconv"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
)

// isPriced reports whether a class has a price.
func isPriced(spec v1alpha1.DroverNodeClassSpec) bool {
	for _, c := range spec.Classes {
		if c.Price != "" {
			return true
		}
		for _, z := range c.Zones {
			if z.Price != "" {
				return true
			}
		}
	}
	return false
}

// price returns the price of a class in a zone. Where any class has a price, all must: a nominal price beside a real one
// would decide what Karpenter buys.
func (o *Offer) price(at, where string, entry v1alpha1.Class, z v1alpha1.Zone, class Class, priced bool) (float64, bool) {
	text, field := entry.Price, at+".price"
	if z.Price != "" {
		text, field = z.Price, where+".price"
	}
	if !priced {
		return nominal(class.Node.Capacity), true
	}
	if text == "" {
		o.problem(v1alpha1.ConditionPricesValid, ReasonPriceMissing, "%s: is missing, and other classes have a price: set it, or remove all prices", field)
		return 0, false
	}
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || p < 0 || math.IsNaN(p) || math.IsInf(p, 0) {
		o.problem(v1alpha1.ConditionPricesValid, ReasonPriceInvalid, "%s: is %q: must be the price of an hour, a number like 0.0104", field, text)
		return 0, false
	}
	return p, true
}
