package machine

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

const gpu = "nvidia.com/gpu"

// newDeviceWorld is a world whose class names eight GPUs, and whose profile reboots a Machine that lacks one for 5 minutes.
func newDeviceWorld(t *testing.T) *rebootWorld {
	t.Helper()
	w := newHealthWorld(t)
	w.profiles = plan.HealthProfiles{Found: []*machinev1alpha1.HealthProfile{healthprofile.BuiltIn("devices-v1")}}
	w.devices = machinev1alpha1.Devices{gpu: 8}
	w.offers(8)
	return w
}

// offers lets the Node offer a number of GPUs, and other devices that its class does not name.
func (w *rebootWorld) offers(n int64) {
	w.node.Observation.Devices = machinev1alpha1.Devices{gpu: n, "example.org/fpga": 1}
	w.plan()
}

func TestDevicesThatAreMissing(t *testing.T) {
	const (
		rebooting, running, unknown, failed = machinev1alpha1.MachineRebooting, machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown, machinev1alpha1.MachineFailed
		healthy                             = machinev1alpha1.ConditionNodeHealthy
	)
	for name, story := range map[string]func(w *rebootWorld){
		"RebootTheirMachine": func(w *rebootWorld) {
			w.offers(7)
			w.wantPhase(unknown, healthy, "Node condition DevicesMissing is True (nvidia.com/gpu: 7 of 8): the Machine is rebooted at 2030-01-01T12:05:00Z unless its Node is healthy before")
			w.after(5 * time.Minute)
			w.want(machinev1alpha1.RebootDraining, rebooting, "because DevicesMissing is True (nvidia.com/gpu: 7 of 8)")
			w.drained()
			w.boots("second", "True")
			w.wantPhase(rebooting, "", "") // The Node has booted, and still lacks a device.
			w.offers(8)
			w.want(machinev1alpha1.RebootSucceeded, running, "is proven")
		},
		"RebootItAgainAndThenReplaceIt": func(w *rebootWorld) {
			w.offers(7)
			w.after(5 * time.Minute)
			w.drained()
			w.boots("second", "True")
			w.after(16 * time.Minute)
			w.after(time.Second)
			w.drained()
			w.boots("third", "True")
			w.after(16 * time.Minute)
			w.after(time.Second)
			w.wantPhase(failed, "", "")
			if m := w.machine.Status.FailureMessage; !strings.Contains(m, "DevicesMissing is True (nvidia.com/gpu: 7 of 8)") || !strings.Contains(m, "its health rebooted it 2 times") {
				w.t.Errorf("failure: %q", m)
			}
		},
		"CountFromTheFirstOneAlsoIfAnotherFollows": func(w *rebootWorld) {
			w.offers(7)
			w.after(4 * time.Minute)
			w.offers(6)
			w.after(time.Minute)
			w.want(machinev1alpha1.RebootDraining, rebooting, "6 of 8")
		},
		"AreForgottenWhenTheyAreBack": func(w *rebootWorld) {
			w.offers(7)
			w.after(4 * time.Minute)
			w.offers(8)
			w.after(2 * time.Minute)
			w.offers(7)
			w.after(4 * time.Minute)
			w.wantPhase(unknown, healthy, "the Machine is rebooted at 2030-01-01T12:11:00Z")
		},
		"DoNotMatterWithoutAClassThatNamesThem": func(w *rebootWorld) {
			w.devices = nil
			w.offers(0)
			w.after(time.Hour)
			w.wantPhase(running, "", "")
		},
		"AreNotTheWordOfANode": func(w *rebootWorld) {
			w.has(machinev1alpha1.NodeDevicesMissing)
			w.after(time.Hour)
			w.wantPhase(running, "", "")
		},
		"AreAsRecordedUntilTheNodeIsReadAfterARestart": func(w *rebootWorld) {
			w.offers(7)
			w.after(time.Minute)
			since := w.machine.Status.Unhealthy.Conditions[0].Since
			w.node.Observation.Devices = nil
			w.has(machinev1alpha1.NodeDevicesMissing)
			if got := w.machine.Status.Unhealthy.Conditions; len(got) != 1 || !got[0].Since.Equal(&since) {
				w.t.Errorf("unhealthy for %+v", got)
			}
		},
		"AreNotMissingBeforeTheNodeIsReadAfterARestart": func(w *rebootWorld) {
			w.node.Observation.Devices = nil
			w.after(time.Hour)
			w.wantPhase(running, "", "")
		},
		"OfAbsurdNumbersOnlyHarmTheirOwnNode": func(w *rebootWorld) {
			w.offers(math.MinInt64)
			w.wantPhase(unknown, healthy, "nvidia.com/gpu: 0 of 8")
			w.offers(math.MaxInt64)
			w.after(2 * time.Minute)
			w.wantPhase(running, "", "")
		},
		"AreOnlyReportedIfTheUserWantsThat": func(w *rebootWorld) {
			w.machine.Spec.Health.Conditions = []machinev1alpha1.HealthCondition{{Type: machinev1alpha1.NodeDevicesMissing, Status: "True", Action: machinev1alpha1.HealthReport}}
			w.offers(7)
			w.after(time.Hour)
			w.wantPhase(running, healthy, "DevicesMissing is True (nvidia.com/gpu: 7 of 8), which spec.health only reports")
		},
	} {
		t.Run(name, func(t *testing.T) { story(newDeviceWorld(t)) })
	}
}

// TestANewMachineWaitsForItsDevices shows the first boot: device plugins register after the kubelet.
func TestANewMachineWaitsForItsDevices(t *testing.T) {
	since := metav1.NewTime(created.Add(18 * time.Minute))
	ready := workerNodeThat("m", "True")
	ready.Observation.Present, ready.Observation.Devices = true, machinev1alpha1.Devices{}
	ready.Observation.Conditions[0].Since = &since
	o := Observed{Machine: machine(machinev1alpha1.MachineStatus{}), VM: plan.VM{State: plan.VMRunning, ProviderID: id, Confirmed: true}, WorkerNode: ready}
	o.Machine.Spec.Health.Timeout = metav1.Duration{Duration: 10 * time.Minute}
	o.HealthProfiles = plan.HealthProfiles{Found: []*machinev1alpha1.HealthProfile{healthprofile.BuiltIn("devices-v1")}}
	o.Devices = machinev1alpha1.Devices{gpu: 8}
	plans := func(at time.Duration, phase machinev1alpha1.MachinePhase, message string) {
		t.Helper()
		d := Plan(created.Add(at), o)
		o.Machine.Status = d.Status
		if d.Status.Phase != phase || !strings.Contains(d.Status.FailureMessage+conditionOf(d, machinev1alpha1.ConditionNodeReady).Message, message) {
			t.Errorf("after %s: %s, %q, %+v, want %s and %q", at, d.Status.Phase, d.Status.FailureMessage, conditionOf(d, machinev1alpha1.ConditionNodeReady), phase, message)
		}
	}
	plans(18*time.Minute, machinev1alpha1.MachineJoining, "The Node m lacks devices that its class names: nvidia.com/gpu: 0 of 8")
	plans(22*time.Minute, machinev1alpha1.MachineJoining, "0 of 8") // creationTimeout has passed, but the Node has been Ready for 4 minutes only.
	failing := *o.Machine.DeepCopy()
	plans(23*time.Minute, machinev1alpha1.MachineFailed, "lacks devices")
	o.Machine = &failing
	o.WorkerNode.Observation.Devices = machinev1alpha1.Devices{gpu: 8}
	plans(22*time.Minute+30*time.Second, machinev1alpha1.MachineRunning, "")
}

func TestDevicesAreExtendedResourcesOnly(t *testing.T) {
	q := resource.MustParse
	huge := corev1.ResourceList{}
	for i := range 500 {
		huge[corev1.ResourceName("a.example.org/"+string(rune('a'+i%26))+strings.Repeat("x", i))] = q("1")
	}
	huge["z.example.org/last"] = q("1")
	if got := machinev1alpha1.DevicesIn(huge); len(got) != 64 || got["z.example.org/last"] != 0 {
		t.Errorf("%d devices of a Node that lists too many", len(got))
	}
	got := machinev1alpha1.DevicesIn(corev1.ResourceList{
		"cpu": q("8"), "memory": q("1Gi"), "hugepages-2Mi": q("1Gi"), "pods": q("110"), "attachable-volumes-csi": q("3"),
		"node.kubernetes.io/x": q("1"), "kubernetes.io/y": q("1"), "requests.example.org/z": q("1"), "example.org/none": q("0"), "example.org/less": q("-3"),
		gpu: q("8"), "example.org/most": q("1e40"), "example.org/part": q("500m"),
	})
	want := machinev1alpha1.Devices{gpu: 8, "example.org/most": math.MaxInt64, "example.org/part": 1}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d, want %d", name, got[name], n)
		}
	}
}

func TestAProfileThatDoesNotExistIsReportedAndTheRestJudges(t *testing.T) {
	w := newHealthWorld(t)
	w.profiles = plan.HealthProfiles{Missing: []string{"acme-v1"}}
	w.has("KernelDeadlock")
	w.wantPhase(machinev1alpha1.MachineUnknown, machinev1alpha1.ConditionHealthValid,
		`spec.health.profiles: there is no HealthProfile "acme-v1", and the built-in ones are aks-v1, devices-v1, eks-v1, gke-v1, kubelet-v1, node-problem-detector-v1, nvidia-v1`)
	w.profiles = plan.HealthProfiles{}
	w.plan()
	if c := meta.FindStatusCondition(w.machine.Status.Conditions, machinev1alpha1.ConditionHealthValid); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("once it exists: %+v", c)
	}
}

// TestDevicesOfANodeThatIsGone shows that a Node that does not exist lacks no devices.
func TestDevicesOfANodeThatIsGone(t *testing.T) {
	o := workernode.Observation{NodeName: "m", Devices: machinev1alpha1.Devices{}}
	if got := withDevices(o, machinev1alpha1.Devices{gpu: 8}); len(got) > 0 {
		t.Errorf("conditions %+v", got)
	}
}
