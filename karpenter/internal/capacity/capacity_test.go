package capacity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/karpenter/internal/drover"
)

const compositions = "../../../apis/machine/compositions"

func composition(t *testing.T, provider string) *drover.Composition {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(compositions, "machine-"+provider+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := &drover.Composition{}
	if err := yaml.Unmarshal(b, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func raw(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }

func TestTheCapacityOfAClass(t *testing.T) {
	for name, c := range map[string]struct {
		provider string
		class    string
		want     map[corev1.ResourceName]string
		arch     string
		err      string
	}{
		"IsDerivedByTheComposition": {
			provider: "local", class: `{"forProvider": {"size": "medium"}}`,
			want: map[corev1.ResourceName]string{"cpu": "2", "memory": "3788Mi", "pods": "110"}, arch: "amd64",
		},
		"IsDerivedFromNumbers": {
			provider: "proxmox", class: `{"forProvider": {"cores": 4, "memoryMiB": 8192}}`,
			want: map[corev1.ResourceName]string{"cpu": "4", "memory": "7577Mi", "pods": "110"}, arch: "amd64",
		},
		"HasTheArchitectureOfTheComposition": {
			provider: "aws", class: `{"forProvider": {"instanceType": "m7g.large"}}`,
			want: map[corev1.ResourceName]string{"cpu": "2", "memory": "7577Mi", "pods": "110"}, arch: "arm64",
		},
		"IsWhatTheClassDeclares": {
			provider: "local", class: `{"forProvider": {"size": "medium"}, "nodeCapacity": {"capacity": {"cpu": "3", "nvidia.com/gpu": "1"}, "architecture": "arm64"}}`,
			want: map[corev1.ResourceName]string{"cpu": "3", "memory": "3788Mi", "pods": "110", "nvidia.com/gpu": "1"}, arch: "arm64",
		},
		"HasThePodsOfTheKubelet": {
			provider: "local", class: `{"forProvider": {"size": "small"}, "kubelet": {"maxPods": 20}}`,
			want: map[corev1.ResourceName]string{"cpu": "1", "memory": "1894Mi", "pods": "20"}, arch: "amd64",
		},
		"HasThePodsOfTheConfiguration": {
			provider: "local", class: `{"forProvider": {"size": "small"}, "kubelet": {"configuration": {"maxPods": 30}}}`,
			want: map[corev1.ResourceName]string{"cpu": "1", "memory": "1894Mi", "pods": "30"}, arch: "amd64",
		},
		"IsUnknownForASizeThatTheCompositionDoesNotKnow": {
			provider: "local", class: `{"forProvider": {"size": "enormous"}}`,
			want: map[corev1.ResourceName]string{"pods": "110"}, arch: "amd64",
		},
		"IsUnknownWithoutAComposition": {class: `{}`, want: map[corev1.ResourceName]string{"pods": "110"}, arch: "amd64"},
		"ReportsAReservationThatIsNoQuantity": {
			class: `{"kubelet": {"configuration": {"kubeReserved": {"cpu": "much"}}}}`, err: `spec.kubelet.configuration.kubeReserved[cpu]: is "much"`,
		},
		"ReportsAThresholdThatIsNoQuantity": {
			class: `{"kubelet": {"configuration": {"evictionHard": {"memory.available": "some"}}}}`, err: `evictionHard[memory.available]: is "some"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := Expression("")
			if c.provider != "" {
				e = ExpressionOf(composition(t, c.provider))
			}
			class := drover.MachineClassSpec{}
			if err := yaml.UnmarshalStrict([]byte(c.class), &class); err != nil {
				t.Fatal(err)
			}
			n, err := Of(class, e)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(n.Capacity) != len(c.want) || n.Architecture != c.arch {
				t.Errorf("capacity %v of %s, want %v of %s", n.Capacity, n.Architecture, c.want, c.arch)
			}
			for name, q := range c.want {
				if got := n.Capacity[name]; got.String() != q {
					t.Errorf("%s is %s, want %s", name, got.String(), q)
				}
			}
		})
	}
}

func TestTheReservationsOfTheKubelet(t *testing.T) {
	n, err := Of(drover.MachineClassSpec{
		NodeCapacity: &drover.NodeCapacity{Capacity: corev1.ResourceList{"cpu": quantity("2"), "memory": quantity("1000Mi")}},
		Kubelet:      drover.Kubelet{Configuration: raw(`{"kubeReserved": {"cpu": "100m", "pid": "100"}, "systemReserved": {"memory": "50Mi"}, "evictionHard": {"memory.available": "10%"}}`)},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(n.KubeReserved) != 1 || n.KubeReserved.Cpu().String() != "100m" || n.SystemReserved.Memory().String() != "50Mi" || n.Eviction.Memory().String() != "100Mi" {
		t.Errorf("reserved are %v, %v and %v", n.KubeReserved, n.SystemReserved, n.Eviction)
	}
}

// TestEachCompositionIsUnderstood compiles the expressions of all providers that Drover has: a function of its language that
// is missing here would be found by a user.
func TestEachCompositionIsUnderstood(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(compositions, "machine-*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d Compositions, %v", len(files), err)
	}
	expressions := 0
	for _, f := range files {
		provider := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "machine-"), ".yaml")
		e := ExpressionOf(composition(t, provider))
		if e == "" {
			continue
		}
		expressions++
		if _, err := e.compile(); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
	}
	if expressions < 10 {
		t.Errorf("only %d Compositions have the expression nodeCapacity", expressions)
	}
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }
