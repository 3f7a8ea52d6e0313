package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// nodeWith returns a Node with these types and statuses of conditions. It is Ready unless they
// include Ready.
func nodeWith(conditions ...string) *workernode.WorkerNode {
	wn := readyNode()
	for i := 0; i < len(conditions); i += 2 {
		typ, status := conditions[i], conditions[i+1]
		if typ == "Ready" {
			wn.Observation.Conditions[0].Status = status
			continue
		}
		wn.Observation.Conditions = append(wn.Observation.Conditions, workernode.Condition{Type: typ, Status: status})
	}
	return wn
}

// A life is a running Machine with its observed state and the last decision.
type life struct {
	t *testing.T
	o Observed
	d Desired
	// events that were emitted so far.
	events []string
}

func alive(t *testing.T) *life {
	l := &life{t: t, o: Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()}}
	l.o.Machine.Spec.Health.Timeout.Duration = 10 * time.Minute
	return l
}

// at plans with the given Node, the given time after soon.
func (l *life) at(after time.Duration, wn *workernode.WorkerNode) *life {
	l.o.WorkerNode = wn
	l.d = Plan(soon.Add(after), l.o)
	for _, e := range l.d.Events {
		l.events = append(l.events, e.Reason)
	}
	l.o.Machine.Status = l.d.Status
	for _, c := range l.d.Conditions {
		l.o.Machine.Status.Conditions = append(l.o.Machine.Status.Conditions,
			metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
	}
	return l
}

func (l *life) is(p machinev1alpha1.MachinePhase) *life {
	l.t.Helper()
	if l.d.Status.Phase != p {
		l.t.Errorf("the phase is %s, want %s (%+v)", l.d.Status.Phase, p, l.d.Status.Unhealthy)
	}
	return l
}

func (l *life) condition(typ string) plan.Condition {
	for _, c := range l.d.Conditions {
		if c.Type == typ {
			return c
		}
	}
	return plan.Condition{}
}

func TestHealth(t *testing.T) {
	const timeout = 10 * time.Minute
	notReady, silent := nodeWith("Ready", "False"), nodeWith("Ready", "Unknown")
	own := func(typ, status string, d time.Duration) machinev1alpha1.HealthCondition {
		return machinev1alpha1.HealthCondition{Type: typ, Status: status, Timeout: &metav1.Duration{Duration: d}}
	}
	cases := map[string]func(l *life){
		"AMachineIsFailedWhenItsNodeIsNotReadyForTooLong": func(l *life) {
			l.at(0, notReady).is("Unknown")
			l.at(timeout-time.Second, notReady).is("Unknown")
			if l.d.CallAgain != time.Second {
				l.t.Errorf("called again in %s, want 1s", l.d.CallAgain)
			}
			l.at(timeout, notReady).is("Failed")
			if l.d.Status.FailureReason != "NodeUnhealthy" || l.d.Status.FailureMessage != "Node condition Ready is False, for longer than 10m0s" {
				l.t.Errorf("it failed with %s: %s", l.d.Status.FailureReason, l.d.Status.FailureMessage)
			}
		},
		"ANodeThatTurnsFromNotReadyToSilentDoesNotBeginAnew": func(l *life) {
			l.at(0, notReady).at(9*time.Minute, silent).is("Unknown").at(timeout, silent).is("Failed")
		},
		"AnotherConditionDoesNotBeginAnew": func(l *life) {
			l.at(0, nodeWith("DiskPressure", "True")).is("Unknown").at(9*time.Minute, notReady).is("Unknown").at(timeout, notReady).is("Failed")
		},
		"OtherWordsDoNotBeginAnew": func(l *life) {
			l.at(0, notReady)
			other := nodeWith("Ready", "False")
			other.Observation.Conditions[0].Reason = "KubeletNotReady"
			l.at(9*time.Minute, other).at(timeout, notReady).is("Failed")
		},
		"ANodeThatIsWellForAMomentOnlyDoesNotBeginAnew": func(l *life) {
			l.at(0, notReady).at(5*time.Minute, readyNode()).is("Running")
			l.at(5*time.Minute+wellAgain-time.Second, notReady).is("Unknown").at(timeout, notReady).is("Failed")
		},
		"ANodeThatIsWellAgainBeginsAnew": func(l *life) {
			l.at(0, notReady).at(5*time.Minute, readyNode()).is("Running").at(5*time.Minute+wellAgain, notReady).is("Unknown")
			l.at(timeout, notReady).is("Unknown").at(5*time.Minute+wellAgain+timeout, notReady).is("Failed")
		},
		"AShortTimeoutIsWellAgainAsShortly": func(l *life) {
			l.o.Machine.Spec.Health.Timeout.Duration = 10 * time.Second
			l.at(0, notReady).at(5*time.Second, readyNode()).at(15*time.Second, notReady).is("Unknown").at(20*time.Second, notReady).is("Unknown")
		},
		"AHealthyNodeTakesTheFailureBack": func(l *life) {
			l.at(0, silent).at(timeout, silent).is("Failed").at(timeout+time.Hour, readyNode()).is("Running")
			if s := l.d.Status; s.FailureReason != "" || s.FailureMessage != "" || s.LastOperation.State != "Successful" {
				l.t.Errorf("the failure stays: %+v", s)
			}
		},
		"AFailureIsNotTakenBackByAClusterThatIsUnreachable": func(l *life) {
			l.at(0, silent).at(timeout, silent).is("Failed")
			l.o.TargetUnreachable = true
			l.at(timeout+time.Hour, silent).is("Failed")
		},
		"NobodyIsJudgedWhileTheClusterIsUnreachable": func(l *life) {
			l.at(0, silent)
			l.o.TargetUnreachable = true
			l.at(time.Hour, silent).is("Unknown")
			l.o.TargetUnreachable, l.o.JudgeAfter = false, soon.Add(2*time.Hour)
			l.at(2*time.Hour-5*time.Second, silent).is("Unknown")
			if l.d.CallAgain != 5*time.Second {
				l.t.Errorf("called again in %s, want 5s", l.d.CallAgain)
			}
			l.at(2*time.Hour, silent).is("Failed")
		},
		"NorWhileTheNodeCannotBeObserved": func(l *life) {
			blind := nodeWith("Ready", "Unknown")
			blind.Observation.Error = "forbidden"
			l.at(0, blind).at(time.Hour, blind).is("Unknown")
		},
		"NorWithoutAnyObservation": func(l *life) {
			l.at(0, nil).is("Unknown").at(time.Hour, nil).is("Unknown")
		},
		"BadConditionsMakeAReadyNodeUnhealthy": func(l *life) {
			for _, typ := range []string{"KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable"} {
				l.o.Machine.Status = phaseIs("Running")
				l.at(0, nodeWith(typ, "True")).is("Unknown").at(timeout, nodeWith(typ, "True")).is("Failed")
			}
		},
		"OtherConditionsDoNot": func(l *life) {
			l.at(0, nodeWith("MemoryPressure", "True", "DiskPressure", "Unknown", "KernelDeadlock", "False")).is("Running")
		},
		"ConditionsMayBeOthers": func(l *life) {
			l.o.Machine.Spec.Health.Conditions = []machinev1alpha1.HealthCondition{{Type: "GPUHealthy", Status: "False"}}
			l.at(0, nodeWith("DiskPressure", "True")).is("Running").at(0, nodeWith("GPUHealthy", "False")).is("Unknown")
		},
		"AnEmptyListLeavesReadyAlone": func(l *life) {
			l.o.Machine.Spec.Health.Conditions = []machinev1alpha1.HealthCondition{}
			l.at(0, nodeWith("DiskPressure", "True")).is("Running").at(0, silent).is("Unknown")
		},
		"AConditionHasItsOwnTimeout": func(l *life) {
			l.o.Machine.Spec.Health.Conditions = []machinev1alpha1.HealthCondition{own("DiskPressure", "True", time.Hour)}
			l.at(0, nodeWith("DiskPressure", "True")).at(59*time.Minute, nodeWith("DiskPressure", "True")).is("Unknown")
			l.at(time.Hour, nodeWith("DiskPressure", "True")).is("Failed")
		},
		"WhichDoesNotCountForOthers": func(l *life) {
			l.o.Machine.Spec.Health.Conditions = []machinev1alpha1.HealthCondition{own("DiskPressure", "True", time.Hour)}
			both := nodeWith("Ready", "False", "DiskPressure", "True")
			l.at(0, nodeWith("DiskPressure", "True")).at(50*time.Minute, both).is("Unknown")
			l.at(59*time.Minute, both).is("Unknown").at(time.Hour, both).is("Failed")
		},
		"ASilentNodeMayHaveAnotherTimeoutThanOneThatIsNotReady": func(l *life) {
			l.o.Machine.Spec.Health.Conditions = []machinev1alpha1.HealthCondition{own("Ready", "Unknown", time.Minute)}
			l.at(0, silent).at(time.Minute, silent).is("Failed")
			l.o.Machine.Status = phaseIs("Running")
			l.at(0, notReady).at(time.Minute, notReady).is("Unknown").at(timeout, notReady).is("Failed")
		},
		"WhoIsDisabledStaysUnknown": func(l *life) {
			l.o.Machine.Spec.Health.Disabled = true
			l.at(0, silent).at(24*time.Hour, silent).is("Unknown")
			if c := l.condition(machinev1alpha1.ConditionNodeHealthy); !strings.Contains(c.Message, "spec.health.disabled") {
				l.t.Errorf("the condition does not say why: %+v", c)
			}
		},
		"WhoIsDisabledLosesItsVMAllTheSame": func(l *life) {
			l.o.Machine.Spec.Health.Disabled = true
			l.o.VM.State = plan.VMLost
			l.at(0, silent).is("Failed")
		},
		"TheMachineHoldsItOff": func(l *life) {
			l.o.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationSkipRemediation: "true"}
			l.at(0, silent).at(24*time.Hour, silent).is("Unknown")
			l.o.Machine.Annotations = nil
			l.at(24*time.Hour, silent).is("Failed")
		},
		"TheNodeHoldsItOff": func(l *life) {
			held := nodeWith("Ready", "Unknown")
			held.Observation.Annotations = map[string]string{machinev1alpha1.AnnotationSkipRemediation: "true"}
			l.at(0, held).at(24*time.Hour, held).is("Unknown").at(24*time.Hour, silent).is("Failed")
		},
		"WhoHoldsItOffLateTakesTheFailureBack": func(l *life) {
			l.at(0, silent).at(timeout, silent).is("Failed")
			l.o.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationSkipRemediation: "true"}
			l.at(timeout, silent).is("Unknown")
		},
		"AMachineIsNotJudgedWhileItIsUpdatedInPlace": func(l *life) {
			l.o.Machine.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "a", Selected: true}
			l.o.Machine.Status.Update = &machinev1alpha1.UpdateStatus{ID: "a", State: machinev1alpha1.UpdateDraining}
			l.at(0, notReady).at(24*time.Hour, notReady).is("Updating")
		},
		"ButWhenTheUpdateFailed": func(l *life) {
			l.o.Machine.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "a", Selected: true}
			l.o.Machine.Status.Phase = "Updating"
			l.o.Machine.Status.Update = &machinev1alpha1.UpdateStatus{ID: "a", State: machinev1alpha1.UpdateFailed}
			l.at(0, notReady).is("Updating").at(timeout, notReady).is("Failed")
		},
		"ItReportsWhatWillBecomeOfItAndOfEachChangeOnce": func(l *life) {
			for _, after := range []time.Duration{0, time.Second, time.Minute} {
				l.at(after, notReady)
				if c := l.condition(machinev1alpha1.ConditionNodeHealthy); c.Status != "False" || c.Message != "Node condition Ready is False: the Machine is Failed at 2030-01-01T12:11:00Z unless its Node is healthy before" {
					l.t.Errorf("after %s the condition is %+v", after, c)
				}
			}
			l.at(timeout, notReady).at(timeout, notReady).at(timeout, readyNode())
			if diff := cmp.Diff([]string{"NodeNotReady", "NodeUnhealthy", "NodeReady"}, l.events); diff != "" {
				l.t.Errorf("events: -want +got:\n%s", diff)
			}
			if c := l.condition(machinev1alpha1.ConditionNodeHealthy); c.Status != "True" {
				l.t.Errorf("in the end the condition is %+v", c)
			}
		},
		"TheStatusOfAnUnhealthyMachineDoesNotChangeWithTime": func(l *life) {
			before := l.at(0, silent).d.Status
			if diff := cmp.Diff(before, l.at(5*time.Minute, silent).d.Status); diff != "" {
				l.t.Errorf("-before +after:\n%s", diff)
			}
		},
		"AMachineIsReadySinceItIsHealthy": func(l *life) {
			l.at(0, nodeWith("DiskPressure", "True")).at(5*time.Minute, readyNode()).is("Running")
			if since := l.d.Status.ReadySince; since == nil || !since.Time.Equal(soon.Add(5*time.Minute)) {
				l.t.Errorf("it is ready since %v", since)
			}
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(alive(t)) })
	}
}

func TestTheStatusHasTheReasonThatTheNodeGives(t *testing.T) {
	wn := nodeWith("Ready", "False")
	wn.Observation.Conditions[0].Reason = "KubeletNotReady"
	d := alive(t).at(0, wn).d
	want := []machinev1alpha1.UnhealthyCondition{{Type: "Ready", Status: "False", Reason: "KubeletNotReady", Since: metav1.Time{Time: soon}}}
	if diff := cmp.Diff(want, d.Status.Unhealthy.Conditions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAJoiningMachineWaitsUntilItsNodeIsHealthy(t *testing.T) {
	l := alive(t)
	l.o.Machine.Status = phaseIs("Joining")
	l.at(0, nodeWith("NetworkUnavailable", "True")).is("Joining")
	if l.d.Status.Unhealthy != nil {
		l.t.Errorf("creationTimeout counts, not %+v", l.d.Status.Unhealthy)
	}
	l.o.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationSkipRemediation: "true"}
	l.at(time.Hour, nodeWith("NetworkUnavailable", "True")).is("Joining")
	l.o.Machine.Annotations = nil
	l.at(time.Hour, nodeWith("NetworkUnavailable", "True")).is("Failed")
	if want := "the Node was not healthy within 20m0s: The Node m has the condition NetworkUnavailable with the status True; last milestone: NodeReady"; l.d.Status.FailureMessage != want {
		l.t.Errorf("it says %q, want %q", l.d.Status.FailureMessage, want)
	}
	l.at(2*time.Hour, readyNode()).is("Running")
}

func TestAReplacementIsRequestedByMachineOrNode(t *testing.T) {
	l := alive(t).at(0, readyNode())
	if l.d.Status.ReplaceRequested {
		t.Fatal("nobody asked")
	}
	asks := readyNode()
	asks.Observation.Annotations = map[string]string{machinev1alpha1.AnnotationReplace: "true"}
	l.at(nodeMayRequestAfter-2*time.Minute, asks).is("Running")
	if l.d.Status.ReplaceRequested || l.d.CallAgain > time.Minute {
		t.Errorf("requested %v, called again in %s: the Machine is too young", l.d.Status.ReplaceRequested, l.d.CallAgain)
	}
	l.at(nodeMayRequestAfter, asks).at(nodeMayRequestAfter, asks).is("Running")
	if !l.d.Status.ReplaceRequested {
		t.Error("the Node asked")
	}
	if diff := cmp.Diff([]string{"ReplaceRequested"}, l.events); diff != "" {
		l.t.Errorf("events: -want +got:\n%s", diff)
	}
	for range 3 {
		if !l.at(time.Hour, readyNode()).d.Status.ReplaceRequested || !l.at(time.Hour, asks).d.Status.ReplaceRequested {
			t.Error("a kubelet had replacements created and deleted")
		}
	}
	if diff := cmp.Diff([]string{"ReplaceRequested"}, l.events); diff != "" {
		l.t.Errorf("events: -want +got:\n%s", diff)
	}
	l.o.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationReplace: "false"}
	if l.at(time.Hour, asks).d.Status.ReplaceRequested {
		t.Error("the Machine called it off")
	}
	l.o.Machine.Annotations = nil
	if l.at(time.Hour, readyNode()).d.Status.ReplaceRequested {
		t.Error("it was called off, and nothing requests it")
	}
	l.o.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationReplace: "true"}
	if !l.at(time.Hour, readyNode()).d.Status.ReplaceRequested {
		t.Error("the Machine asked")
	}
	l.o.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationReplace: "now"}
	if l.at(time.Hour, readyNode()).d.Status.ReplaceRequested {
		t.Error("it was asked for with a value that is none")
	}
	if c := l.condition(machinev1alpha1.ConditionAnnotationsValid); c.Message != `machine.drover.dev/replace: "now" of the Machine must be true or false, and is passed over` {
		l.t.Errorf("the condition is %+v", c)
	}
}
