package machinetest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	alibabav1alpha1 "github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	awsv1alpha1 "github.com/drover-dev/drover/apis/aws/v1alpha1"
	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	hcloudv1alpha1 "github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	localv1alpha1 "github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	metalstackv1alpha1 "github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	nutanixv1alpha1 "github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	openstackv1alpha1 "github.com/drover-dev/drover/apis/openstack/v1alpha1"
	proxmoxv1alpha1 "github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	terraformv1alpha1 "github.com/drover-dev/drover/apis/terraform/v1alpha1"
	vcdv1alpha1 "github.com/drover-dev/drover/apis/vcd/v1alpha1"
	vspherev1alpha1 "github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
)

// kinds of the files that users copy and of those in the package.
var kinds = map[string]func() any{
	"alibaba.drover.dev/v1alpha1 ClusterProviderConfig":    func() any { return &alibabav1alpha1.ClusterProviderConfig{} },
	"aws.drover.dev/v1alpha1 ClusterProviderConfig":        func() any { return &awsv1alpha1.ClusterProviderConfig{} },
	"cluster.drover.dev/v1alpha1 ClusterProviderConfig":    func() any { return &clusterv1alpha1.ClusterProviderConfig{} },
	"hcloud.drover.dev/v1alpha1 ClusterProviderConfig":     func() any { return &hcloudv1alpha1.ClusterProviderConfig{} },
	"local.drover.dev/v1alpha1 ClusterProviderConfig":      func() any { return &localv1alpha1.ClusterProviderConfig{} },
	"metalstack.drover.dev/v1alpha1 ClusterProviderConfig": func() any { return &metalstackv1alpha1.ClusterProviderConfig{} },
	"nutanix.drover.dev/v1alpha1 ClusterProviderConfig":    func() any { return &nutanixv1alpha1.ClusterProviderConfig{} },
	"openstack.drover.dev/v1alpha1 ClusterProviderConfig":  func() any { return &openstackv1alpha1.ClusterProviderConfig{} },
	"proxmox.drover.dev/v1alpha1 ClusterProviderConfig":    func() any { return &proxmoxv1alpha1.ClusterProviderConfig{} },
	"terraform.drover.dev/v1alpha1 ClusterProviderConfig":  func() any { return &terraformv1alpha1.ClusterProviderConfig{} },
	"vcd.drover.dev/v1alpha1 ClusterProviderConfig":        func() any { return &vcdv1alpha1.ClusterProviderConfig{} },
	"vsphere.drover.dev/v1alpha1 ClusterProviderConfig":    func() any { return &vspherev1alpha1.ClusterProviderConfig{} },
	"machine.drover.dev/v1alpha1 MachineClass":             func() any { return &machinev1alpha1.MachineClass{} },
	"machine.drover.dev/v1alpha1 ClusterMachineClass":      func() any { return &machinev1alpha1.ClusterMachineClass{} },
	"machine.drover.dev/v1alpha1 NodePool":                 func() any { return &machinev1alpha1.NodePool{} },
	"machine.drover.dev/v1alpha1 MachineDeployment":        func() any { return &machinev1alpha1.MachineDeployment{} },
	"machine.drover.dev/v1alpha1 Machine":                  func() any { return &machinev1alpha1.Machine{} },
	"machine.drover.dev/v1alpha1 OrphanCollector":          func() any { return &machinev1alpha1.OrphanCollector{} },
	"fn.drover.dev/v1alpha1 Orphans":                       func() any { return &fn.Orphans{} },
	"fn.drover.dev/v1alpha1 Pool":                          func() any { return &fn.Pool{} },
	"fn.drover.dev/v1alpha1 Safety":                        func() any { return &fn.Safety{} },
	"fn.drover.dev/v1alpha1 Rollout":                       func() any { return &fn.Rollout{} },
	"fn.drover.dev/v1alpha1 Replicas":                      func() any { return &fn.Replicas{} },
	"fn.drover.dev/v1alpha1 Bootstrap":                     func() any { return &fn.Bootstrap{} },
	"fn.drover.dev/v1alpha1 Infrastructure":                func() any { return &fn.Infrastructure{} },
	"fn.drover.dev/v1alpha1 Lifecycle":                     func() any { return &fn.Lifecycle{} },
}

// strict rejects unknown fields. Crossplane ignores them, and so does the API server unless it is
// asked to validate fields.
func strict(t *testing.T, where string, m map[string]any) {
	t.Helper()
	u := unstructured.Unstructured{Object: m}
	into, ok := kinds[u.GetAPIVersion()+" "+u.GetKind()]
	if !ok {
		t.Fatalf("%s: unknown kind %s of %s", where, u.GetKind(), u.GetAPIVersion())
	}
	// Crossplane adds this to the spec of each composite resource.
	unstructured.RemoveNestedField(m, "spec", "crossplane")
	b, err := yaml.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, into()); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", dir, files, err)
	}
	return files
}

func TestExamplesHaveNoUnknownFields(t *testing.T) {
	for _, f := range filesOf(t, "examples/*") {
		o := readYAML(t, f)
		// Kinds of other projects are theirs to check, and a file of settings has no apiVersion.
		switch apiVersion, _ := o["apiVersion"].(string); {
		case strings.HasPrefix(apiVersion, "karpenter.drover.dev/"):
			strictByCRD(t, f, karpenterCRD, o)
		case strings.Contains(apiVersion, ".drover.dev/"):
			strict(t, f, o)
		}
	}
}

// karpenterCRD is in a module of its own, whose types this one does not import.
const karpenterCRD = root + "karpenter/apis/crds/karpenter.drover.dev_drovernodeclasses.yaml"

// strictByCRD rejects errors and fields that the schema of a kind does not have.
func strictByCRD(t *testing.T, where, crd string, m map[string]any) {
	t.Helper()
	pruned := runtime.DeepCopyJSON(m)
	if errs := schematest.Load(t, crd).Validate(pruned, nil); len(errs) > 0 {
		t.Errorf("%s: %v", where, errs.ToAggregate())
	}
	for _, field := range missing(m, pruned, "") {
		t.Errorf("%s: unknown field %s", where, field)
	}
}

// missing returns the fields of an object that another one does not have.
func missing(of, in any, path string) []string {
	var out []string
	switch of := of.(type) {
	case map[string]any:
		in, _ := in.(map[string]any)
		for k, v := range of {
			if _, ok := in[k]; !ok {
				out = append(out, path+"."+k)
				continue
			}
			out = append(out, missing(v, in[k], path+"."+k)...)
		}
	case []any:
		in, _ := in.([]any)
		for i := range min(len(of), len(in)) {
			out = append(out, missing(of[i], in[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return out
}

func TestAFieldThatAKindOfKarpenterLacksIsFound(t *testing.T) {
	pruned := map[string]any{"spec": map[string]any{"classes": []any{map[string]any{"name": "a"}}}}
	got := missing(map[string]any{"spec": map[string]any{"classes": []any{map[string]any{"name": "a", "prize": "1"}}}}, pruned, "")
	if len(got) != 1 || got[0] != ".spec.classes[0].prize" {
		t.Errorf("found %q", got)
	}
}

func TestCompositionsHaveInputsWithoutUnknownFields(t *testing.T) {
	for _, f := range filesOf(t, "apis/machine/compositions") {
		for _, s := range inputsOf(t, f) {
			strict(t, f, s.AsMap())
		}
	}
}

func TestTheClassOfTheExamplesMakesAMachine(t *testing.T) {
	p := newPlane(t)
	c := &unstructured.Unstructured{Object: readYAML(t, root+"examples/local/machineclass.yaml")}
	c.SetNamespace(p.Machine.GetNamespace())
	p.Others[0] = c
	p.ToRunning()
}
