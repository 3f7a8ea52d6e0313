package group

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// remembered is how many created Machines a group records in addition to the requested ones. A set
// with a stale view may request a Machine again that was created and deleted in the meantime.
const remembered = 50

// remember returns the Machines that a group created, newest last. It includes Machines whose
// creation could not be recorded.
func remember(g *v1alpha1.MachineGroup, machines map[string]*v1alpha1.Machine) []string {
	all, asked := slices.Clone(g.Status.Created), sets.New[string]()
	known := sets.New(all...)
	for _, member := range g.Spec.Machines {
		if !member.Create {
			continue
		}
		asked.Insert(member.Name)
		if machines[member.Name] != nil && !known.Has(member.Name) {
			all = append(all, member.Name)
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), asked.Has)
	forgotten := sets.New(others[:max(0, len(others)-remembered)]...)
	return slices.DeleteFunc(all, forgotten.Has)
}
