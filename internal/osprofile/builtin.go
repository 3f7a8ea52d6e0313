// Package osprofile has the built-in OperatingSystemProfiles.
//
// They are data like the profiles of users: a copy with another name works the same. No package can install
// them as objects, because Crossplane's packages only contain definitions. So they are read where they are
// needed. A built-in profile never changes: a change is a new version of it, beside the old one.
package osprofile

import (
	"embed"
	"maps"
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/builtin"
)

//go:embed profiles/*.yaml
var files embed.FS

// A strictProfile is decoded without the method of the kind, which drops fields that do not fit.
type strictProfile machinev1alpha1.OperatingSystemProfile

// all profiles by name. They are read once, and must not be changed.
var all = builtin.Profiles(files, func(p *strictProfile) *machinev1alpha1.OperatingSystemProfile {
	return Defaulted((*machinev1alpha1.OperatingSystemProfile)(p))
})

// BuiltIn returns the built-in profile of a name, nil if there is none. It must not be
// changed.
func BuiltIn(name string) *machinev1alpha1.OperatingSystemProfile {
	return all()[name]
}

// Names of the built-in profiles, sorted.
func Names() []string {
	return slices.Sorted(maps.Keys(all()))
}

// Defaulted sets the defaults that the API server sets in an object of a user.
func Defaulted(p *machinev1alpha1.OperatingSystemProfile) *machinev1alpha1.OperatingSystemProfile {
	if p.Spec.Kubelet.Path == "" {
		p.Spec.Kubelet.Path = machinev1alpha1.DefaultKubeletPath
	}
	for _, r := range p.Spec.Containerd {
		if r.Download != nil && r.Download.URL == "" {
			r.Download.URL = machinev1alpha1.DefaultContainerdURL
		}
	}
	if t := p.Spec.Trust; t != nil && t.Extension == "" {
		t.Extension = machinev1alpha1.DefaultTrustExtension
	}
	for name, parameter := range p.Spec.Parameters {
		if parameter.Type == "" {
			parameter.Type = machinev1alpha1.StringParameter
			p.Spec.Parameters[name] = parameter
		}
	}
	return p
}
