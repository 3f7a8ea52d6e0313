package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// taken is the part of the platform's offer that a pool requests.
type taken struct {
	class   fn.OfferedClass
	version string
	// domains in their order. The only one is empty if the class decides.
	domains []string
	labels  map[string]string
	taints  []machinev1alpha1.Taint
}

// take returns the requested part of the offer, or a problem that names the field whose value is
// not offered.
func take(pool *machinev1alpha1.NodePool, offer fn.Pool) (taken, *shared.Problem) {
	s := pool.Spec
	t := taken{version: s.Version}
	i := slices.IndexFunc(offer.Classes, func(c fn.OfferedClass) bool { return c.Name == s.Class })
	if i < 0 {
		return t, notOffered("spec.class", s.Class, "must be one of "+list(offer.Classes, func(c fn.OfferedClass) string { return c.Name }))
	}
	t.class = offer.Classes[i]
	switch {
	case t.version == "" && len(offer.Versions) == 0:
		return t, notOffered("spec.version", "", "the Composition of the pool offers no version: its input must have versions")
	case t.version == "":
		t.version = offer.Versions[0]
	case !slices.Contains(offer.Versions, t.version):
		return t, notOffered("spec.version", t.version, "must be one of "+strings.Join(offer.Versions, ", "))
	}
	var problem *shared.Problem
	if t.domains, problem = domainsOf(s, t.class); problem != nil {
		return t, problem
	}
	if problem := tooLarge(s, t.class, offer); problem != nil {
		return t, problem
	}
	t.labels = maps.Clone(s.Labels)
	if t.labels == nil {
		t.labels = map[string]string{}
	}
	maps.Copy(t.labels, t.class.Labels)
	t.labels[machinev1alpha1.LabelNodePool] = pool.Name
	t.taints, problem = taintsOf(s, t.class)
	return t, problem
}

func domainsOf(s machinev1alpha1.NodePoolSpec, class fn.OfferedClass) ([]string, *shared.Problem) {
	if len(class.FailureDomains) == 0 {
		if len(s.FailureDomains) > 0 {
			return nil, notOffered("spec.failureDomains[0]", string(s.FailureDomains[0]), fmt.Sprintf("must be absent: the class %s decides where its Nodes are", class.Name))
		}
		return []string{""}, nil
	}
	wanted := s.FailureDomains
	if len(wanted) == 0 {
		wanted = class.FailureDomains
	}
	var out []string
	for i, d := range wanted {
		if !slices.Contains(class.FailureDomains, d) {
			return nil, notOffered(fmt.Sprintf("spec.failureDomains[%d]", i), string(d), fmt.Sprintf("must be one of %s, for the class %s",
				list(class.FailureDomains, func(d machinev1alpha1.FailureDomain) string { return string(d) }), class.Name))
		}
		out = append(out, string(d))
	}
	return out, nil
}

func tooLarge(s machinev1alpha1.NodePoolSpec, class fn.OfferedClass, offer fn.Pool) *shared.Problem {
	field, n := "spec.size", sizeOf(s)
	if s.Autoscaling != nil {
		field = "spec.autoscaling.max"
	}
	for _, limit := range []struct {
		most *int32
		of   string
	}{{class.MaxSize, "of the class " + class.Name}, {offer.MaxSize, "of a pool"}} {
		if limit.most != nil && n > *limit.most {
			return notOffered(field, fmt.Sprint(n), fmt.Sprintf("must be at most %d, the largest size %s", *limit.most, limit.of))
		}
	}
	return nil
}

// taintsOf returns the taints of the Nodes: those of the class cannot be changed. A startup taint
// is refused, because it is removed from the Nodes.
func taintsOf(s machinev1alpha1.NodePoolSpec, class fn.OfferedClass) ([]machinev1alpha1.Taint, *shared.Problem) {
	same := func(t machinev1alpha1.Taint) func(machinev1alpha1.Taint) bool {
		return func(o machinev1alpha1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }
	}
	out := slices.Clone(class.Taints)
	for i, t := range s.Taints {
		if slices.ContainsFunc(class.StartupTaints, same(t)) {
			return nil, notOffered(fmt.Sprintf("spec.taints[%d]", i), t.Key+":"+t.Effect, fmt.Sprintf("must not be a startup taint of the class %s", class.Name))
		}
		if !slices.ContainsFunc(class.Taints, same(t)) {
			out = append(out, t)
		}
	}
	return out, nil
}

// sizeOf a pool, or the largest one with autoscaling.
func sizeOf(s machinev1alpha1.NodePoolSpec) int32 {
	switch {
	case s.Autoscaling != nil:
		return s.Autoscaling.Max
	case s.Size != nil:
		return max(0, *s.Size)
	}
	return 0
}

func notOffered(field, value, allowed string) *shared.Problem {
	return &shared.Problem{
		Reason:  machinev1alpha1.ReasonNotOffered,
		Message: fmt.Sprintf("%s: %q is not offered: %s; the Machines that exist stay as they are until then", field, value, allowed),
	}
}

func list[T any](all []T, name func(T) string) string {
	out := make([]string, 0, len(all))
	for _, t := range all {
		out = append(out, name(t))
	}
	return strings.Join(out, ", ")
}
