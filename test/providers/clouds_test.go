package providers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function"
	"github.com/drover-dev/drover/internal/function/machinetest"
	"github.com/drover-dev/drover/test/examples"
)

const root = "../../"

var update = flag.Bool("update", false, "write down what is rendered as what is wanted")

func run(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return function.New(logging.NewNopLogger(), func() time.Time { return now }).RunFunction(context.Background(), req)
}

func readYAML(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	b, err := examples.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return machinetest.Object(t, string(b))
}

func compositionOf(cloud string) string {
	if slices.Contains(ofExamples, cloud) {
		return root + "examples/" + cloud + "/composition.yaml"
	}
	return root + "apis/machine/compositions/machine-" + cloud + ".yaml"
}

// newPlane has a Machine with the changed class of a cloud's example, in a failure domain unless
// that is empty. The join token exists from the first reconcile on.
func newPlane(t *testing.T, cloud, failureDomain string, changes ...func(class *unstructured.Unstructured)) *machinetest.Plane {
	t.Helper()
	p := machinetest.New(t, run, compositionOf(cloud))
	if crd, ok := crds[cloud]; ok {
		p.AddSchema(filepath.Join("crds", crd))
		for _, crd := range companionCRDs[cloud] {
			p.AddSchema(filepath.Join("crds", crd))
		}
	} else {
		p.Capabilities = nil // There is no CRD, so no schema is available.
	}
	class := readYAML(t, root+"examples/"+cloud+"/machineclass.yaml")
	class.SetNamespace(p.Machine.GetNamespace())
	for _, change := range changes {
		change(class)
	}
	p.Others = append(p.Others, class, machinetest.Object(t, `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: orphancollectors.machine.drover.dev, uid: 0a1b2c3d-0000-4000-8000-000000000001}
`))
	machinetest.Set(p.Machine, class.GetName(), "spec", "classRef", "name")
	// A name that is no valid label value at any cloud.
	machinetest.Set(p.Machine, "Target.Example", "spec", "clusterRef", "name")
	if failureDomain != "" {
		machinetest.Set(p.Machine, failureDomain, "spec", "failureDomain")
	}
	return p
}

// rendered returns the VM of a plane.
func rendered(t *testing.T, p *machinetest.Plane) *unstructured.Unstructured {
	t.Helper()
	p.Reconcile()
	for range companionCRDs["upjet-azure"] {
		for name, c := range p.Composed {
			if machinev1alpha1.IsCompanion(name) {
				companionIsReady(t, c)
			}
		}
		p.Reconcile()
	}
	vm := p.Composed[machinev1alpha1.ResourceVM]
	if vm == nil {
		t.Fatalf("no VM: %v", p.Machine.Object["status"])
	}
	return vm
}

// golden compares an object with its golden file.
func golden(t *testing.T, name string, got map[string]any) {
	t.Helper()
	b, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: -update writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(b), "\n")); diff != "" {
		t.Errorf("%s: -want +got, -update accepts it:\n%s", file, diff)
	}
}

// withoutUserData removes the user data, which has its own golden file.
func withoutUserData(vm *unstructured.Unstructured) map[string]any {
	out := vm.DeepCopy()
	for _, path := range [][]string{{"spec", "forProvider", "userDataBase64"}, {"spec", "forProvider", "userData"}, {"spec", "forProvider", "metadata", "user-data"}, {"spec", "forProvider", "userData", "cloud-init"}} {
		if s, ok, _ := unstructured.NestedString(out.Object, path...); ok && s != "" {
			machinetest.Set(out, "as rendered", path...)
		}
	}
	return map[string]any{"apiVersion": out.GetAPIVersion(), "kind": out.GetKind(), "spec": out.Object["spec"]}
}

func TestTheClassOfTheExampleBecomesAVM(t *testing.T) {
	for cloud := range crds {
		t.Run(cloud, func(t *testing.T) {
			p := newPlane(t, cloud, "")
			golden(t, cloud, withoutUserData(rendered(t, p)))
			for name, c := range p.Composed {
				if machinev1alpha1.IsCompanion(name) {
					golden(t, cloud+"-"+name, withoutUserData(c))
				}
			}
		})
	}
}

// TestTheClassOfKubeVirtBecomesAVM uses no schema: an Object accepts any manifest.
func TestTheClassOfKubeVirtBecomesAVM(t *testing.T) {
	p := newPlane(t, "kubevirt", "zone-b")
	vm := rendered(t, p)
	golden(t, "kubevirt", withoutUserData(vm))
}

// inAnotherCluster changes a class so that its VMs are in another cluster than Drover.
func inAnotherCluster(class *unstructured.Unstructured) {
	machinetest.Set(class, map[string]any{"userdata": map[string]any{}}, "spec", "companions")
	machinetest.Set(class, "infra", "spec", "providerConfigRef", "name")
}

// TestTheSecretOfAVMInAnotherClusterIsMadeBeforeTheVM checks that the Secret exists in the VM's
// cluster before the VM.
func TestTheSecretOfAVMInAnotherClusterIsMadeBeforeTheVM(t *testing.T) {
	p := newPlane(t, "kubevirt", "", inAnotherCluster)
	p.Reconcile()
	p.Reconcile()
	secret := p.Composed["companion-userdata"]
	if secret == nil || p.Composed[machinev1alpha1.ResourceVM] != nil {
		t.Fatalf("before the Secret is there: Secret %v, VM %v", secret, p.Composed[machinev1alpha1.ResourceVM])
	}
	manifest := []string{"spec", "forProvider", "manifest"}
	data, _, _ := unstructured.NestedString(secret.Object, append(manifest, "data", "userData")...)
	if content, err := base64.StdEncoding.DecodeString(data); err != nil || !strings.HasPrefix(string(content), "#cloud-config") {
		t.Errorf("data %q, error %v", content, err)
	}
	stable := secret.DeepCopy()
	machinetest.Set(stable, "as rendered", append(manifest, "data", "userData")...)
	golden(t, "kubevirt-companion-userdata", map[string]any{"apiVersion": stable.GetAPIVersion(), "kind": stable.GetKind(), "spec": stable.Object["spec"]})

	machinetest.Set(secret, map[string]any{"apiVersion": "v1", "kind": "Secret"}, "status", "atProvider", "manifest")
	secret.SetAnnotations(merged(secret.GetAnnotations(), "crossplane.io/external-name", secret.GetName()))
	machinetest.Condition(secret, "Synced", "True", "ReconcileSuccess", "")
	machinetest.Condition(secret, "Ready", "True", "Available", "")
	p.Reconcile()
	vm := p.Composed[machinev1alpha1.ResourceVM]
	if vm == nil {
		t.Fatalf("no VM: %v", p.Machine.Object["status"])
	}
	for _, o := range []*unstructured.Unstructured{secret, vm} {
		if config, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "name"); config != "infra" {
			t.Errorf("%s is in the cluster of %q", o.GetName(), config)
		}
	}
	name, _, _ := unstructured.NestedString(secret.Object, append(manifest, "metadata", "name")...)
	if b, _ := json.Marshal(vm.Object["spec"]); !strings.Contains(string(b), `"cloudInitNoCloud":{"secretRef":{"name":"`+name+`"}}`) || strings.Contains(string(b), data) {
		t.Errorf("the VM does not refer to the Secret %s alone: %s", name, b)
	}
}

// TestAVMInTheClusterOfDroverHasNoOtherSecret checks that only the Secret of the Machine has the
// user data.
func TestAVMInTheClusterOfDroverHasNoOtherSecret(t *testing.T) {
	p := newPlane(t, "kubevirt", "")
	rendered(t, p)
	if p.Composed["companion-userdata"] != nil {
		t.Errorf("composed %v", p.Composed["companion-userdata"])
	}
}

func TestAFailureDomainGoesIntoTheVM(t *testing.T) {
	for cloud, d := range described {
		if d.FailureDomain == "" {
			continue
		}
		t.Run(cloud, func(t *testing.T) {
			domain, want := "domain-b", "domain-b"
			if cloud == "azure" || cloud == "upjet-azure" {
				domain, want = "westeurope-2", "2" // Its Nodes have the region as a prefix.
			}
			vm := rendered(t, newPlane(t, cloud, domain))
			if got, _, _ := unstructured.NestedString(vm.Object, "spec", "forProvider", d.FailureDomain); got != want {
				t.Errorf("%s is %q", d.FailureDomain, got)
			}
		})
	}
}

func TestAWrongFieldIsRefusedBeforeThereIsAVM(t *testing.T) {
	cases := map[string]struct {
		change func(forProvider map[string]any)
		want   string
	}{
		"AnUnknownField": {func(f map[string]any) { f["flavour"] = "sweet" }, "forProvider.flavour: unknown field"},
		"ATypeThatIsNone": {func(f map[string]any) {
			f["labels"], f["tags"], f["metadata"], f["size"], f["instanceType"], f["machineType"] = 1, 1, 1, 1, 1, 1
		}, "forProvider."},
	}
	for cloud := range crds {
		for name, tc := range cases {
			t.Run(cloud+name, func(t *testing.T) {
				p := newPlane(t, cloud, "", func(class *unstructured.Unstructured) {
					f, _, _ := unstructured.NestedMap(class.Object, "spec", "forProvider")
					tc.change(f)
					class.Object["spec"].(map[string]any)["forProvider"] = f
				})
				p.Reconcile()
				b, _ := json.Marshal(p.Machine.Object["status"])
				if p.Composed[machinev1alpha1.ResourceVM] != nil || !strings.Contains(string(b), tc.want) || !strings.Contains(string(b), "ForProviderInvalid") {
					t.Errorf("VM %v, status %s", p.Composed[machinev1alpha1.ResourceVM], b)
				}
			})
		}
	}
}

func TestWhatARequiredFieldIsIsSaidByTheKindsRules(t *testing.T) {
	for cloud, field := range map[string]string{"upjet-azure": "osDisk", "upjet-gcp": "machineType", "digitalocean": "size", "yandex": "resources"} {
		t.Run(cloud, func(t *testing.T) {
			p := newPlane(t, cloud, "")
			unstructured.RemoveNestedField(p.Others[0].Object, "spec", "forProvider", field)
			p.Reconcile()
			p.Reconcile()
			b, _ := json.Marshal(p.Machine.Object["status"])
			if want := "spec.forProvider." + field + " is a required parameter"; !strings.Contains(string(b), want) {
				t.Errorf("%q is not in %s", want, b)
			}
		})
	}
}

func TestPlacementGroupsOfHetznerExcludeEachOther(t *testing.T) {
	p := newPlane(t, "hcloud", "", func(class *unstructured.Unstructured) {
		f := class.Object["spec"].(map[string]any)["forProvider"].(map[string]any)
		f["placementGroupPrefix"], f["placementGroupId"] = "workers", int64(7)
	})
	refusesClass(t, p, "spec.forProvider.placementGroupId and spec.forProvider.placementGroupPrefix exclude each other")
}

// TestAVirtualMachineOfKubeVirtIsSeenAsItIs checks the fields that make provider-kubernetes
// observe a ready VirtualMachine at once, not at its next poll.
func TestAVirtualMachineOfKubeVirtIsSeenAsItIs(t *testing.T) {
	vm := rendered(t, newPlane(t, "kubevirt", ""))
	if watch, _, _ := unstructured.NestedBool(vm.Object, "spec", "watch"); !watch {
		t.Error("the VirtualMachine is not watched")
	}
	if policy, _, _ := unstructured.NestedString(vm.Object, "spec", "readiness", "policy"); policy != "DeriveFromCelQuery" {
		t.Errorf("the Object is Ready by %q, without regard to its VirtualMachine", policy)
	}
}

// TestEachVirtualMachineOfKubeVirtHasItsDataVolumes has two VMs of one class.
func TestEachVirtualMachineOfKubeVirtHasItsDataVolumes(t *testing.T) {
	withDisk := func(class *unstructured.Unstructured) {
		manifest := []string{"spec", "forProvider", "manifest", "spec"}
		at := func(path ...string) []string { return append(append([]string{}, manifest...), path...) }
		machinetest.Set(class, []any{map[string]any{
			"metadata": map[string]any{"name": "root", "labels": map[string]any{"team": "a", "drover-machine": "theirs"}, "annotations": map[string]any{"cdi.kubevirt.io/storage.bind.immediate.requested": "true"}},
			"spec":     map[string]any{"storage": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "20Gi"}}}},
		}}, at("dataVolumeTemplates")...)
		machinetest.Set(class, []any{
			map[string]any{"name": "root", "dataVolume": map[string]any{"name": "root"}},
			map[string]any{"name": "shared", "dataVolume": map[string]any{"name": "shared"}},
			map[string]any{"name": "scratch", "emptyDisk": map[string]any{"capacity": "1Gi"}},
		}, at("template", "spec", "volumes")...)
	}
	vm := rendered(t, newPlane(t, "kubevirt", "", withDisk))
	name := vm.GetName()
	templates, _, _ := unstructured.NestedSlice(vm.Object, "spec", "forProvider", "manifest", "spec", "dataVolumeTemplates")
	want := []any{map[string]any{
		"metadata": map[string]any{"name": name + "-root", "annotations": map[string]any{"cdi.kubevirt.io/storage.bind.immediate.requested": "true"}, "labels": map[string]any{
			"team": "a", "drover-cluster": "Target.Example", "drover-installation": "0a1b2c3d-0000-4000-8000-000000000001",
			"drover-machine": "workers-x7k2p", "drover-machine-uid": "6f8e9d10-aaaa-4bbb-8ccc-0123456789ab", "drover-namespace": "ns",
		}},
		"spec": map[string]any{"storage": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "20Gi"}}}},
	}}
	if diff := cmp.Diff(want, templates); diff != "" {
		t.Errorf("dataVolumeTemplates: -want +got:\n%s", diff)
	}
	volumes, _, _ := unstructured.NestedSlice(vm.Object, "spec", "forProvider", "manifest", "spec", "template", "spec", "volumes")
	if len(volumes) != 4 {
		t.Fatalf("volumes: %v", volumes)
	}
	for i, want := range []string{name + "-root", "shared"} {
		if got, _, _ := unstructured.NestedString(volumes[i].(map[string]any), "dataVolume", "name"); got != want {
			t.Errorf("volume %d is of DataVolume %q, want %q", i, got, want)
		}
	}
}

// TestNoTagOfAnAccountIsOfOneMachine checks that no tag identifies a Machine. A tag at
// DigitalOcean is an object of the account, and is not deleted with the last Droplet that had it.
func TestNoTagOfAnAccountIsOfOneMachine(t *testing.T) {
	p := newPlane(t, "digitalocean", "")
	vm := rendered(t, p)
	tags, _, _ := unstructured.NestedStringSlice(vm.Object, "spec", "forProvider", "tags")
	for _, tag := range tags {
		if strings.Contains(tag, p.Machine.GetName()) || strings.Contains(tag, string(p.Machine.GetUID())) {
			t.Errorf("tag %s is of Machine %s alone", tag, p.Machine.GetName())
		}
	}
	if len(tags) < 3 {
		t.Errorf("tags %v do not name installation, cluster and namespace", tags)
	}
}

// TestTagsAreInAFormThatTheirCloudAccepts has a cluster whose name is longer than a label: the cloud would refuse each
// VM.
func TestTagsAreInAFormThatTheirCloudAccepts(t *testing.T) {
	manifest := []string{"spec", "forProvider", "manifest", "metadata", "labels"}
	for cloud, of := range map[string]struct {
		labels []string
		valid  *regexp.Regexp
	}{
		"hcloud":    {[]string{"spec", "forProvider", "labels"}, regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?)?$`)},
		"upjet-gcp": {[]string{"spec", "forProvider", "labels"}, regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)},
		"kubevirt":  {manifest, regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?)?$`)},
	} {
		t.Run(cloud, func(t *testing.T) {
			p := newPlane(t, cloud, "")
			machinetest.Set(p.Machine, strings.Repeat("target.", 12)+"example", "spec", "clusterRef", "name")
			labels, _, err := unstructured.NestedStringMap(rendered(t, p).Object, of.labels...)
			if err != nil || labels["drover-cluster"] == "" {
				t.Fatalf("labels %v, error %v", labels, err)
			}
			for k, v := range labels {
				if !of.valid.MatchString(v) {
					t.Errorf("label %s: %q is not accepted", k, v)
				}
			}
		})
	}
}

// TestAProviderWithoutManagementPoliciesIsRefusedBeforeThereIsAVM uses the error that
// crossplane-runtime returns for the policies of the rendered VM if the feature is off.
func TestAProviderWithoutManagementPoliciesIsRefusedBeforeThereIsAVM(t *testing.T) {
	p := newPlane(t, "scaleway", "")
	vm := rendered(t, p)
	policies := xpv2.ManagementPolicies{}
	list, _, _ := unstructured.NestedStringSlice(vm.Object, "spec", "managementPolicies")
	for _, policy := range list {
		policies = append(policies, xpv2.ManagementAction(policy))
	}
	refused := managed.NewManagementPoliciesResolver(false, policies).Validate()
	if refused == nil {
		t.Fatalf("a provider without management policies creates a VM with %v, and cannot delete it once it is pinned", policies)
	}
	if err := managed.NewManagementPoliciesResolver(true, policies).Validate(); err != nil {
		t.Errorf("a provider with management policies refuses %v: %v", policies, err)
	}
	if slices.Contains(vm.GetFinalizers(), "finalizer.managedresource.crossplane.io") {
		t.Error("a provider that refuses the VM resource would never remove the finalizer")
	}
	machinetest.Condition(p.Composed["vm"], "Synced", "False", "ReconcileError", refused.Error())
	p.Reconcile()
	valid := conditionOf(p, "Valid")
	if valid["status"] != "False" || valid["reason"] != "ManagementPoliciesDisabled" || !strings.Contains(fmt.Sprint(valid["message"]), "--enable-management-policies") {
		t.Errorf("Valid is %v", valid)
	}
	// The provider restarts with the feature.
	machinetest.Condition(p.Composed["vm"], "Synced", "True", "ReconcileSuccess", "")
	p.Reconcile()
	if valid := conditionOf(p, "Valid"); valid["status"] != "True" {
		t.Errorf("Valid is %v after the provider accepts the policies", valid)
	}
}

// conditionOf returns a condition of the Machine, empty if there is none of the type.
func conditionOf(p *machinetest.Plane, typ string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(p.Machine.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == typ {
			return c
		}
	}
	return nil
}

// asSpot adds the fields with which the cloud may take back the VM, as the example shows them in a comment.
func asSpot(t *testing.T, cloud string) func(*unstructured.Unstructured) {
	return func(class *unstructured.Unstructured) {
		b, err := examples.ReadSpot(root + "examples/" + cloud + "/machineclass.yaml")
		if err != nil {
			t.Fatal(err)
		}
		spot := machinetest.Object(t, string(b))
		forProvider, _, _ := unstructured.NestedMap(spot.Object, "spec", "forProvider")
		machinetest.Set(class, forProvider, "spec", "forProvider")
	}
}

func TestASpotVMIsLookedAtEachMinute(t *testing.T) {
	for _, cloud := range []string{"upjet-aws", "upjet-azure", "upjet-gcp", "yandex"} {
		t.Run(cloud, func(t *testing.T) {
			vm := rendered(t, newPlane(t, cloud, "", asSpot(t, cloud)))
			if got := vm.GetAnnotations()["crossplane.io/poll-interval"]; got != "1m" {
				t.Errorf("a spot VM is looked at every %q", got)
			}
			vm = rendered(t, newPlane(t, cloud, ""))
			if got, ok := vm.GetAnnotations()["crossplane.io/poll-interval"]; ok {
				t.Errorf("each look is a request: a VM that stays is looked at every %q", got)
			}
		})
	}
}
