package control

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/karpenter/internal/capacity"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

// remembered is the number of classes and Compositions whose results a memo keeps. With more of them, some are computed again.
const remembered = 4096

// A memo has the results of classes and Compositions. Karpenter asks for the offer at each creation, and at each look
// whether a NodeClaim has drifted; the objects hardly ever change.
type memo struct {
	once sync.Once
	lru  *lru.Cache
}

// A version of an object, and the expression that its result also depends on.
type version struct {
	kind, name      string
	uid             types.UID
	resourceVersion string
	with            capacity.Expression
}

func versionOf(kind string, o client.Object) version {
	return version{kind: kind, name: o.GetNamespace() + "/" + o.GetName(), uid: o.GetUID(), resourceVersion: o.GetResourceVersion()}
}

// remember returns the result for a version. It is shared: a caller must not change it.
func remember[T any](m *memo, v version, compute func() T) T {
	m.once.Do(func() { m.lru = lru.New(remembered) })
	if known, ok := m.lru.Get(v); ok {
		return known.(T) //nolint:forcetypeassert // The kind of a version has one type of result.
	}
	result := compute()
	m.lru.Add(v, result)
	return result
}

// class of an object.
func (m *memo) class(kind string, o client.Object, spec drover.MachineClassSpec, derive map[string]capacity.Expression) offer.Class {
	v := versionOf(kind, o)
	v.with = derive[spec.Provider]
	return remember(m, v, func() offer.Class { return newClass(kind, o.GetName(), o.GetLabels(), spec, v.with) })
}

// expressions by provider. A provider with several Compositions has that of the first one, as its Machines would get.
func (m *memo) expressions(compositions []drover.Composition) map[string]capacity.Expression {
	out := map[string]capacity.Expression{}
	slices.SortFunc(compositions, func(a, b drover.Composition) int { return strings.Compare(a.Name, b.Name) })
	for i := range compositions {
		composition := &compositions[i]
		provider := composition.Labels["provider"]
		if _, ok := out[provider]; ok || composition.Spec.CompositeTypeRef.Kind != "Machine" {
			continue
		}
		if e := remember(m, versionOf("Composition", composition), func() capacity.Expression { return capacity.ExpressionOf(composition) }); e != "" {
			out[provider] = e
		}
	}
	return out
}

func newClass(kind, name string, labels map[string]string, spec drover.MachineClassSpec, e capacity.Expression) offer.Class {
	class := offer.Class{Kind: kind, Name: name, Labels: labels, FailureDomains: failureDomains(spec)}
	if len(spec.InstanceTypes) > 0 {
		class.Refused = "its spec.instanceTypes lists several instance types, and Karpenter must know which one a Node gets: create a class for each, and name those here"
	}
	var err error
	if class.Node, err = capacity.Of(spec, e); err != nil {
		class.NotDerived = err.Error()
	}
	return class
}
