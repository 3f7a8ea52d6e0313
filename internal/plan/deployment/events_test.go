package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An API client lets twenty-five events of an object through, so a rollout must not need
// more of them the more Machines there are.
func TestARolloutTellsItsStoryInSevenEvents(t *testing.T) {
	old, current := nameOf("v1"), nameOf("v2")
	want := []string{
		"Created machine set " + current + " for revision 2",
		"Scaled up machine set " + current + " from 0 to 1",
		"Scaled down machine set " + old + " from 50 to 49",
		"Scaled up machine set " + current + " from 24 to 25",
		"Scaled down machine set " + old + " from 25 to 24",
		"Deleted machine set " + old,
		"Revision 2 is rolled out: 50 Machines of machine set " + current + " are available",
	}

	d := deployment(50, ints(1, 0), completed(1), rolledOut("v1"), told("v1", 50))
	sets := []Set{machineSet("v1", 1, 50)}
	var got []string
	for range 1000 {
		p := Plan(now, Observed{Deployment: d, Sets: sets, ClassFound: true})
		for _, e := range p.Events {
			got = append(got, e.Message)
		}
		if p.Ready {
			break
		}
		d, sets = d.DeepCopy(), nil
		d.Status = p.Status
		// Each set has acted on what it was told.
		for _, s := range p.Sets {
			version := versionOf(s.Name)
			sets = append(sets, machineSet(version, revisionOf(s.MachineSet), decided(p)[version]))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
