package simulator

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestDevices lets Nodes of a pool lose devices and kubelets, at clouds that can reboot VMs and at others. The planner of
// Machines decides what follows. Never more Machines reboot than the budget allows, no request of a reboot is made twice, no VM
// reboots more often than the limit, and in the end all Machines run: an escalation always ends.
func TestDevices(t *testing.T) { checkSome(t, "rebooted", losesDevices) }

// losesDevices returns the number of reboots.
func losesDevices(t *rapid.T) int {
	s := spec(t, machinev1alpha1.RollingUpdate)
	s.Replicas = rapid.Int32Range(1, 4).Draw(t, "replicas")
	budget := rapid.IntRange(1, 2).Draw(t, "maxInFlight")
	s.AutoPreserveFailedMachineMax = 0 // A preserved Machine stays Failed.
	s.Remediation.MaxInFlight, s.Remediation.MaxUnhealthy = ptr.To(intstr.FromInt(budget)), ptr.To(intstr.FromString("40%"))
	s.Template.Spec.Health.Profiles = []string{"kubelet-v1", "nvidia-v1"}
	cloud := Cloud{ID: 30 * time.Second, Boot: 4 * time.Minute, Drain: time.Minute, GPUs: 8}
	if rapid.IntRange(0, 4).Draw(t, "reboots") > 0 {
		cloud.Reboot = time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes of a reboot")) * time.Minute
	}
	w := NewWorld(s, cloud)
	n := 0
	times, requests := map[string][]time.Time{}, map[string]bool{}
	w.OnReboot = func(name, request string) {
		if requests[name+request] {
			t.Fatalf("%s of %s is requested twice", request, name)
		}
		requests[name+request] = true
		if request[:4] == "Hard" {
			return // It follows a soft one that did not help.
		}
		n++
		within := 0
		for _, at := range times[name] {
			if w.Now.Sub(at) < machinev1alpha1.DefaultRebootWindow {
				within++
			}
		}
		if times[name] = append(times[name], w.Now); within >= rebootLimit {
			t.Fatalf("%s reboots %d times within the window", name, within+1)
		}
	}
	w.OnTick = func() {
		rebooting := 0
		for _, m := range w.Machines() {
			if m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRebooting {
				rebooting++
			}
		}
		if rebooting > budget {
			t.Fatalf("%d Machines reboot, of at most %d", rebooting, budget)
		}
	}
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatalf("the pool does not start:\n%s", w)
	}
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		ms := w.Machines()
		name := ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0, 1, 2:
			w.LoseGPU(name, rapid.IntRange(1, 3).Draw(t, "reboots that cure it"))
		case 3:
			w.KillNode(name)
		case 4:
			w.ReviveNode(name)
		case 5:
			w.LoseVM(name)
		}
		w.Run(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute)
	}
	w.Update(func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.FromString("100%"))
	})
	w.Run(time.Minute)
	if !w.RunUntil(48*time.Hour, w.Settled) {
		t.Fatalf("a Machine is neither cured nor replaced:\n%s", w)
	}
	if len(w.Violations) > 0 {
		t.Fatalf("%s", w.Violations[0])
	}
	return n
}
