package vm

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// inClass is the prefix of the paths of a companion's fields in the class.
func (c Companion) inClass() string { return "companions." + c.Name + "." }

// of returns the companion's settings in a class, and the prefix of their paths.
func (c Companion) of(class *machinev1alpha1.MachineClass) (*machinev1alpha1.MachineClass, *runtime.RawExtension, string) {
	return class, class.Spec.Companions[c.Name].ForProvider, c.inClass()
}

// CompanionsOf returns the companions for the VMs of a class, in their order. Without a class it
// returns those that all VMs have.
func (b *Binding) CompanionsOf(class *machinev1alpha1.MachineClass) []Companion {
	var named map[string]machinev1alpha1.Companion
	if class != nil {
		named = class.Spec.Companions
	}
	var out []Companion
	for _, c := range b.companions {
		if _, ok := named[c.Name]; ok || !c.optional {
			out = append(out, c)
		}
	}
	return out
}

// CompanionsMade returns the companions that an existing VM was created with.
func (b *Binding) CompanionsMade(vm plan.Object) []Companion {
	with := strings.Split(vm.GetAnnotations()[machinev1alpha1.AnnotationCompanions], ",")
	var out []Companion
	for _, c := range b.companions {
		if slices.Contains(with, c.Name) {
			out = append(out, c)
		}
	}
	return out
}

// orderOf returns the index of a companion in the binding.
func (b *Binding) orderOf(name string) int {
	return slices.IndexFunc(b.companions, func(c Companion) bool { return c.Name == name })
}
