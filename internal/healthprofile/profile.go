// Package healthprofile has the built-in HealthProfiles, and the health that follows from profiles.
//
// They are data like the profiles of users: a copy with another name works the same. No package can install
// them as objects, because Crossplane's packages only contain definitions. A built-in profile never changes: a change is a
// new version of it, beside the old one.
package healthprofile

import (
	"cmp"
	"embed"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/builtin"
)

//go:embed profiles/*.yaml
var files embed.FS

// A strictProfile is decoded without the method of the kind, which drops fields that do not fit.
type strictProfile machinev1alpha1.HealthProfile

// all profiles by name. They are read once, and must not be changed.
var all = builtin.Profiles(files, func(p *strictProfile) *machinev1alpha1.HealthProfile {
	return (*machinev1alpha1.HealthProfile)(p)
})

// BuiltIn returns the built-in profile of a name, nil if there is none. It must not be changed.
func BuiltIn(name string) *machinev1alpha1.HealthProfile { return all()[name] }

// Names of the built-in profiles, sorted.
func Names() []string { return slices.Sorted(maps.Keys(all())) }

// A Rule is a condition of Nodes, and the action that follows.
type Rule struct {
	machinev1alpha1.HealthCondition
	// From is the name of the profile that the rule, or a part of it, is from. It is "" for an entry of
	// spec.health.conditions alone.
	From string
}

// Rules that apply to the Nodes of a health, in the order of its conditions and then of its profiles, of which
// those that do not exist are left out. A field that an entry of the conditions does not set is taken from the first profile with its type and
// status. The conditions of a health without any are the defaults of the schema.
func Rules(h machinev1alpha1.Health, profiles []*machinev1alpha1.HealthProfile) []Rule {
	var out []Rule
	for _, c := range conditionsOf(h) {
		out = append(out, Rule{HealthCondition: c})
	}
	for _, p := range profiles {
		for _, c := range p.Spec.Conditions {
			// As the schema has it.
			c.Status = cmp.Or(c.Status, string(corev1.ConditionTrue))
			i := slices.IndexFunc(out, func(r Rule) bool { return r.Type == c.Type && r.Status == c.Status })
			switch {
			case i < 0:
				out = append(out, Rule{HealthCondition: c.HealthCondition, From: p.Name})
			case out[i].From == "" && (out[i].Action == "" || out[i].Timeout == nil):
				complete(&out[i], c.HealthCondition, p.Name)
			}
		}
	}
	return out
}

// complete the entry of a user by a profile. A condition that is only reported has no timeout.
func complete(r *Rule, by machinev1alpha1.HealthCondition, name string) {
	r.From = name
	r.Action = cmp.Or(r.Action, by.Action)
	if r.Timeout == nil {
		r.Timeout = by.Timeout
	}
	if r.Action == machinev1alpha1.HealthReport {
		r.Timeout = nil
	}
}

// conditionsOf a health, without those of its profiles.
func conditionsOf(h machinev1alpha1.Health) []machinev1alpha1.HealthCondition {
	if h.Conditions == nil {
		return machinev1alpha1.DefaultHealthConditions()
	}
	return h.Conditions
}

// Apply returns the health with the conditions of its [Rules]. The argument is not changed.
func Apply(h machinev1alpha1.Health, profiles []*machinev1alpha1.HealthProfile) machinev1alpha1.Health {
	if len(profiles) == 0 {
		h.Conditions = conditionsOf(h)
		return h
	}
	rules := Rules(h, profiles)
	h.Conditions = make([]machinev1alpha1.HealthCondition, 0, len(rules))
	for _, r := range rules {
		h.Conditions = append(h.Conditions, r.HealthCondition)
	}
	return h
}
