package machine

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// newHealthWorld is a world whose Machine is rebooted for a deadlock of its kernel after 5 minutes, and for a kubelet that is
// silent for 10. A disk under pressure is only reported, and a file system that is read-only leads to a replacement.
func newHealthWorld(t *testing.T) *rebootWorld {
	t.Helper()
	w := newRebootWorld(t)
	w.machine.Spec.Health = machinev1alpha1.Health{
		Timeout: metav1.Duration{Duration: 10 * time.Minute},
		Conditions: []machinev1alpha1.HealthCondition{
			{Type: "KernelDeadlock", Status: "True", Action: machinev1alpha1.HealthActionReboot, Timeout: &metav1.Duration{Duration: 5 * time.Minute}},
			{Type: "Ready", Status: "Unknown", Action: machinev1alpha1.HealthActionReboot},
			{Type: "ReadonlyFilesystem", Status: "True"},
			{Type: "DiskPressure", Status: "True", Action: machinev1alpha1.HealthReport},
		},
	}
	return w
}

// has gives the Node conditions beside Ready, which is True.
func (w *rebootWorld) has(conditions ...string) {
	ready := workerNodeThat("m", "True").Observation.Conditions
	for _, c := range conditions {
		ready = append(ready, workernode.Condition{Type: c, Status: "True", Reason: "Seen"})
	}
	w.node.Observation.Conditions = ready
	w.plan()
}

// bySet lets a MachineSet control the Machine.
func (w *rebootWorld) bySet() {
	w.machine.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", UID: "s", Controller: ptr.To(true)}}
}

func (w *rebootWorld) wantPhase(phase machinev1alpha1.MachinePhase, condition, message string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.machine.Status.Conditions, condition)
	if w.machine.Status.Phase != phase || message != "" && (c == nil || !strings.Contains(c.Message, message)) {
		w.t.Fatalf("phase %s, %s: %+v, want %s and %q", w.machine.Status.Phase, condition, c, phase, message)
	}
}

func TestHealthRebootsAMachine(t *testing.T) {
	const (
		rebooting, running, unknown, failed = machinev1alpha1.MachineRebooting, machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown, machinev1alpha1.MachineFailed
		healthy                             = machinev1alpha1.ConditionNodeHealthy
	)
	for name, story := range map[string]func(w *rebootWorld){
		"AfterTheTimeOfTheCondition": func(w *rebootWorld) {
			w.has("KernelDeadlock")
			w.wantPhase(unknown, healthy, "the Machine is rebooted at 2030-01-01T12:05:00Z unless its Node is healthy before")
			w.after(4*time.Minute + 59*time.Second)
			w.wantPhase(unknown, healthy, "")
			w.wantRequests()
			w.after(time.Second)
			w.want(machinev1alpha1.RebootDraining, rebooting, "Draining the Node for reboot health-20300101T120500Z, because KernelDeadlock is True (Seen)")
			w.drained()
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
			w.wantRequests("Soft/health-20300101T120500Z")
			if u := w.machine.Status.Unhealthy; u.Until == nil || u.RebootID != "" {
				w.t.Errorf("the unhealthiness lasts: %+v", u)
			}
		},
		"AndNotIfTheNodeIsHealthyBefore": func(w *rebootWorld) {
			w.has("KernelDeadlock")
			w.after(4 * time.Minute)
			w.has()
			w.after(time.Hour)
			w.wantPhase(running, healthy, "")
			w.wantRequests()
		},
		"OnlyWhenItsSetAllowsIt": func(w *rebootWorld) {
			w.bySet()
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			w.after(time.Hour)
			id := w.machine.Status.Unhealthy.RebootID
			if id != "health-20300101T120500Z" {
				w.t.Fatalf("due is %q", id)
			}
			w.wantPhase(unknown, healthy, "reboot "+id+" is due, and begins when the Machine's set has room for it within spec.remediation")
			w.machine.Annotations[machinev1alpha1.AnnotationRebootGranted] = "health-20250101T000000Z"
			w.after(time.Minute)
			w.wantPhase(unknown, healthy, "is due")
			w.machine.Annotations[machinev1alpha1.AnnotationRebootGranted] = id
			w.after(time.Minute)
			w.want(machinev1alpha1.RebootDraining, rebooting, id)
		},
		"AndACallOffOfItsSetBeforeItIsAllowed": func(w *rebootWorld) {
			w.bySet()
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			id := w.machine.Status.Unhealthy.RebootID
			w.has()
			w.machine.Annotations[machinev1alpha1.AnnotationRebootGranted] = id
			w.after(time.Minute)
			w.wantPhase(running, healthy, "")
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			w.wantPhase(unknown, healthy, "is due")
			if w.machine.Status.Unhealthy.RebootID == id {
				w.t.Errorf("an old permission would begin a later reboot")
			}
		},
		"WithoutADrainIfSpecHealthSaysSo": func(w *rebootWorld) {
			w.machine.Spec.Health.Reboot = &machinev1alpha1.HealthReboot{Drain: machinev1alpha1.RebootDrainNever}
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			w.want(machinev1alpha1.RebootDraining, rebooting, "Cordoning the Node for reboot health-20300101T120500Z")
			if !w.node.Parameters.Drain.Skip {
				w.t.Errorf("the Node is drained: %+v", w.node.Parameters.Drain)
			}
		},
		"TwiceAndThenFailsIt": func(w *rebootWorld) {
			w.boots("first", "Unknown")
			w.after(10 * time.Minute)
			for _, boot := range []string{"second", "third"} {
				w.drained()
				w.boots(boot, "Unknown")
				w.after(15 * time.Minute)
			}
			w.wantPhase(failed, healthy, "the Machine is Failed")
			w.wantRequests("Soft/health-20300101T121000Z", "Soft/health-20300101T122500Z")
			if m := w.machine.Status.Failure(); !strings.Contains(m, "it is not rebooted: its health rebooted it 2 times within 24h0m0s; the last reboot: the VM was rebooted, and its Node was not healthy within 15m0s") {
				w.t.Errorf("failure: %q", m)
			}
		},
		"AndNamesItsOwnCauseBesideAnotherCondition": func(w *rebootWorld) {
			w.machine.Spec.Health.Conditions[2].Timeout = &metav1.Duration{Duration: 2 * time.Minute}
			w.boots("first", "Unknown")
			w.after(10 * time.Minute)
			w.drained()
			w.boots("second", "Unknown")
			w.node.Observation.Conditions = append(w.node.Observation.Conditions, workernode.Condition{Type: "ReadonlyFilesystem", Status: "True"})
			w.after(15 * time.Minute)
			w.want(machinev1alpha1.RebootDraining, rebooting, "because Ready is Unknown")
		},
		"AtOnceAgainIfTheCloudRefuses": func(w *rebootWorld) {
			w.boots("first", "Unknown")
			w.after(10 * time.Minute)
			for range 2 {
				w.drained()
				w.refuses(w.last.Requests.Reboot, "no permission")
				w.refuses(w.last.Requests.Reboot, "no permission")
				w.after(time.Second)
			}
			w.wantPhase(failed, healthy, "")
			if m := w.machine.Status.Failure(); !strings.Contains(m, "the last reboot: the reboot was refused: no permission") {
				w.t.Errorf("failure: %q", m)
			}
		},
		"AgainWhenTheWindowIsOver": func(w *rebootWorld) {
			for _, boot := range []string{"second", "third", "fourth"} {
				w.has("KernelDeadlock")
				w.after(5 * time.Minute)
				w.drained()
				w.boots(boot, "True")
				w.want(machinev1alpha1.RebootSucceeded, running, "")
				w.after(12 * time.Hour)
			}
		},
		"AndFailsARepeatedOffender": func(w *rebootWorld) {
			for _, boot := range []string{"second", "third"} {
				w.has("KernelDeadlock")
				w.after(5 * time.Minute)
				w.drained()
				w.boots(boot, "True")
				w.after(time.Hour)
			}
			w.has("KernelDeadlock")
			w.wantPhase(unknown, healthy, "unless its Node is healthy before; it is not rebooted: its health rebooted it 2 times within 24h0m0s")
			w.after(5 * time.Minute)
			w.wantPhase(failed, healthy, "")
		},
		"NotForAConditionThatLeadsToAReplacement": func(w *rebootWorld) {
			w.has("ReadonlyFilesystem")
			w.after(10 * time.Minute)
			w.wantPhase(failed, healthy, "")
			w.wantRequests()
		},
		"NotIfAnotherConditionLeadsToAReplacementMeanwhile": func(w *rebootWorld) {
			w.bySet()
			w.has("KernelDeadlock", "ReadonlyFilesystem")
			w.after(5 * time.Minute)
			w.wantPhase(unknown, healthy, "is due")
			w.after(5 * time.Minute)
			w.wantPhase(failed, healthy, "")
			if id := w.machine.Status.Unhealthy.RebootID; id != "" {
				w.t.Errorf("reboot %s is still due", id)
			}
		},
		"NotAtACloudWithoutReboots": func(w *rebootWorld) {
			w.vm.Reboot = nil
			w.has("KernelDeadlock")
			w.wantPhase(unknown, healthy, "it is not rebooted: its provider cannot reboot VMs")
			w.after(5 * time.Minute)
			w.wantPhase(failed, healthy, "")
			if m := w.machine.Status.Failure(); !strings.HasSuffix(m, "for longer than 5m0s; it is not rebooted: its provider cannot reboot VMs") {
				w.t.Errorf("failure: %q", m)
			}
		},
		"NotIfItIsKeptForAnalysis": func(w *rebootWorld) {
			w.machine.Annotations[machinev1alpha1.AnnotationPreserve] = machinev1alpha1.PreserveWhenFailed
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			w.wantPhase(failed, machinev1alpha1.ConditionPreserved, "")
			w.wantRequests()
		},
		"NotIfRemediationIsSkipped": func(w *rebootWorld) {
			w.machine.Annotations[machinev1alpha1.AnnotationSkipRemediation] = "true"
			w.has("KernelDeadlock")
			w.after(time.Hour)
			w.wantPhase(unknown, healthy, "")
			w.wantRequests()
		},
		"NotIfHealthIsDisabled": func(w *rebootWorld) {
			w.machine.Spec.Health.Disabled = true
			w.has("KernelDeadlock")
			w.after(time.Hour)
			w.wantPhase(unknown, healthy, "as spec.health.disabled requires")
			w.wantRequests()
		},
		"NotWhileItsClusterCannotBeReached": func(w *rebootWorld) {
			w.has("KernelDeadlock")
			w.target.unreachable = true
			w.after(time.Hour)
			w.wantPhase(unknown, healthy, "")
			w.wantRequests()
			w.target.unreachable = false
			w.after(time.Minute)
			w.want(machinev1alpha1.RebootDraining, rebooting, "")
		},
		"NotIfAUserRequestedOne": func(w *rebootWorld) {
			w.bySet()
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			w.request("mine")
			w.want(machinev1alpha1.RebootDraining, rebooting, "Draining the Node for reboot mine")
			w.drained()
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "mine")
			if n := w.machine.Status.Reboot.HealthTimes; len(n) != 0 {
				w.t.Errorf("the reboot of a user counts as one of health: %v", n)
			}
		},
		"AsLongAsItsFirstBootTook": func(w *rebootWorld) {
			w.machine.Status.Join = &machinev1alpha1.JoinStatus{Milestones: []machinev1alpha1.ReachedMilestone{
				{Name: machinev1alpha1.JoinVMRunning, Time: metav1.NewTime(created)}, {Name: machinev1alpha1.JoinNodeReady, Time: metav1.NewTime(created.Add(40 * time.Minute))},
			}}
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			w.drained()
			w.boots("second", "False")
			w.after(39 * time.Minute)
			w.want(machinev1alpha1.RebootRebooting, rebooting, "")
			w.boots("second", "True")
			w.want(machinev1alpha1.RebootSucceeded, running, "")
		},
		"SoftAsLongAsItsFirstBootTook": func(w *rebootWorld) {
			w.machine.Status.Join = &machinev1alpha1.JoinStatus{Milestones: []machinev1alpha1.ReachedMilestone{
				{Name: machinev1alpha1.JoinVMRunning, Time: metav1.NewTime(created)}, {Name: machinev1alpha1.JoinNodeReady, Time: metav1.NewTime(created.Add(10 * time.Minute))},
			}}
			w.has("KernelDeadlock")
			w.after(5 * time.Minute)
			w.drained()
			w.after(9 * time.Minute)
			w.wantRequests("Soft/health-20300101T120500Z")
			w.after(time.Minute)
			w.wantRequests("Soft/health-20300101T120500Z", "Hard/health-20300101T120500Z")
		},
		"AndOnlyReportsWhatIsToBeReported": func(w *rebootWorld) {
			w.has("DiskPressure")
			w.after(24 * time.Hour)
			w.wantPhase(running, healthy, "Node condition DiskPressure is True (Seen), which spec.health only reports")
			w.has()
			c := meta.FindStatusCondition(w.machine.Status.Conditions, healthy)
			if c.Reason != machinev1alpha1.ReasonNodeHealthy || string(c.Status) != string(corev1.ConditionTrue) {
				w.t.Errorf("%+v", c)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { story(newHealthWorld(t)) })
	}
}
