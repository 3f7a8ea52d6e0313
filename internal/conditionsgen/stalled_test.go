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

// ownAffairs are the reasons of Machines with a cure that sets do not report, and why.
var ownAffairs = map[string]string{
	"FatalResult":             "Synced=False with the reason ReconcileError comes with it, and the set reports that",
	"Unspecified":             "it is no cause: a step of the user's own has set it",
	"VMNotRunning":            "the Machine has joined: it becomes unhealthy, and its set replaces it",
	"NodeNotJoined":           "a Machine that starts has it",
	"BootstrapFailing":        "the VM tries the step again, and the Machine is Failed at its creationTimeout",
	"NodeNotReady":            "unhealthy Machines are counted and replaced",
	"NodeUnknown":             "unhealthy Machines are counted and replaced",
	"NodeGone":                "unhealthy Machines are counted and replaced",
	"NodeUnhealthy":           "unhealthy Machines are counted and replaced",
	"NodeNotObserved":         "Frozen of the set has the cause",
	"NodeContested":           "another Node must not stall a set by a claim",
	"NodeUnproven":            "another Node must not stall a set by a claim",
	"NodeAmbiguous":           "another Node must not stall a set by a claim",
	"TokenPlaceholderMissing": "user data of the user's own may have other credentials",
	"UpdateCandidate":         "Updated of the set counts it",
	"RebootFailed":            "a reboot concerns one Machine that exists",
	"NodeConditionReported":   "the user asked only for a report, and the Machine works",
}

// TestAMachineThatWaitsForAUserIsReportedByItsSet checks each reason of a Machine that has a cure: either it is one of its set
// too, or ownAffairs has the reason why it is not.
func TestAMachineThatWaitsForAUserIsReportedByItsSet(t *testing.T) {
	reasons, err := read("../../apis/machine/v1alpha1/reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range withPrefix(reasons, "Reason") {
		if c.notes["Do"] == "" || !slices.Contains(c.kinds(), "Machine") {
			continue
		}
		_, own := ownAffairs[c.value]
		seen[c.value] = own
		if reported := slices.Contains(c.kinds(), "MachineSet") && slices.Contains(c.kinds(), "MachineDeployment"); reported == own {
			t.Errorf("%s: sets report it: %t, and ownAffairs has it: %t", c.name, reported, own)
		}
	}
	for reason := range ownAffairs {
		if !seen[reason] {
			t.Errorf("%s is no reason of a Machine with a cure", reason)
		}
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
