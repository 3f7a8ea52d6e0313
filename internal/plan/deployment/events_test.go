package deployment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// An API client sends at most 25 events of an object, so the number of events of a rollout must not
// grow with the number of Machines.
func TestARolloutHasItsStoryInSevenEvents(t *testing.T) {
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

	d := deployment(50, ints(1, 0), completed(1), rolledOut("v1"), recorded("v1", 50))
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
		// Each set has acted on its desired number.
		for _, s := range p.Sets {
			version := versionOf(s.Name)
			sets = append(sets, machineSet(version, revisionOf(s.MachineSet), decided(p)[version]))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAChangeOfASetIsAnEventIfItIsNotable(t *testing.T) {
	auto := inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto)
	for name, tc := range map[string]struct {
		d    *machinev1alpha1.MachineDeployment
		sets []Set
		want []string
	}{
		"ScalingWithoutARollout": {
			deployment(98, completed(1), recorded("v2", 60)), []Set{machineSet("v2", 1, 60)}, []string{"Scaled up machine set " + nameOf("v2") + " from 60 to 98"},
		},
		"ScalingInARollout": {
			deployment(100, ints(2, 0), scaledFor(98), recorded("v1", 30), recorded("v2", 70)), []Set{machineSet("v1", 1, 30), machineSet("v2", 2, 70)},
			[]string{"Scaled up machine set " + nameOf("v2") + " from 70 to 72"},
		},
		"AStepOfARolloutIsNot": {
			deployment(100, ints(2, 0), recorded("v1", 30), recorded("v2", 70)), []Set{machineSet("v1", 1, 30), machineSet("v2", 2, 70)}, nil,
		},
		"AnUpdateInPlaceThatBegins": {
			deployment(3, auto, recorded("v1", 3), rolledOut("v1")), []Set{machineSet("v1", 1, 3)}, []string{"Updating machine set " + nameOf("v1") + " in place to revision 2"},
		},
		"AnUpdateInPlaceThatGoesOnIsNot": {
			deployment(3, auto, recorded("v2", 3), rolledOut("v2")), []Set{machineSet("v2", 1, 3, updated(1))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true}).Events {
				if strings.HasPrefix(e.Reason, "Scaling") || strings.HasPrefix(e.Reason, "Updating") {
					got = append(got, e.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
