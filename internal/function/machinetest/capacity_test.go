package machinetest

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/vm"
)

// TestTheCapacityOfNodesIsThatOfTheInstanceType compares the capacity that the Compositions derive
// from classes with the figures that the clouds publish of their instance types.
func TestTheCapacityOfNodesIsThatOfTheInstanceType(t *testing.T) {
	for provider, types := range map[string]struct {
		field string
		of    map[string]string
	}{
		"aws": {"instanceType", map[string]string{
			"m7i.large": "2 8Gi amd64", "m5.24xlarge": "96 384Gi amd64", "c5.9xlarge": "36 72Gi amd64", "r6g.medium": "1 8Gi arm64",
			"c7gn.16xlarge": "64 128Gi arm64", "m7i-flex.xlarge": "4 16Gi amd64", "t3.micro": "2 1Gi amd64", "t4g.2xlarge": "8 32Gi arm64", "r8gd.xlarge": "4 32Gi arm64",
			"c5n.large": "", "m4.large": "", "m5.metal": "", "p4d.24xlarge": "", "t2.micro": "", "x2idn.16xlarge": "", "": "", "m5": "", "xlarge": "",
		}},
		"upjet-aws": {"instanceType", map[string]string{
			"m7i.large": "2 8Gi amd64", "m5.24xlarge": "96 384Gi amd64", "c5.9xlarge": "36 72Gi amd64", "r6g.medium": "1 8Gi arm64",
			"c7gn.16xlarge": "64 128Gi arm64", "m7i-flex.xlarge": "4 16Gi amd64", "t3.micro": "2 1Gi amd64", "t4g.2xlarge": "8 32Gi arm64", "r8gd.xlarge": "4 32Gi arm64",
			"c5n.large": "", "m4.large": "", "m5.metal": "", "p4d.24xlarge": "", "t2.micro": "", "x2idn.16xlarge": "", "": "", "m5": "", "xlarge": "",
		}},
		"azure":       {"size", sizesOfAzure},
		"upjet-azure": {"size", sizesOfAzure},
		"gcp":         {"machineType", machineTypesOfGoogle},
		"upjet-gcp":   {"machineType", machineTypesOfGoogle},
		"digitalocean": {"size", map[string]string{
			"s-4vcpu-8gb": "4 8Gi amd64", "s-1vcpu-512mb-10gb": "1 512Mi amd64", "g-2vcpu-8gb-intel": "2 8Gi amd64", "c-4": "4 8Gi amd64", "c2-8vcpu-16gb": "8 16Gi amd64",
			"so1_5-2vcpu-16gb": "2 16Gi amd64", "gpu-h100x1-80gb": "", "": "",
		}},
		"hcloud": {"serverType", map[string]string{"cpx31": "4 8Gi amd64", "cax21": "4 8Gi arm64", "ccx63": "48 192Gi amd64", "cx99": "", "": ""}},
		"alibaba": {"instanceType", map[string]string{
			"ecs.g7.xlarge": "4 16Gi amd64", "ecs.c7.large": "2 4Gi amd64", "ecs.r8i.16xlarge": "64 512Gi amd64", "ecs.g8y.2xlarge": "8 32Gi arm64", "ecs.c6.3xlarge": "12 24Gi amd64",
			"ecs.g7ne.4xlarge": "16 64Gi amd64", "ecs.g6.26xlarge": "", "ecs.gn7i-c8g1.2xlarge": "", "ecs.hfc7.large": "", "ecs.u1-c1m2.large": "", "": "",
		}},
		"local": {"size", map[string]string{"small": "1 2Gi ", "medium": "2 4Gi ", "large": "4 16Gi ", "xlarge": "16 128Gi ", "huge": ""}},
	} {
		b := bindingOf(t, provider)
		for name, want := range types.of {
			t.Run(provider+"/"+name, func(t *testing.T) {
				holds(t, b, provider, fmt.Sprintf(`{%q: %q}`, types.field, name), want)
			})
		}
		holds(t, b, provider, `{}`, "")
	}
}

func TestTheCapacityOfNodesIsWhatTheClassAsksFor(t *testing.T) {
	for name, tc := range map[string]struct{ provider, forProvider, want string }{
		"YandexInGigabytes":            {"yandex", `{"resources": [{"cores": 4, "memory": 16}]}`, "4 16Gi amd64"},
		"YandexWithHalfAGigabyte":      {"yandex", `{"resources": [{"cores": 2, "memory": 0.5}]}`, "2 512Mi amd64"},
		"YandexWithoutResources":       {"yandex", `{}`, ""},
		"NutanixInMebibytes":           {"nutanix", `{"vcpuSockets": 2, "vcpusPerSocket": 3, "memoryMiB": 8192}`, "6 8Gi amd64"},
		"NutanixWithOneCPU":            {"nutanix", `{"memoryMiB": 8192}`, "1 8Gi amd64"},
		"VCDInMebibytes":               {"vcd", `{"cpus": 4, "memoryMiB": 8192}`, "4 8Gi amd64"},
		"VCDWithASizingPolicy":         {"vcd", `{"sizingPolicy": "medium", "memoryMiB": 8192}`, ""},
		"ProxmoxInMebibytes":           {"proxmox", `{"cores": 4, "memoryMiB": 8192}`, "4 8Gi amd64"},
		"ProxmoxWithTheTemplatesSize":  {"proxmox", `{"template": "ubuntu"}`, ""},
		"VSphereInMebibytes":           {"vsphere", `{"cpus": 4, "memoryMiB": 8192}`, "4 8Gi amd64"},
		"VSphereWithTheTemplatesSize":  {"vsphere", `{"template": "ubuntu"}`, ""},
		"KubeVirtWithAGuestsMemory":    {"kubevirt", `{"manifest": {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 4}, "memory": {"guest": "8Gi"}, "resources": {"requests": {"memory": "4Gi"}}}}}}}}`, "4 8Gi amd64"},
		"KubeVirtWithSocketsOfThreads": {"kubevirt", `{"manifest": {"spec": {"template": {"spec": {"architecture": "arm64", "domain": {"cpu": {"cores": 2, "sockets": 2, "threads": 2}, "resources": {"requests": {"memory": "4Gi"}}}}}}}}`, "8 4Gi arm64"},
		"KubeVirtWithAnInstancetype":   {"kubevirt", `{"manifest": {"spec": {"instancetype": {"name": "u1.medium"}, "template": {"spec": {"domain": {}}}}}}`, ""},
		"OpenStackWithAFlavor":         {"openstack", `{"flavorName": "m1.large"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			holds(t, bindingOf(t, tc.provider), tc.provider, tc.forProvider, tc.want)
		})
	}
}

func bindingOf(t *testing.T, provider string) *vm.Binding {
	t.Helper()
	composition := plan.Object{Unstructured: &unstructured.Unstructured{Object: readYAML(t, root+"apis/machine/compositions/machine-"+provider+".yaml")}}
	b, problem := vm.BindingOf(composition, classOf(provider, "{}"))
	if problem != nil {
		t.Fatal(problem.Message)
	}
	return b
}

func classOf(provider, forProvider string) *machinev1alpha1.MachineClass {
	c := &machinev1alpha1.MachineClass{}
	c.Spec.Provider, c.Spec.ForProvider = provider, &runtime.RawExtension{Raw: json.RawMessage(forProvider)}
	return c
}

// holds compares the capacity that the binding derives from the class with "cpu memory architecture",
// or "" for none.
func holds(t *testing.T, b *vm.Binding, provider, forProvider, want string) {
	t.Helper()
	got, err := b.NodeCapacity(classOf(provider, forProvider))
	if err != nil {
		t.Fatalf("%s: %v", forProvider, err)
	}
	if got == nil || want == "" {
		if got != nil || want != "" {
			t.Errorf("%s: %v, want %q", forProvider, got, want)
		}
		return
	}
	var cpu, memory, architecture string
	_, _ = fmt.Sscanf(want, "%s %s %s", &cpu, &memory, &architecture)
	for name, quantity := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if q := got.Capacity[name]; q.Cmp(resource.MustParse(quantity)) != 0 {
			t.Errorf("%s: %s is %s, want %s", forProvider, name, q.String(), quantity)
		}
	}
	if got.Architecture != architecture {
		t.Errorf("%s: architecture %q, want %q", forProvider, got.Architecture, architecture)
	}
}

// machineTypesOfGoogle have the same capacity with both providers of Google Cloud.
var machineTypesOfGoogle = map[string]string{
	"n2-standard-4": "4 16Gi amd64", "n1-standard-2": "2 7680Mi amd64", "n1-highcpu-16": "16 14.4Gi amd64", "e2-medium": "2 4Gi amd64", "c3-highcpu-22": "22 44Gi amd64",
	"t2a-standard-8": "8 32Gi arm64", "c4a-highmem-4": "4 32Gi arm64", "custom-6-20480": "6 20Gi amd64", "n2-custom-4-8192": "4 8Gi amd64",
	"a2-highgpu-1g": "", "m1-ultramem-40": "", "f1-micro": "", "c4-standard-4": "", "": "",
}

// sizesOfAzure have the same capacity with both providers of Azure.
var sizesOfAzure = map[string]string{
	"Standard_D4s_v5": "4 16Gi amd64", "Standard_D2_v3": "2 8Gi amd64", "Standard_D8ps_v5": "8 32Gi arm64", "Standard_D8pls_v5": "8 16Gi arm64", "Standard_D16ls_v5": "16 32Gi amd64",
	"Standard_E48s_v5": "48 384Gi amd64", "Standard_F72s_v2": "72 144Gi amd64", "Standard_D96as_v5": "96 384Gi amd64",
	"Standard_D3_v2": "", "Standard_E64s_v4": "", "Standard_E4-2s_v5": "", "Standard_NC6": "", "Standard_B2s": "", "": "",
}
