package set

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func creating(names ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.Creating = names }
}

// TestMachinesThatWereOrderedCount, whether they are observed or not.
func TestMachinesThatWereOrderedCount(t *testing.T) {
	type want struct {
		Creates, Keeps, Deletes, Creating, Dropping []string
		Replicas                                    int32
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		gone     []string
		want     want
	}{
		"OneThatIsNotSeenYetIsOrderedAgainAndNoOther": {
			set(2, creating("b")), []Machine{machine("a", running)}, nil,
			want{Keeps: []string{"a"}, Creates: []string{"b"}, Creating: []string{"b"}, Replicas: 2},
		},
		"OneThatIsSeenIsNeverCreatedAgain": {
			set(2, creating("b")), []Machine{machine("a", running), machine("b", pending)}, nil,
			want{Keeps: []string{"a", "b"}, Replicas: 2},
		},
		"ThoseThatAreOrderedAreRecordedByName": {
			set(3, creating("z")), []Machine{machine("a", running)}, nil,
			want{Keeps: []string{"a"}, Creates: []string{"z", nth(100)}, Creating: []string{nth(100), "z"}, Replicas: 3},
		},
		"OneThatIsGoneIsReplacedUnderAnotherName": {
			set(2, creating("b")), []Machine{machine("a", running)}, []string{"b"},
			want{Keeps: []string{"a"}, Creates: []string{nth(100)}, Creating: []string{nth(100)}, Replicas: 2},
		},
		"OneThatIsTooManyIsGivenUpBeforeItIsSeen": {
			set(1, creating("b")), []Machine{machine("a", running)}, nil,
			want{Keeps: []string{"a"}, Creates: []string{"b"}, Creating: []string{"b"}, Dropping: []string{"b"}, Replicas: 1},
		},
		"OneThatWasGivenUpIsDeletedAndNotCreated": {
			set(1, creating("b"), dropping("b")), []Machine{machine("a", running)}, nil,
			want{Keeps: []string{"a"}, Deletes: []string{"b"}, Creating: []string{"b"}, Dropping: []string{"b"}, Replicas: 1},
		},
		"OneThatWasGivenUpAndIsGoneIsForgotten": {
			set(1, creating("b"), dropping("b")), []Machine{machine("a", running)}, []string{"b"},
			want{Keeps: []string{"a"}, Replicas: 1},
		},
		"OneThatIsOrderedForAnUpdateInPlaceIsOfTheNewTemplate": {
			set(2, inPlace(1), creating("b"), func(s *machinev1alpha1.MachineSet) {
				s.Spec.Template.Metadata.Labels[machinev1alpha1.LabelTemplateHash] = "first"
			}), []Machine{machine("a", running, updatedTo("new"))}, nil,
			want{Keeps: []string{"a"}, Creates: []string{"b"}, Creating: []string{"b"}, Replicas: 2},
		},
		"OneThatWasNeverOrderedAndIsGoneMakesNoDifference": {
			set(1), []Machine{machine("a", running)}, []string{"z"},
			want{Keeps: []string{"a"}, Replicas: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines, Gone: tc.gone})
			got := want{Deletes: d.Delete, Creating: d.Status.Creating, Dropping: d.Status.Dropping, Replicas: d.Status.Replicas}
			for _, m := range d.Machines {
				if m.Create {
					got.Creates = append(got.Creates, m.Name)
				} else {
					got.Keeps = append(got.Keeps, m.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}

	t.Run("OneThatIsNotSeenYetCountsAsInFlight", func(t *testing.T) {
		d := Plan(now, Observed{Set: set(10, creating("b"))})
		if !slices.Equal(d.Status.Creating, []string{"b"}) {
			t.Errorf("creates %v, before the first has a VM", d.Status.Creating)
		}
	})
	t.Run("WhatTheAPIServerRefusesIsReported", func(t *testing.T) {
		c := condition(Plan(now, Observed{Set: set(1, creating("b")), NotApplied: `cannot apply Machine "b": no`}), machinev1alpha1.ConditionReplicaFailure)
		if c.Status != "True" || c.Reason != "MachinesNotApplied" || c.Message != `cannot apply Machine "b": no` {
			t.Errorf("got %+v", c)
		}
	})
}
