package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// A rebootWorld is a Machine, its Node and the provider of its VM over time.
type rebootWorld struct {
	t       *testing.T
	now     time.Time
	machine *machinev1alpha1.Machine
	node    *workernode.WorkerNode
	vm      plan.VM
	last    Desired
	// requests that the provider got, and the reasons of all events.
	requests, events []string
	target           struct{ unreachable bool }
	// profiles of spec.health, and the devices that the class names.
	profiles plan.HealthProfiles
	devices  machinev1alpha1.Devices
}

func newRebootWorld(t *testing.T) *rebootWorld {
	t.Helper()
	w := &rebootWorld{t: t, now: created, machine: machine(phaseIs(machinev1alpha1.MachineRunning)), node: readyNode()}
	w.machine.Annotations = map[string]string{}
	w.node.Observation.BootID, w.node.Observation.Synced = "first", true
	w.vm = plan.VM{State: plan.VMRunning, ProviderID: id, Confirmed: true, Reboot: &plan.RebootReport{}}
	w.plan()
	w.events = nil
	return w
}

// plan decides until nothing changes. The Node follows its parameters at once, but for the drain.
func (w *rebootWorld) plan() {
	for range 5 {
		w.last = Plan(w.now, Observed{Machine: w.machine, VM: w.vm, WorkerNode: w.node, TargetUnreachable: w.target.unreachable, HealthProfiles: w.profiles, Devices: w.devices})
		for _, e := range w.last.Events {
			w.events = append(w.events, e.Reason)
		}
		conditions := w.machine.Status.Conditions
		w.machine.Status = *w.last.Status.DeepCopy()
		w.machine.Status.Conditions = conditions
		for _, c := range w.last.Conditions {
			w.machine.Status.Conditions = slices.DeleteFunc(w.machine.Status.Conditions, func(was metav1.Condition) bool { return was.Type == c.Type })
			w.machine.Status.Conditions = append(w.machine.Status.Conditions, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
		}
		w.node.Parameters = *w.last.WorkerNode
		if !w.node.Parameters.Drained {
			w.node.Observation.Drained = false
		}
		if r := w.last.Requests.Reboot; r != "" && (len(w.requests) == 0 || w.requests[len(w.requests)-1] != r) {
			w.requests = append(w.requests, r)
		}
	}
}

func (w *rebootWorld) request(id string) {
	w.machine.Annotations[machinev1alpha1.AnnotationReboot] = id
	w.plan()
}

func (w *rebootWorld) drained() { w.node.Observation.Drained = true; w.plan() }

// boots lets the Node report another boot, and whether it is Ready.
func (w *rebootWorld) boots(bootID, ready string) {
	w.node.Observation.BootID, w.node.Observation.Conditions = bootID, workerNodeThat("m", ready).Observation.Conditions
	w.plan()
}

func (w *rebootWorld) after(d time.Duration) { w.now = w.now.Add(d); w.plan() }

func (w *rebootWorld) refuses(request, message string) {
	w.vm.Reboot = &plan.RebootReport{Begun: request, Refused: request, Message: message}
	w.plan()
}

// want the state of the reboot, the phase of the Machine, and a part of the message of the condition.
func (w *rebootWorld) want(state machinev1alpha1.RebootState, phase machinev1alpha1.MachinePhase, message string) {
	w.t.Helper()
	s := w.machine.Status
	if s.Reboot == nil || s.Reboot.State != state || s.Phase != phase {
		w.t.Fatalf("reboot %+v, phase %s, want %s, %s", s.Reboot, s.Phase, state, phase)
	}
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == machinev1alpha1.ConditionRebooted })
	if i < 0 || !strings.Contains(s.Conditions[i].Message, message) {
		w.t.Fatalf("conditions %+v do not say %q", s.Conditions, message)
	}
}

func (w *rebootWorld) wantRequests(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.requests, want) {
		w.t.Errorf("requests to the provider: %q, want %q", w.requests, want)
	}
}

func TestAReboot(t *testing.T) {
	const rebooting, running, unknown = machinev1alpha1.MachineRebooting, machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown
	for name, story := range map[string]func(w *rebootWorld){
		"DrainsRebootsAndIsProvenByTheBootIDOfTheNode": func(w *rebootWorld) {
			w.request("one")
			w.want(machinev1alpha1.RebootDraining, rebooting, "Draining the Node for reboot one")
			w.wantRequests()
			w.drained()
			w.want(machinev1alpha1.RebootRebooting, rebooting, "Soft reboot one was requested")
			w.boots("first", "Unknown")
			w.boots("second", "False")
			w.want(machinev1alpha1.RebootRebooting, rebooting, "the VM was rebooted: The Node m is not Ready")
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
			w.wantRequests("Soft/one")
			if w.node.Parameters.Drained || w.last.Requests.Reboot != "" {
				w.t.Errorf("the Node stays cordoned, or the request in force: %+v", w.last)
			}
			if op := w.machine.Status.LastOperation; op.Type != machinev1alpha1.OperationReboot || op.State != machinev1alpha1.OperationSuccessful {
				w.t.Errorf("last operation: %+v", op)
			}
			if want := []string{"RebootDraining", "Rebooting", "Rebooted"}; !slices.Equal(w.events, append(want, machinev1alpha1.ReasonNodeReady)) && !slices.Equal(w.events, want) {
				w.t.Errorf("events: %q", w.events)
			}
		},
		"IsDoneOncePerID": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.boots("second", "True")
			w.request("one")
			w.after(time.Hour)
			w.request("two")
			w.drained()
			w.boots("third", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "Reboot two is proven")
			w.request("one")
			w.after(time.Hour)
			w.want(machinev1alpha1.RebootSucceeded, running, "Reboot two is proven")
			w.wantRequests("Soft/one", "Soft/two")
		},
		"IsNotRepeatedAfterARestoreThatLosesTheStatus": func(w *rebootWorld) {
			w.vm.Reboot.Begun = "Soft/one"
			w.request("one")
			if w.machine.Status.Reboot != nil {
				w.t.Errorf("reboots again: %+v", w.machine.Status.Reboot)
			}
		},
		"IsHardWhenTheSoftOneShowsNothing": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.after(softRebootFor - time.Second)
			w.wantRequests("Soft/one")
			if w.last.CallAgain != time.Second {
				w.t.Errorf("calls again after %s", w.last.CallAgain)
			}
			w.after(time.Second)
			w.want(machinev1alpha1.RebootRebooting, rebooting, "Hard reboot one was requested")
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
			w.wantRequests("Soft/one", "Hard/one")
		},
		"IsHardAtOnceWhenTheSoftOneIsRefused": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.refuses("Soft/one", "no guest tools")
			w.want(machinev1alpha1.RebootRebooting, rebooting, "the soft reboot was refused: no guest tools")
			w.wantRequests("Soft/one", "Hard/one")
		},
		"IsWaitedForWhileItsProviderRepeatsTheRequest": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.vm.Reboot = &plan.RebootReport{Delayed: "Soft/one", Message: "server is locked"}
			w.after(softRebootFor - time.Second)
			w.wantRequests("Soft/one")
			w.after(time.Second)
			w.want(machinev1alpha1.RebootRebooting, rebooting, "the soft reboot was refused for 5m0s: server is locked")
			w.vm.Reboot = &plan.RebootReport{Delayed: "Hard/one", Message: "server is locked"}
			w.after(machinev1alpha1.DefaultRebootTimeout - time.Second)
			w.wantRequests("Soft/one", "Hard/one")
			w.after(time.Second)
			w.want(machinev1alpha1.RebootFailed, running, "the reboot was refused for 15m0s: server is locked")
			w.wantRequests("Soft/one", "Hard/one")
		},
		"FailsWhenTheHardOneIsRefused": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.refuses("Soft/one", "no guest tools")
			w.refuses("Hard/one", "quota of resets")
			w.want(machinev1alpha1.RebootFailed, running, "was refused: quota of resets")
		},
		"DoesNotBelieveARefusalOfAnEarlierRequest": func(w *rebootWorld) {
			w.refuses("Hard/zero", "too late")
			w.request("one")
			w.drained()
			w.want(machinev1alpha1.RebootRebooting, rebooting, "Soft reboot one was requested")
			w.wantRequests("Soft/one")
		},
		"FailsWhenNothingProvesTheHardOne": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.after(softRebootFor)
			w.after(machinev1alpha1.DefaultRebootTimeout - time.Second)
			w.want(machinev1alpha1.RebootRebooting, rebooting, "Hard")
			w.after(time.Second)
			w.want(machinev1alpha1.RebootFailed, running, "the Node reported no other boot ID within 15m0s")
			if w.node.Parameters.Drained {
				w.t.Error("the Node stays cordoned")
			}
		},
		"FailsWhenTheNodeIsNotHealthyAfterIt": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.boots("second", "False")
			w.after(softRebootFor + time.Second)
			w.wantRequests("Soft/one") // It has booted: another reboot helps no more.
			w.after(machinev1alpha1.DefaultRebootTimeout)
			w.want(machinev1alpha1.RebootFailed, unknown, "its Node was not healthy within 15m0s: The Node m is not Ready")
		},
		"NeverFailsTheMachineMeanwhile": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.boots("first", "Unknown")
			w.vm.State, w.vm.Verdict = plan.VMCreating, &plan.Verdict{State: plan.VMFailed, Message: "VM has been stopped"}
			w.after(softRebootFor)
			w.node.Observation.Present, w.node.Observation.Conditions = false, nil // As a cloud-controller-manager does with a stopped VM.
			w.after(machinev1alpha1.DefaultRebootTimeout - time.Second)
			w.want(machinev1alpha1.RebootRebooting, rebooting, "Hard")
		},
		"EndsWithTheLossOfTheVM": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.vm.State, w.vm.Message = plan.VMLost, "the provider finds it no more"
			w.plan()
			if w.machine.Status.Phase != machinev1alpha1.MachineFailed {
				w.t.Errorf("phase %s", w.machine.Status.Phase)
			}
		},
		"IsHeldWhileTheClusterCannotBeReached": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.node.Observation.Error = "connection refused"
			w.after(time.Hour)
			w.want(machinev1alpha1.RebootRebooting, rebooting, "the Node cannot be observed")
			w.wantRequests("Soft/one")
			w.node.Observation.Error = ""
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
		},
		"IsWithdrawnWithItsAnnotationBeforeTheVMIsRebooted": func(w *rebootWorld) {
			w.request("one")
			delete(w.machine.Annotations, machinev1alpha1.AnnotationReboot)
			w.plan()
			w.want(machinev1alpha1.RebootFailed, running, "withdrawn")
			w.wantRequests()
		},
		"IsNotWithdrawnAfterIt": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			delete(w.machine.Annotations, machinev1alpha1.AnnotationReboot)
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
		},
		"GivesWayToAnotherRequestOnlyBeforeIt": func(w *rebootWorld) {
			w.request("one")
			w.request("two")
			w.want(machinev1alpha1.RebootDraining, rebooting, "for reboot two")
			w.drained()
			w.request("three")
			w.want(machinev1alpha1.RebootRebooting, rebooting, "reboot two")
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootDraining, rebooting, "reboot three")
		},
		"OfAVMThatItsProviderCannotRebootFails": func(w *rebootWorld) {
			w.vm.Reboot = nil
			w.request("one")
			w.want(machinev1alpha1.RebootFailed, running, "its provider cannot reboot VMs")
		},
		"OfAMachineWithoutANodeFails": func(w *rebootWorld) {
			w.node.Observation.BootID = ""
			w.request("one")
			w.want(machinev1alpha1.RebootFailed, running, "nothing else proves a reboot")
		},
		"WaitsForAnUpdateInPlace": func(w *rebootWorld) {
			w.machine.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "v2", Version: "v1.36.0", Selected: true}
			w.plan()
			w.request("one")
			w.want(machinev1alpha1.RebootWaiting, machinev1alpha1.MachineUpdating, "an update in place is in progress")
		},
		"HoldsAnUpdateInPlace": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.machine.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{ID: "v2", Version: "v1.36.0", Selected: true}
			w.plan()
			w.want(machinev1alpha1.RebootRebooting, rebooting, "Soft")
			if got := w.node.Parameters.Labels[machinev1alpha1.LabelUpdate]; got != machinev1alpha1.UpdateLabelCandidate {
				w.t.Errorf("the agent of the Node reads %q", got)
			}
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, machinev1alpha1.MachineUpdating, "is proven")
		},
		"DoesNotDrainANodeThatIsWedged": func(w *rebootWorld) {
			w.machine.Annotations[machinev1alpha1.AnnotationRebootDrain] = machinev1alpha1.RebootDrainNever
			w.request("one")
			w.want(machinev1alpha1.RebootDraining, rebooting, "Cordoning the Node")
			if p := w.node.Parameters; !p.Drained || !p.Drain.Skip {
				w.t.Errorf("parameters of the Node: %+v", p)
			}
			w.drained()
			w.wantRequests("Soft/one")
		},
		"OfAFailedMachineTakesItsFailureBack": func(w *rebootWorld) {
			w.boots("first", "Unknown")
			w.after(time.Hour)
			if w.machine.Status.Phase != machinev1alpha1.MachineFailed {
				w.t.Fatalf("phase %s", w.machine.Status.Phase)
			}
			w.request("one")
			w.want(machinev1alpha1.RebootDraining, machinev1alpha1.MachineFailed, "Draining")
			w.drained()
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
		},
		"IsNotCountedAsRunningUntilItsNodeIsUncordoned": func(w *rebootWorld) {
			w.request("one")
			w.drained()
			w.node.Observation.BootID = "second"
			w.last = Plan(w.now, Observed{Machine: w.machine, VM: w.vm, WorkerNode: w.node})
			if s := w.last.Status; s.Reboot.State != machinev1alpha1.RebootSucceeded || s.Phase != rebooting {
				w.t.Errorf("reboot %+v, phase %s", s.Reboot, s.Phase)
			}
			w.plan()
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
		},
	} {
		t.Run(name, func(t *testing.T) { story(newRebootWorld(t)) })
	}
}

// TestARebootAtRestChangesNothing holds that no state of a reboot is written anew while nothing happens.
func TestARebootAtRestChangesNothing(t *testing.T) {
	w := newRebootWorld(t)
	w.request("one")
	w.drained()
	for _, step := range []func(){func() {}, func() { w.boots("second", "False") }, func() { w.boots("second", "True") }} {
		step()
		before := w.machine.Status.DeepCopy()
		w.after(time.Minute)
		if r := w.machine.Status.Reboot; r.Message != before.Reboot.Message || !r.Since.Equal(&before.Reboot.Since) || w.machine.Status.LastOperation.Description != before.LastOperation.Description {
			t.Errorf("%+v became %+v", before.Reboot, r)
		}
	}
}

func TestAnInvalidRequestOfARebootIsReported(t *testing.T) {
	long := strings.Repeat("x", 256<<10) // The longest value that an API server accepts.
	for value, drain := range map[string]string{"": "", "two words": "", "id": "never", strings.Repeat("x", 64): "", long: "", "other": long} {
		w := newRebootWorld(t)
		if drain != "" {
			w.machine.Annotations[machinev1alpha1.AnnotationRebootDrain] = drain
		}
		w.request(value)
		i := slices.IndexFunc(w.machine.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == machinev1alpha1.ConditionAnnotationsValid && c.Status == metav1.ConditionFalse
		})
		if i < 0 || (drain == "") != (w.machine.Status.Reboot == nil) {
			t.Fatalf("%.70q: conditions %+v, reboot %+v", value, w.machine.Status.Conditions, w.machine.Status.Reboot)
		}
		if n := len(w.machine.Status.Conditions[i].Message); n > 500 {
			t.Errorf("%.70q: the message has %d bytes", value, n)
		}
	}
}
