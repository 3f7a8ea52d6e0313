package machine

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// runningWith returns a VM with a console that has run since the creation of its Machine.
func runningWith(c *plan.Console) plan.VM {
	return plan.VM{State: plan.VMRunning, ProviderID: id, Console: c}
}

func joining(join machinev1alpha1.JoinStatus) machinev1alpha1.MachineStatus {
	s := phaseIs(machinev1alpha1.MachineJoining)
	join.Milestones = []machinev1alpha1.ReachedMilestone{{Name: machinev1alpha1.JoinVMRunning, Time: *at(0)}}
	s.Join = &join
	return s
}

func progress(step string, state machinev1alpha1.BootstrapState, code int32) *machinev1alpha1.BootstrapProgress {
	p := &machinev1alpha1.BootstrapProgress{Step: step, State: state, Since: *at(1)}
	if state == machinev1alpha1.BootstrapFailed {
		p.ExitCode = &code
	}
	return p
}

func describeBootstrap(p *machinev1alpha1.BootstrapProgress) string {
	if p == nil {
		return ""
	}
	return p.Step + " " + describeProgress(p, false) + " since " + p.Since.Sub(created).String()
}

func TestWhatTheConsoleOfALateMachineShows(t *testing.T) {
	const nobody = "No Node of the VM test:///1 has joined yet"
	failing := &console.Step{Name: "disks", State: console.Failed, ExitCode: 7, Output: "acme: no disk"}
	for name, tc := range map[string]struct {
		reason    string
		console   *plan.Console
		before    machinev1alpha1.JoinStatus
		after     time.Duration
		want      string
		because   string
		bootstrap string
		event     bool
		read      bool
	}{
		"ItIsNotLateYet": {
			"the console of most VMs is never read", &plan.Console{Excerpt: "x\n", Step: failing}, machinev1alpha1.JoinStatus{}, 59 * time.Second,
			nobody, "NodeNotJoined", "", false, false,
		},
		"ItsProviderReportsNone": {
			"nothing is requested of it", nil, machinev1alpha1.JoinStatus{}, 2 * time.Minute,
			nobody, "NodeNotJoined", "", false, false,
		},
		"NothingIsKnownYet": {
			"it is requested", &plan.Console{}, machinev1alpha1.JoinStatus{}, time.Minute,
			nobody, "NodeNotJoined", "", false, true,
		},
		"AStepFails": {
			"with its exit code and output", &plan.Console{Excerpt: "x\n", Step: failing}, machinev1alpha1.JoinStatus{}, 2 * time.Minute,
			nobody + "; bootstrap step disks failed with exit code 7 and is tried again: acme: no disk", "BootstrapFailing",
			"disks bootstrap step disks failed with exit code 7 and is tried again since 2m0s", true, true,
		},
		"ItHasFailedBefore": {
			"the time is that of the first failure", &plan.Console{Excerpt: "x\n", Step: failing}, machinev1alpha1.JoinStatus{Bootstrap: progress("disks", "Failed", 7)}, 2 * time.Minute,
			nobody + "; bootstrap step disks failed with exit code 7 and is tried again: acme: no disk", "BootstrapFailing",
			"disks bootstrap step disks failed with exit code 7 and is tried again since 1m0s", true, true,
		},
		"AStepRuns": {
			"a download may take long", &plan.Console{Excerpt: "x\n", Step: &console.Step{Name: "disks", State: console.Running}}, machinev1alpha1.JoinStatus{Bootstrap: progress("disks", "Failed", 7)}, 2 * time.Minute,
			nobody + "; bootstrap step disks is running", "NodeNotJoined", "disks bootstrap step disks is running since 2m0s", false, true,
		},
		"AllStepsAreDone": {
			"the kubelet was started", &plan.Console{Excerpt: "x\n", Step: &console.Step{State: console.Done}}, machinev1alpha1.JoinStatus{}, 2 * time.Minute,
			nobody + "; all its bootstrap steps are done", "NodeNotJoined", " all its bootstrap steps are done since 2m0s", false, true,
		},
		"TheUserDataIsRefused": {
			"there is no step then", &plan.Console{Excerpt: "x\n", Refusal: "util.py[WARNING]: Failed loading yaml blob"}, machinev1alpha1.JoinStatus{}, 2 * time.Minute,
			nobody + "; the operating system refused its user data: util.py[WARNING]: Failed loading yaml blob", "UserDataRefused", "", true, true,
		},
		"NothingIsUnderstood": {
			"the last lines may help", &plan.Console{Excerpt: "a\nb\nKernel panic\n"}, machinev1alpha1.JoinStatus{}, 2 * time.Minute,
			nobody + "; its console ends with: a | b | Kernel panic", "NodeNotJoined", "", false, true,
		},
		"TheConsoleIsGone": {
			"what was known stays", &plan.Console{}, machinev1alpha1.JoinStatus{Bootstrap: progress("disks", "Failed", 7)}, 2 * time.Minute,
			nobody + "; bootstrap step disks failed with exit code 7 and is tried again", "NodeNotJoined",
			"disks bootstrap step disks failed with exit code 7 and is tried again since 1m0s", false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Machine: machine(joining(tc.before)), VM: runningWith(tc.console), WorkerNode: workerNodeThat("", "")}
			d := Plan(created.Add(tc.after), o)
			c := conditionOf(d, machinev1alpha1.ConditionNodeReady)
			if c.Message != tc.want || c.Reason != tc.because {
				t.Errorf("%s: NodeReady is %s: %q, want %s: %q", tc.reason, c.Reason, c.Message, tc.because, tc.want)
			}
			if op := d.Status.LastOperation; op.Description != tc.want {
				t.Errorf("%s: the operation is %q", tc.reason, op.Description)
			}
			if got := describeBootstrap(d.Status.Join.Bootstrap); got != tc.bootstrap {
				t.Errorf("%s: step %q, want %q", tc.reason, got, tc.bootstrap)
			}
			if d.Requests.Console != tc.read || d.Status.Join.Console != "" {
				t.Errorf("%s: console requested %t, in the status %q", tc.reason, d.Requests.Console, d.Status.Join.Console)
			}
			if got := len(d.Events) == 1 && d.Events[0].Reason == tc.because && d.Events[0].Message == tc.want; got != tc.event {
				t.Errorf("%s: events %v", tc.reason, d.Events)
			}
			// Further output of the guest alone causes no second event.
			o.Machine.Status = d.Status
			o.Machine.Status.Conditions = []metav1.Condition{{Type: c.Type, Status: "False", Reason: c.Reason, Message: "before"}}
			if again := Plan(created.Add(tc.after), o); len(again.Events) > 0 {
				t.Errorf("%s: it is reported again: %v", tc.reason, again.Events)
			}
		})
	}
}

func TestAMachineIsLookedAtWhenItIsLate(t *testing.T) {
	o := Observed{Machine: machine(joining(machinev1alpha1.JoinStatus{})), VM: runningWith(&plan.Console{}), WorkerNode: workerNodeThat("", "")}
	if got := Plan(created.Add(20*time.Second), o).CallAgain; got != 40*time.Second {
		t.Errorf("again in %s", got)
	}
	o.VM.Console = nil
	if got := Plan(created.Add(20*time.Second), o).CallAgain; got != plan.InFlight {
		t.Errorf("without a console again in %s", got)
	}
	// A network plugin may take some minutes.
	o.VM.Console, o.WorkerNode = &plan.Console{}, workerNodeThat("n", "False")
	if d := Plan(created.Add(4*time.Minute), o); d.Requests.Console {
		t.Error("the console of a VM whose Node is there is read early")
	}
	if d := Plan(created.Add(5*time.Minute), o); !d.Requests.Console || conditionOf(d, machinev1alpha1.ConditionNodeReady).Message != "The Node n is not Ready" {
		t.Errorf("the console of a VM whose Node is not Ready is not read: %v", d.Conditions)
	}
}

func TestOnlyAVMThatRunsAndHasNeverBeenHealthyIsLate(t *testing.T) {
	hasRun := machinev1alpha1.JoinStatus{Milestones: []machinev1alpha1.ReachedMilestone{{Name: machinev1alpha1.JoinVMRunning, Time: *at(0)}}}
	running := machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineRunning, NodeRef: &machinev1alpha1.NodeReference{Name: "m"}, ReadySince: at(1), Join: &hasRun}
	for name, tc := range map[string]struct {
		status machinev1alpha1.MachineStatus
		vm     plan.VMState
		node   *workernode.WorkerNode
		want   bool
	}{
		"A VM without a Node":                        {joining(machinev1alpha1.JoinStatus{}), plan.VMRunning, workerNodeThat("", ""), true},
		"not one that does not run":                  {joining(machinev1alpha1.JoinStatus{}), plan.VMCreating, workerNodeThat("", ""), false},
		"not one whose Node is healthy":              {joining(machinev1alpha1.JoinStatus{}), plan.VMRunning, readyNode(), false},
		"not one whose Node was healthy and is gone": {running, plan.VMRunning, workerNodeThat("m", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			vm := runningWith(&plan.Console{})
			vm.State = tc.vm
			if d := Plan(created.Add(10*time.Minute), Observed{Machine: machine(tc.status), VM: vm, WorkerNode: tc.node}); d.Requests.Console != tc.want {
				t.Errorf("its console is requested: %t, want %t", d.Requests.Console, tc.want)
			}
		})
	}
}

func TestAClusterThatCannotBeReachedExplainsMoreThanAConsole(t *testing.T) {
	shown := &plan.Console{Excerpt: "x\n", Step: &console.Step{Name: "disks", State: console.Failed, ExitCode: 7}}
	o := Observed{Machine: machine(joining(machinev1alpha1.JoinStatus{})), VM: runningWith(shown), WorkerNode: unreachable(workerNodeThat("", ""))}
	d := Plan(created.Add(2*time.Minute), o)
	if c := conditionOf(d, machinev1alpha1.ConditionNodeReady); c.Reason != machinev1alpha1.ReasonNodeNotJoined || c.Message != "unreachable" {
		t.Errorf("NodeReady is %s: %s", c.Reason, c.Message)
	}
}

func TestTheConsoleOfAFailedMachineIsKept(t *testing.T) {
	shown := &plan.Console{Excerpt: "the last words\n", Step: &console.Step{Name: "disks", State: console.Failed, ExitCode: 7, Output: "no disk"}}
	o := Observed{Machine: machine(joining(machinev1alpha1.JoinStatus{})), VM: runningWith(shown), WorkerNode: workerNodeThat("", "")}
	d := Plan(late, o)
	if d.Status.Phase != machinev1alpha1.MachineFailed || d.Status.Join.Console != "the last words\n" || d.Requests.Console {
		t.Fatalf("phase %s, console %q, requested %t", d.Status.Phase, d.Status.Join.Console, d.Requests.Console)
	}
	const step = "bootstrap step disks failed with exit code 7 and is tried again: no disk"
	if m := d.Status.FailureMessage; !strings.Contains(m, step) || !strings.Contains(m, "read status.join.console") {
		t.Errorf("message %q", m)
	}
	failed := false
	for _, e := range d.Events {
		failed = failed || e.Reason == "JoinTimeout" && strings.Contains(e.Message, step)
	}
	if !failed {
		t.Errorf("events %v", d.Events)
	}

	o.Machine.Status = d.Status
	for name, vm := range map[string]plan.VM{
		"TheConsoleIsGone": runningWith(&plan.Console{}),
		"ItHasOtherText":   runningWith(&plan.Console{Excerpt: "other\n"}),
		"TheVMIsGone":      {State: plan.VMLost},
		"NoProvider":       runningWith(nil),
	} {
		o.VM = vm
		if j := Plan(late.Add(time.Hour), o).Status.Join; j.Console != "the last words\n" || j.Bootstrap == nil || j.Bootstrap.Step != "disks" {
			t.Errorf("%s: %+v", name, j)
		}
	}
	o.VM, o.WorkerNode = runningWith(shown), readyNode()
	if d := Plan(late.Add(time.Hour), o); d.Status.Phase != machinev1alpha1.MachineRunning || d.Status.Join.Console != "" || d.Status.Join.Bootstrap != nil {
		t.Errorf("of a Machine that works: phase %s, %+v", d.Status.Phase, d.Status.Join)
	}
}

func TestAVMThatEndsByItselfSaysWhy(t *testing.T) {
	const ended = "the VM ended by itself"
	for name, tc := range map[string]struct {
		console *plan.Console
		before  machinev1alpha1.MachineStatus
		message string
		reason  string
	}{
		"ItsUserDataIsRefused": {
			&plan.Console{Excerpt: "x\n", Refusal: "Ignition failed: config is not valid"}, phaseIs("Provisioning"),
			ended + "; the operating system refused its user data: Ignition failed: config is not valid", "UserDataRefused",
		},
		"AStepFailed": {
			&plan.Console{Excerpt: "x\n", Step: &console.Step{Name: "disks", State: console.Failed, ExitCode: 7}}, phaseIs("Provisioning"),
			ended + "; bootstrap step disks failed with exit code 7", "BootstrapFailing",
		},
		"ItPoweredOffInAStep": {
			&plan.Console{Excerpt: "x\n", Step: &console.Step{Name: "disks", State: console.Running}}, phaseIs("Provisioning"),
			ended + "; bootstrap step disks was running", "NodeNotJoined",
		},
		"ItsKernelPanics":        {&plan.Console{Excerpt: "Kernel panic\n"}, phaseIs("Provisioning"), ended + "; its console ends with: Kernel panic", "NodeNotJoined"},
		"ItsConsoleIsNotKnown":   {nil, phaseIs("Provisioning"), ended, "NodeNotJoined"},
		"ItsMachineHasRunBefore": {&plan.Console{Excerpt: "Kernel panic\n"}, machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineRunning, ReadySince: at(1)}, ended, "NodeNotJoined"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Machine: machine(tc.before), VM: plan.VM{State: plan.VMFailed, ProviderID: id, Message: ended, Console: tc.console}}
			d := Plan(soon, o)
			if got, _, _ := strings.Cut(d.Status.FailureMessage, "; read status.join.console"); got != tc.message {
				t.Errorf("message %q, want %q", got, tc.message)
			}
			if c := conditionOf(d, machinev1alpha1.ConditionNodeReady); c.Reason != tc.reason {
				t.Errorf("NodeReady is %s: %s, want %s", c.Reason, c.Message, tc.reason)
			}
		})
	}
}

func TestAVMThatFailsBeforeItsNodeKeepsItsConsole(t *testing.T) {
	o := Observed{Machine: machine(phaseIs("Provisioning")), VM: plan.VM{State: plan.VMFailed, Message: "the VM ended by itself", Console: &plan.Console{Excerpt: "Kernel panic\n"}}}
	if j := Plan(soon, o).Status.Join; j == nil || j.Console != "Kernel panic\n" {
		t.Errorf("%+v", j)
	}
}

// TestAConsoleIsNoAuthority checks that no output of a guest changes a decision.
func TestAConsoleIsNoAuthority(t *testing.T) {
	for _, now := range []time.Time{created.Add(2 * time.Minute), late} {
		o := Observed{Machine: machine(joining(machinev1alpha1.JoinStatus{})), VM: runningWith(&plan.Console{}), WorkerNode: workerNodeThat("", "")}
		want := Plan(now, o)
		for _, c := range []*plan.Console{
			{Excerpt: "x\n", Step: &console.Step{State: console.Done}},
			{Excerpt: "x\n", Refusal: "Ignition failed: no"},
			{Excerpt: "JoinTimeout\n", Step: &console.Step{Name: "s", State: console.Failed, ExitCode: 1}},
		} {
			o.VM.Console = c
			got := Plan(now, o)
			if got.Status.Phase != want.Status.Phase || got.Status.FailureReason != want.Status.FailureReason || got.Ready != want.Ready || got.CallAgain != want.CallAgain {
				t.Errorf("at %s with %+v: phase %s, %s", now, c, got.Status.Phase, got.Status.FailureReason)
			}
		}
	}
}
