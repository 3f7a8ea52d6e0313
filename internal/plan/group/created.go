package group

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// remembered is how many Machines a group knows to have created, beyond those that it is
// asked to create. A set that decides by an old view may ask once more for one that came
// and went since then.
const remembered = 50

// remember the Machines that a group created, the latest last: also those whose creation
// could not be written down.
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
