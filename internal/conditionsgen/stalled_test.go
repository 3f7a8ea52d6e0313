package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/plan"
)

// TestAReasonThatStopsMachinesStallsTheirSets compares each reason with its comment about MachineSets and
// MachineDeployments: a reason of Valid=False of a Machine lasts until a user acts.
func TestAReasonThatStopsMachinesStallsTheirSets(t *testing.T) {
	reasons, err := read("../../apis/machine/v1alpha1/reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons = withPrefix(reasons, "Reason")
	invalid := 0
	for _, c := range reasons {
		has := func(status string) bool {
			return slices.ContainsFunc(c.of(), func(s string) bool { return s == status || strings.HasPrefix(s, status+" (") })
		}
		if has("Valid=False") && slices.Contains(c.kinds(), "Machine") {
			invalid++
			for _, kind := range []string{"MachineSet", "MachineDeployment"} {
				if !slices.Contains(c.kinds(), kind) {
					t.Errorf("%s stops a Machine, but its comment does not name the kind %s", c.name, kind)
				}
			}
			for _, status := range []string{"ReplicaFailure=True", "Stalled=True"} {
				if !has(status) {
					t.Errorf("%s stops a Machine, but its comment does not have %s", c.name, status)
				}
			}
		}
		// A NodePool is stalled if one of its MachineDeployments is.
		if got, want := plan.NeedsUser(c.value), has("Stalled=True"); has("ReplicaFailure=True") && got != want && !slices.Equal(c.kinds(), []string{"NodePool"}) {
			t.Errorf("%s: a set with this reason of ReplicaFailure is stalled: %t, and its comment says %t", c.name, got, want)
		}
	}
	if invalid < 10 {
		t.Errorf("found %d reasons of Valid=False of a Machine", invalid)
	}
}

func TestAStatusThatOneKindHasIsLeftOutOfOthers(t *testing.T) {
	conditions := []constant{
		{value: "Valid", notes: map[string]string{"Kinds": "Machine, MachineSet"}},
		{value: "Stalled", notes: map[string]string{"Kinds": "MachineSet"}},
	}
	reason := constant{notes: map[string]string{"Of": "Valid=False (Machine), Stalled=True"}}
	for kind, want := range map[string]string{"Machine": "Valid=False", "MachineSet": "Stalled=True"} {
		if got := statuses(reason, kind, conditions); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
