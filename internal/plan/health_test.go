package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
)

func TestHealthThatCannotBeCarriedOutIsReported(t *testing.T) {
	class := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: machinev1alpha1.MachineClassSpec{Provider: "yandex"}}
	withGPUs := class.DeepCopy()
	withGPUs.Spec.NodeCapacity = &machinev1alpha1.NodeCapacity{Capacity: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}
	devices := HealthProfiles{Found: []*machinev1alpha1.HealthProfile{healthprofile.BuiltIn("devices-v1")}}
	const builtIn = "aks-v1, devices-v1, eks-v1, gke-v1, kubelet-v1, node-problem-detector-v1, nvidia-v1"
	for name, tc := range map[string]struct {
		health machinev1alpha1.Health
		facts  HealthFacts
		want   string
	}{
		"NothingIsWrongByDefault":        {facts: HealthFacts{Class: class, CannotReboot: true}},
		"NothingIsWrongWithDevices":      {facts: HealthFacts{HealthProfiles: devices, Class: withGPUs}},
		"NothingIsJudgedIfItIsDisabled":  {health: machinev1alpha1.Health{Disabled: true}, facts: HealthFacts{HealthProfiles: devices, Class: class, CannotReboot: true}},
		"NothingButProfilesWithoutClass": {facts: HealthFacts{HealthProfiles: devices, CannotReboot: true}},
		"ProfilesThatDoNotExist": {
			facts: HealthFacts{HealthProfiles: HealthProfiles{Missing: []string{"a-v1", "b-v1"}}},
			want:  `HealthProfileNotFound: spec.health.profiles: there is no HealthProfile "a-v1", "b-v1", and the built-in ones are ` + builtIn + `; the Nodes are judged without it`,
		},
		"DevicesThatTheClassDoesNotName": {
			facts: HealthFacts{HealthProfiles: devices, Class: class},
			want:  `DevicesNotNamed: spec.health: DevicesMissing has no effect: spec.nodeCapacity.capacity of MachineClass "gpu" names no device, such as nvidia.com/gpu`,
		},
		"RebootsThatTheProviderCannotDo": {
			health: machinev1alpha1.Health{Conditions: []machinev1alpha1.HealthCondition{{Type: "KernelDeadlock", Status: "True", Action: machinev1alpha1.HealthActionReboot}}},
			facts:  HealthFacts{HealthProfiles: devices, Class: withGPUs, CannotReboot: true},
			want:   `RebootNotSupported: spec.health: provider "yandex" cannot reboot VMs: the action Reboot of DevicesMissing, KernelDeadlock means Replace`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := HealthValid(HealthProblems(tc.health, tc.facts, "spec.health"), nil)
			got := ""
			if c != nil {
				got = c.Reason + ": " + c.Message
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAnOwnerPassesOnTheHealthThatIsNotValid(t *testing.T) {
	broken := []metav1.Condition{{Type: machinev1alpha1.ConditionHealthValid, Status: metav1.ConditionFalse, Reason: "HealthProfileNotFound", Message: "none"}}
	fine := []metav1.Condition{{Type: machinev1alpha1.ConditionHealthValid, Status: metav1.ConditionTrue, Reason: "Valid"}}
	if c := HealthValidOf([]Reporter{{"MachineSet a", nil}, {"MachineSet b", fine}}, nil); c != nil {
		t.Errorf("without a fault: %+v", c)
	}
	c := HealthValidOf([]Reporter{{"MachineSet a", fine}, {"MachineSet b", broken}}, nil)
	if c == nil || c.Status != "False" || c.Reason != "HealthProfileNotFound" || c.Message != "MachineSet b: none" {
		t.Fatalf("with a fault: %+v", c)
	}
	if c := HealthValidOf(nil, broken); c == nil || c.Status != "True" {
		t.Errorf("once it is mended: %+v", c)
	}
}
