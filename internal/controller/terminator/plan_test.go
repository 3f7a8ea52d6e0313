package terminator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestNextStepOfAnObject(t *testing.T) {
	cases := map[string]struct {
		self
		left bool
		want step
	}{
		"OneThatLivesIsHeld":                           {self: self{}, left: true, want: hold},
		"OneThatIsHeldIsLeftAlone":                     {self: self{held: true}, left: true, want: nothing},
		"ADeletionInTheBackgroundIsMadeAForegroundOne": {self: self{deleting: true, held: true}, left: true, want: deleteAgain},
		"ADeletionInTheForegroundRuns":                 {self: self{deleting: true, held: true, foreground: true}, left: true, want: nothing},
		"WithNothingLeftItMayGo":                       {self: self{deleting: true, held: true, foreground: true}, want: letGo},
		"WithNothingLeftItIsNotDeletedAgain":           {self: self{deleting: true, held: true}, want: letGo},
		"WhatIsDyingUnheldCannotBeHeldAnyMore":         {self: self{deleting: true}, left: true, want: nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.next(tc.left); got != tc.want {
				t.Errorf("step %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPlanOfAMachine(t *testing.T) {
	dying := self{deleting: true, held: true, foreground: true}
	heldVM := vm{kind: "VirtualMachine", name: "v", held: true}
	freeVM := vm{kind: "VirtualMachine", name: "v"}
	wn := workerNode{name: "w"}
	type op struct {
		t    v1alpha1.OperationType
		text string
	}
	cases := map[string]struct {
		machineState
		step    step
		skip    []string
		release []vm
		op      op
	}{
		"WhileItLivesItsVMIsKept": {machineState: machineState{self: self{held: true}, vms: []vm{heldVM}}, step: nothing},
		"TheVMWaitsForTheWorkerNode": {machineState: machineState{self: dying, workerNodes: []workerNode{wn}, vms: []vm{heldVM}}, step: nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for WorkerNode w: its Node is drained and deleted"}},
		"TheUserLearnsWhichPodBlocks": {machineState: machineState{self: dying, workerNodes: []workerNode{{name: "w", blocked: "pod a/b: its budget"}}, vms: []vm{heldVM}}, step: nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for WorkerNode w: pod a/b: its budget"}},
		"TheVMIsReleasedWhenTheWorkerNodeIsGone": {machineState: machineState{self: dying, vms: []vm{heldVM}}, step: nothing, release: []vm{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"AReleasedVMIsWaitedFor": {machineState: machineState{self: dying, vms: []vm{freeVM}}, step: nothing,
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"WithoutVMAndWorkerNodeItGoes": {machineState: machineState{self: dying}, step: letGo},
		"AVMThatCannotBeSeenKeepsIt": {machineState: machineState{self: dying, unreadable: "no right"}, step: nothing,
			op: op{v1alpha1.OperationDelete, "Waiting for a VM that cannot be seen: no right"}},
		"SkipDrainIsPassedOn":     {machineState: machineState{self: dying, skipDrain: true, workerNodes: []workerNode{wn}}, step: nothing, skip: []string{"w"}, op: op{v1alpha1.OperationDrain, "Waiting for WorkerNode w: its Node is drained and deleted"}},
		"SkipDrainIsPassedOnOnce": {machineState: machineState{self: dying, skipDrain: true, workerNodes: []workerNode{{name: "w", skipDrain: true}}}, step: nothing, op: op{v1alpha1.OperationDrain, "Waiting for WorkerNode w: its Node is drained and deleted"}},
		"ABackgroundDeletionStillReleases": {machineState: machineState{self: self{deleting: true, held: true}, vms: []vm{heldVM}}, step: deleteAgain, release: []vm{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"WhoTookOurFinalizerOffStillGetsTheVMReleased": {machineState: machineState{self: self{deleting: true}, vms: []vm{heldVM}}, step: nothing, release: []vm{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.machineState)
			if p.step != tc.step {
				t.Errorf("step %s, want %s", p.step, tc.step)
			}
			if d := cmp.Diff(tc.skip, p.skip); d != "" {
				t.Errorf("skip (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.release, p.release, cmp.AllowUnexported(vm{})); d != "" {
				t.Errorf("release (-want +got):\n%s", d)
			}
			got := op{}
			if p.operation != nil {
				got = op{p.operation.Type, p.operation.Description}
			}
			if got != tc.op {
				t.Errorf("operation %+v, want %+v", got, tc.op)
			}
			if want := p.step == letGo || len(p.release) > 0; p.irrevocable() != want {
				t.Errorf("irrevocable %v, want %v", p.irrevocable(), want)
			}
		})
	}
}
