package machinetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/plan"
)

// TestAMachineIsUpdatedInPlace takes a Machine through two updates: one whose first attempt fails,
// and one that another update replaces midway.
func TestAMachineIsUpdatedInPlace(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	vm := p.Composed["vm"].DeepCopy()

	ask := func(id, version, class string, selected bool) func() {
		return func() {
			Set(p.Machine, map[string]any{
				"id": id, "version": version, "classRef": map[string]any{"name": class}, "selected": selected, "timeout": "20m",
			}, "spec", "inPlaceUpdate")
		}
	}
	says := func(label, id, message string) func() {
		return func() {
			p.NodeSays(map[string]string{label: id}, map[string]string{"machine.drover.dev/update-message": message})
		}
	}
	agentDone, agentFailed := "machine.drover.dev/updated-to", "machine.drover.dev/update-failed"

	stages := []struct {
		name  string
		after time.Duration
		world func()

		phase, state string
		// node has the desired labels update and update-to of the Node, and whether it is drained.
		node   []any
		upTo   string // reason of Updated
		events []string
		ttl    time.Duration
	}{
		{
			name: "ACandidateRunsOn", world: ask("two", "v1.36.0", "large", false),
			phase: "Running", state: "Candidate", node: []any{"candidate", "two", false}, upTo: "UpdateCandidate", ttl: plan.AtRest,
		},
		{
			name: "SelectedItIsDrained", world: ask("two", "v1.36.0", "large", true),
			phase: "Updating", state: "Draining", node: []any{"candidate", "two", true}, upTo: "UpdateDraining",
			events: []string{"UpdateDraining"}, ttl: plan.InFlight,
		},
		{
			name: "AnAnswerFromBeforeItIsAskedIsNone", world: says(agentDone, "two", ""),
			phase: "Updating", state: "Draining", node: []any{"candidate", "two", true}, upTo: "UpdateDraining", ttl: plan.InFlight,
		},
		{
			name: "DrainedItsAgentIsAsked", world: func() { says(agentDone, "one", "")(); p.NodeIsEmptied() },
			phase: "Updating", state: "Updating", node: []any{"ready", "two", true}, upTo: "UpdateUpdating",
			events: []string{"UpdateUpdating"}, ttl: plan.InFlight,
		},
		{
			name: "ItsNodeMayRebootMeanwhile", world: func() { p.NodeIs("Unknown", p.Now); p.NodeIsEmptied() },
			phase: "Updating", state: "Updating", node: []any{"ready", "two", true}, upTo: "UpdateUpdating",
			ttl: 30 * time.Second, // Then the provider is asked to look at the VM.
		},
		{
			name: "OrBeGone", world: func() { p.NodeIs("", p.Now) },
			phase: "Updating", state: "Updating", node: []any{"ready", "two", true}, upTo: "UpdateUpdating", ttl: plan.InFlight,
		},
		{
			name: "AFailureIsReported", world: func() { p.NodeIs("True", p.Now); p.NodeIsEmptied(); says(agentFailed, "two", "no space left")() },
			phase: "Updating", state: "Failed", node: []any{"ready", "two", true}, upTo: "UpdateFailed",
			events: []string{"UpdateFailed"}, ttl: plan.AtRest,
		},
		{
			name: "ARetryIsAnotherRequest", world: ask("two-retry", "v1.36.0", "large", true),
			phase: "Updating", state: "Updating", node: []any{"ready", "two-retry", true}, upTo: "UpdateUpdating",
			events: []string{"UpdateUpdating"}, ttl: plan.InFlight,
		},
		{
			name: "WhatFailedBeforeIsNoAnswer", world: func() {},
			phase: "Updating", state: "Updating", node: []any{"ready", "two-retry", true}, upTo: "UpdateUpdating", ttl: plan.InFlight,
		},
		{
			name: "NoAnswerInTimeIsAFailure", after: 20 * time.Minute, world: func() {},
			phase: "Updating", state: "Failed", node: []any{"ready", "two-retry", true}, upTo: "UpdateFailed",
			events: []string{"UpdateFailed"}, ttl: plan.AtRest,
		},
		{
			name: "ALateSuccessCounts", world: says(agentDone, "two-retry", ""),
			phase: "Updating", state: "Succeeded", node: []any{"ready", "two-retry", true}, upTo: "UpdateSucceeded",
			events: []string{"UpdateSucceeded"}, ttl: plan.InFlight,
		},
		{
			name: "ItsSetWritesThatDownAndTheNodeIsToBeUncordoned", world: func() {
				Set(p.Machine, "v1.36.0", "spec", "version")
				Set(p.Machine, "large", "spec", "classRef", "name")
				unstructured.RemoveNestedField(p.Machine.Object, "spec", "inPlaceUpdate")
				p.TargetError = "connect failed: timeout"
			},
			phase: "Updating", state: "Succeeded", node: []any{"", "", false}, upTo: "UpdateSucceeded", ttl: plan.InFlight,
		},
		{
			name: "UncordonedItRuns", world: func() { p.TargetError = "" },
			phase: "Running", state: "", node: []any{"", "", false}, upTo: "UpToDate", events: []string{"NodeReady"}, ttl: plan.AtRest,
		},
		{
			name: "AnotherUpdateBeginsAnew", world: ask("three", "v1.37.0", "large", true),
			phase: "Updating", state: "Draining", node: []any{"candidate", "three", true}, upTo: "UpdateDraining",
			events: []string{"UpdateDraining"}, ttl: plan.InFlight,
		},
		{
			name: "AndIsReplacedByAnotherBeforeItBegan", world: func() { ask("four", "v1.38.0", "large", true)(); p.NodeIsEmptied() },
			phase: "Updating", state: "Updating", node: []any{"ready", "four", true}, upTo: "UpdateUpdating",
			events: []string{"UpdateUpdating"}, ttl: plan.InFlight,
		},
		{
			name: "WhoseAnswerCounts", world: says(agentDone, "four", ""),
			phase: "Updating", state: "Succeeded", node: []any{"ready", "four", true}, upTo: "UpdateSucceeded",
			events: []string{"UpdateSucceeded"}, ttl: plan.InFlight,
		},
	}
	for _, s := range stages {
		p.Now = p.Now.Add(max(s.after, time.Second))
		s.world()
		r := p.Reconcile()
		labels := r.Node.Labels
		state, _, _ := unstructured.NestedString(p.Machine.Object, "status", "update", "state")
		got := []any{phase(p), state, []any{labels["machine.drover.dev/update"], labels["machine.drover.dev/update-to"], r.Node.Drained}, r.Conditions["Updated"].GetReason(), eventReasons(r), r.TTL}
		want := []any{s.phase, s.state, s.node, s.upTo, s.events, s.ttl}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: -want +got:\n%s", s.name, diff)
		}
		if again, err := p.Pipe(); err != nil || len(again.Events) > 0 {
			t.Errorf("%s: reported again: %v, %v", s.name, again.Events, err)
		}
		if diff := cmp.Diff(vm.Object["spec"], p.Composed["vm"].Object["spec"]); diff != "" {
			t.Errorf("%s: the VM changed:\n%s", s.name, diff)
		}
	}
}

func TestAUserSelectsANodeForAnUpdate(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	candidate := map[string]any{"id": "two", "version": "v1.36.0", "classRef": map[string]any{"name": "small"}, "timeout": "20m"}
	Set(p.Machine, candidate, "spec", "inPlaceUpdate")
	selected := func() any {
		p.Reconcile()
		v, _, _ := unstructured.NestedFieldNoCopy(p.Machine.Object, "status", "update", "requested")
		return v
	}
	if got := selected(); got != nil {
		t.Errorf("nobody selected it: %v", got)
	}
	for value, want := range map[string]any{"true": true, "two": true, "one": nil, "false": nil} {
		p.NodeSays(map[string]string{"machine.drover.dev/update-selected": value}, nil)
		if got := selected(); got != want {
			t.Errorf("the Node is labelled %q: %v", value, got)
		}
	}
}

func TestAVMThatIsLostDuringItsUpdateFailsItsMachine(t *testing.T) {
	p := newPlane(t)
	p.ToRunning()
	Set(p.Machine, map[string]any{"id": "two", "version": "v1.36.0", "classRef": map[string]any{"name": "small"}, "selected": true}, "spec", "inPlaceUpdate")
	p.Reconcile()
	Condition(p.Composed["vm"], "Ready", "False", "Missing", "vm-0123456789 is no longer there")
	p.Reconcile()
	if phase(p) != "Failed" || field(p, "failureReason") != "VMLost" {
		t.Errorf("phase %s, %s", phase(p), field(p, "failureReason"))
	}
}
