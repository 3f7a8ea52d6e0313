package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestAProblemIsAnEventOnceAndAgainWhenItChanges(t *testing.T) {
	o := Observed{Machine: machine(phaseIs("Pending")), VM: plan.VM{State: plan.VMAbsent}}
	for _, step := range []struct {
		problem *plan.Problem
		want    int
	}{
		{&plan.Problem{Reason: "ClassNotFound", Message: "no class"}, 1},
		{&plan.Problem{Reason: "ClassNotFound", Message: "no class"}, 0},
		{&plan.Problem{Reason: "ClassNotFound", Message: "no other class"}, 1},
		{&plan.Problem{Reason: "ClassInvalid", Message: "no other class"}, 1},
		{nil, 0},
		{&plan.Problem{Reason: "ClassInvalid", Message: "no other class"}, 1},
	} {
		o.Bootstrap.Problem = step.problem
		d := Plan(soon, o)
		if len(d.Events) != step.want {
			t.Errorf("problem %v: events %v, want %d", step.problem, d.Events, step.want)
		}
		o = applied(o, d)
	}
}

// TestTheLastOperationSaysWhatAMachineWaitsFor, or how its creation ended.
func TestTheLastOperationSaysWhatAMachineWaitsFor(t *testing.T) {
	type status = machinev1alpha1.MachineStatus
	running := plan.VM{State: plan.VMRunning, ProviderID: id}
	cases := map[string]struct {
		status status
		o      Observed
		want   string
	}{
		"TheJoinToken": {
			phaseIs(""), Observed{VM: plan.VM{State: plan.VMAbsent}, Bootstrap: plan.Bootstrap{Waiting: "waiting for the join token"}},
			"Create Processing: waiting for the join token",
		},
		"UserDataOfWhichNothingIsKnown": {
			phaseIs(""), Observed{VM: plan.VM{State: plan.VMAbsent}}, "Create Processing: waiting for user data",
		},
		"TheJoinTokenOfAVMThatIsRequested": {
			phaseIs(""), Observed{VM: plan.VM{State: plan.VMCreating, Name: "m", Message: "slow"}, Bootstrap: plan.Bootstrap{Waiting: "waiting for the join token"}},
			"Create Processing: waiting for the join token",
		},
		"TheProvider": {
			phaseIs(""), Observed{VM: plan.VM{State: plan.VMCreating, Name: "m", Message: "slow"}}, "Create Processing: slow",
		},
		"TheProviderThatReportsNothing": {
			phaseIs(""), Observed{VM: plan.VM{State: plan.VMCreating, Name: "m"}}, "Create Processing: waiting for VM m to run",
		},
		"TheProviderThatHasNamedTheVM": {
			phaseIs("Provisioning"), Observed{VM: plan.VM{State: plan.VMCreating, ProviderID: id, Name: "m"}}, "Create Processing: waiting for VM m to run",
		},
		"AJoinTokenThatARunningVMNeedsNoMore": {
			phaseIs("Joining"), Observed{VM: running, Bootstrap: plan.Bootstrap{Waiting: "waiting for the join token"}},
			"Join Processing: waiting for the Node of VM test:///1",
		},
		"TheNode": {
			phaseIs("Joining"), Observed{VM: running, WorkerNode: starting()}, "Join Processing: The Node m still has the startup taints cni:NoSchedule",
		},
		"NothingMore": {
			phaseIs("Joining"), Observed{VM: running, WorkerNode: readyNode()}, "Join Successful: Node m joined",
		},
		"NothingMoreOnceItHasRun": {
			status{Phase: "Unknown", NodeRef: &machinev1alpha1.NodeReference{Name: "m"}}, Observed{VM: running}, "Join Successful: Node m joined",
		},
		"NothingMoreOfTheNodeThatItHasNow": {
			status{Phase: "Unknown", NodeRef: &machinev1alpha1.NodeReference{Name: "former"}}, Observed{VM: running, WorkerNode: readyNode()}, "Join Successful: Node m joined",
		},
		"NothingThatFailedItLater": {
			status{Phase: "Running", NodeRef: &machinev1alpha1.NodeReference{Name: "m"}}, Observed{VM: plan.VM{State: plan.VMLost, Message: "gone"}}, "Join Successful: Node m joined",
		},
		"ItIsFailedForItsVM": {
			phaseIs("Provisioning"), Observed{VM: plan.VM{State: plan.VMFailed, ErrorCode: "CapacityExhausted", Message: "full"}}, "Create Failed: full",
		},
		"ItIsFailedForItsVMAlthoughANodeCame": {
			status{Phase: "Joining", NodeRef: &machinev1alpha1.NodeReference{Name: "m"}, ProviderID: id}, Observed{VM: plan.VM{State: plan.VMLost, Message: "gone"}}, "Join Failed: gone",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Machine = machine(tc.status)
			op := Plan(soon, tc.o).Status.LastOperation
			if got := string(op.Type) + " " + string(op.State) + ": " + op.Description; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheLastOperationSaysHowFarAnUpdateIs(t *testing.T) {
	o := Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()}
	o.Machine.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "new", Version: "v1.36.0", ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Selected: true}
	op := Plan(soon, o).Status.LastOperation
	if want := `Draining the Node for update new, to version v1.36.0 of class "small"`; op.Type != machinev1alpha1.OperationUpdate || op.Description != want {
		t.Errorf("%s %q, want Update %q", op.Type, op.Description, want)
	}
}

func TestANodeThatReportsButNotItsReadinessIsNotGone(t *testing.T) {
	wn := nodeWith("MemoryPressure", "False")
	wn.Observation.Conditions = wn.Observation.Conditions[1:]
	d := Plan(soon, Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn})
	if c := conditionOf(d, machinev1alpha1.ConditionNodeReady); c.Status != isFalse || c.Reason != machinev1alpha1.ReasonNodeNotReady {
		t.Errorf("%+v", c)
	}
}

func TestAnUnknownMachineIsAnEventOfItsNode(t *testing.T) {
	for name, tc := range map[string]struct {
		vm   plan.VM
		node *workernode.WorkerNode
		want string
	}{
		"whose VM does not run either": {plan.VM{State: plan.VMCreating, ProviderID: id, Message: "stopped"}, workerNodeThat("m", "Unknown"), machinev1alpha1.ReasonNodeUnknown},
		"that is Ready and unhealthy":  {plan.VM{State: plan.VMRunning, ProviderID: id}, nodeWith("KernelDeadlock", "True"), machinev1alpha1.ReasonNodeUnhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Machine: machine(phaseIs("Running")), VM: tc.vm, WorkerNode: tc.node}
			o.Machine.Spec.Health.Conditions = []machinev1alpha1.HealthCondition{{Type: "KernelDeadlock", Status: "True"}}
			d := Plan(soon, o)
			if len(d.Events) != 1 || d.Events[0].Reason != tc.want || d.Status.Phase != machinev1alpha1.MachineUnknown {
				t.Errorf("phase %s, events %+v, want %s", d.Status.Phase, d.Events, tc.want)
			}
		})
	}
}

func TestAMachineIsNotFailedForANodeThatCannotBeObserved(t *testing.T) {
	for name, change := range map[string]func(*Observed){
		"an unreachable cluster":       func(o *Observed) { o.TargetUnreachable = true },
		"a Node that was not observed": func(o *Observed) { unreachable(o.WorkerNode) },
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: workerNodeThat("m", "False")}
			change(&o)
			want := "Node condition Ready is False: the Node cannot be observed; the Machine stays Unknown"
			if c := conditionOf(Plan(soon, o), machinev1alpha1.ConditionNodeHealthy); c.Message != want {
				t.Errorf("%q, want %q", c.Message, want)
			}
		})
	}
}

func TestTheStatusHasTheFactsOfTheNode(t *testing.T) {
	wn := readyNode()
	wn.Observation.NodeInfo = &workernode.Info{KubeletVersion: "v1.35.4"}
	wn.Observation.Addresses = []workernode.Address{{Type: "Hostname", Address: "m"}}
	d := Plan(soon, Observed{Machine: machine(phaseIs("Joining")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn})
	want := machinev1alpha1.MachineStatus{
		NodeInfo:   &machinev1alpha1.NodeInfo{KubeletVersion: "v1.35.4"},
		Addresses:  []machinev1alpha1.Address{{Type: "Hostname", Address: "m"}},
		ReadySince: &metav1.Time{Time: soon},
		NodeRef:    &machinev1alpha1.NodeReference{APIVersion: "v1", Kind: "Node", Name: "m"},
	}
	got := machinev1alpha1.MachineStatus{NodeInfo: d.Status.NodeInfo, Addresses: d.Status.Addresses, ReadySince: d.Status.ReadySince, NodeRef: d.Status.NodeRef}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !d.Ready {
		t.Error("a Machine that runs is not ready")
	}
	if d := Plan(soon, Observed{Machine: machine(phaseIs("Joining")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}}); d.Ready {
		t.Error("a Machine that joins is ready")
	}
}

func TestAVMThatWaitsForUserDataSaysSo(t *testing.T) {
	d := Plan(soon, Observed{
		Machine:   machine(phaseIs("")),
		VM:        plan.VM{State: plan.VMCreating, ErrorCode: "Throttled", Message: "slow down"},
		Bootstrap: plan.Bootstrap{Waiting: "waiting for the join token"},
	})
	if c := conditionOf(d, machinev1alpha1.ConditionInfrastructureReady); c.Reason != machinev1alpha1.ReasonWaiting || c.Message != "waiting for the join token" {
		t.Errorf("%+v", c)
	}
}

func TestANodeMayRequestItsReplacementAfterFiveMinutes(t *testing.T) {
	for after, want := range map[time.Duration]bool{5*time.Minute - time.Second: false, 5 * time.Minute: true} {
		wn := readyNode()
		wn.Observation.Annotations = map[string]string{machinev1alpha1.AnnotationReplace: "true"}
		d := Plan(created.Add(after), Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn})
		if d.Status.ReplaceRequested != want || !want && d.CallAgain != time.Second {
			t.Errorf("after %s: requested %t, calls again after %s", after, d.Status.ReplaceRequested, d.CallAgain)
		}
	}
}

func TestTheConditionPreservedSaysUntilWhen(t *testing.T) {
	earlier, longAgo := soon.Add(-30*time.Minute), soon.Add(-2*time.Hour)
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"never":     {preservable("Running", "", "", nil), ""},
		"preserved": {preservable("Running", "now", "", preservedBy("now", earlier)), "True Preserved: Kept until 2030-01-01T12:31:00Z, as " + machinev1alpha1.AnnotationPreserve + ": now asks for"},
		"over":      {preservable("Running", "now", "", preservedBy("now", longAgo)), "False PreservationExpired: It was kept until 2030-01-01T11:01:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, c := range Plan(soon, tc.o).Conditions {
				if c.Type == machinev1alpha1.ConditionPreserved {
					got = c.Status + " " + c.Reason + ": " + c.Message
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	o := preservable("Running", "", "", nil)
	o.Machine.Status.Conditions = []metav1.Condition{{Type: machinev1alpha1.ConditionPreserved, Status: "True", Reason: machinev1alpha1.ReasonPreserved}}
	if c := conditionOf(Plan(soon, o), machinev1alpha1.ConditionPreserved); c.Status != isFalse || c.Reason != machinev1alpha1.ReasonNotPreserved {
		t.Errorf("once it is asked for no more: %+v", c)
	}
}

func TestAMachineIsNotUnhealthyWhoseNodeNeverWas(t *testing.T) {
	o := Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()}
	for _, c := range Plan(soon, o).Conditions {
		if c.Type == machinev1alpha1.ConditionNodeHealthy {
			t.Errorf("%+v", c)
		}
	}
	o.Machine.Status.Conditions = []metav1.Condition{{Type: machinev1alpha1.ConditionNodeHealthy, Status: "False", Reason: machinev1alpha1.ReasonNodeUnhealthy}}
	if c := conditionOf(Plan(soon, o), machinev1alpha1.ConditionNodeHealthy); c.Status != isTrue || c.Reason != machinev1alpha1.ReasonNodeHealthy {
		t.Errorf("once it is healthy: %+v", c)
	}
}
