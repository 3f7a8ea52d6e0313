package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/packageguard"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestAUsersOwnStepChangesVMs installs a second function, whose step is between infrastructure
// and lifecycle: Crossplane calls it by gRPC for Machines.
func TestAUsersOwnStepChangesVMs(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	installTagger(t, f)
	const provider = "tagging"
	c := compositionFor(t, provider)
	insertStep(t, c, "infrastructure", map[string]any{
		"step":        "tag",
		"functionRef": map[string]any{"name": "drover-function-tagger"},
		"input":       map[string]any{"apiVersion": "example.org/v1", "kind": "Tags", "tags": map[string]any{"cost-center": "4711"}},
	})
	f.Create(t, c)
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), c) })
	f.Create(t, f.Class(provider, provider, `{"image":"ubuntu-24.04","size":"small"}`))

	md := f.Deployment("tagged", 2, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = provider
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	vms, err := f.VMs(t.Context())
	must(t, err)
	for _, vm := range vms {
		if vm.Tags["cost-center"] != "4711" || vm.Tags[machinev1alpha1.TagMachineUID] == "" {
			t.Errorf("VM %s has the tags %v", vm.Name, vm.Tags)
		}
	}
	everyMachineHasItsNode(t, f, 2)
	for name := range machineNames(t, f) {
		(&member{f: f, name: name}).reported(t, "ComposeResources", "Tagged the VM")
	}
	f.DeleteDeployment(t, md.Name)
}

// insertStep into the pipeline of a Composition, after the step with a name.
func insertStep(t *testing.T, c *unstructured.Unstructured, after string, step map[string]any) {
	t.Helper()
	steps, _, err := unstructured.NestedSlice(c.Object, "spec", "pipeline")
	must(t, err)
	i := slices.IndexFunc(steps, func(s any) bool { return s.(map[string]any)["step"] == after })
	must(t, unstructured.SetNestedSlice(c.Object, slices.Insert(steps, i+1, any(step)), "spec", "pipeline"))
}

// installTagger builds the function of testdata, and installs it like a user.
func installTagger(t *testing.T, f kit.Fleet) {
	t.Helper()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	out := t.TempDir()
	run("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(out, "function-tagger"), "./testdata/function-tagger")
	xpkg := filepath.Join(os.Getenv("DROVER_BIN"), "xpkg")
	run(xpkg, "build", "--root", "testdata/function-tagger", "--bin", out, "--out", out, "function-tagger")
	status, err := f.Status(t.Context())
	must(t, err)
	run(xpkg, "push", "--registry", status.Registry, filepath.Join(out, "function-tagger-v0.1.0.xpkg"))
	must(t, f.InstallPackage(t.Context(), "function", "function-tagger"))
}

// TestAPinnedRevision checks that a Machine with the update policy Manual keeps its pipeline.
// Only later Machines get a new revision of the Composition.
func TestAPinnedRevision(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	const provider = "pinned"
	c := compositionFor(t, provider)
	tagged := func(value string) {
		changeStep(t, c, "infrastructure", func(step map[string]any) {
			fields, _, err := unstructured.NestedSlice(step, "input", "virtualMachine", "fields")
			must(t, err)
			fields = slices.DeleteFunc(fields, func(f any) bool { return f.(map[string]any)["path"] == "spec.forProvider.zone" })
			fields = append(fields, map[string]any{"path": "spec.forProvider.zone", "value": fmt.Sprintf("%q", value)})
			must(t, unstructured.SetNestedSlice(step, fields, "input", "virtualMachine", "fields"))
		})
	}
	tagged("zone-a")
	f.Create(t, c)
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), c) })
	f.Create(t, f.Class(provider, provider, `{"image":"ubuntu-24.04","size":"small"}`))

	follow := func(name string, policy machinev1alpha1.CompositionUpdatePolicy) *member {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}, Spec: f.MachineSpec(kit.NewVersion)}
		m.Spec.ClassRef.Name = provider
		m.Spec.Crossplane = &machinev1alpha1.CompositionSelection{CompositionUpdatePolicy: policy}
		must(t, f.Client.Create(t.Context(), m))
		return &member{f: f, name: name}
	}
	pinned := follow("pinned", machinev1alpha1.CompositionUpdateManual)
	following := follow("following", machinev1alpha1.CompositionUpdateAutomatic)
	md := f.Deployment("pool", 1, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = provider
	md.Spec.Template.Spec.Crossplane = &machinev1alpha1.CompositionSelection{CompositionUpdatePolicy: machinev1alpha1.CompositionUpdateManual}
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	pinned.awaitRunning(t)
	following.awaitRunning(t)
	inPool := machineNames(t, f)
	first := pinned.machine(t).Spec.Crossplane.CompositionRevisionRef
	if first == nil || first.Name == "" {
		t.Fatalf("the Machine names no revision: %+v", pinned.machine(t).Spec.Crossplane)
	}

	must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	tagged("zone-b")
	must(t, f.Client.Update(t.Context(), c))
	patience.Eventually(t, func(ctx context.Context) string {
		m := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, following.key(), m); err != nil {
			return err.Error()
		}
		if m.Status.CompositionRevision == first.Name || m.Status.CompositionRevision == "" {
			return "the Machine that follows Automatic has the revision " + m.Status.CompositionRevision
		}
		return ""
	}, f.Describe)
	later := follow("later", machinev1alpha1.CompositionUpdateManual)
	later.awaitRunning(t)
	kubectl(t, f, "scale", "md", md.Name, "--replicas=2")
	f.AwaitDeployment(t, md.Name)

	for name := range machineNames(t, f) {
		m := (&member{f: f, name: name}).machine(t)
		want := inPool[name] && name != following.name
		if got := m.Status.CompositionRevision == first.Name; got != want {
			t.Errorf("Machine %s follows %s, and those of the first revision %s", name, m.Status.CompositionRevision, first.Name)
		}
		zone := "zone-a"
		if !want {
			zone = "zone-b"
		}
		if got := zoneOf(t, f, name); name != following.name && got != zone {
			t.Errorf("the VM of Machine %s is in %s, want %s", name, got, zone)
		}
		if r := m.Spec.Crossplane.CompositionRevisionRef; name != following.name && (r == nil || r.Name != m.Status.CompositionRevision) {
			t.Errorf("Machine %s names the revision %+v and follows %s", name, r, m.Status.CompositionRevision)
		}
	}
	if vms, err := f.VMs(t.Context()); err != nil || len(vms) != 5 {
		t.Errorf("%d VMs, want 5: %v", len(vms), err)
	}
	for _, m := range []*member{pinned, following, later} {
		m.delete(t)
		m.awaitGone(t)
	}
	f.DeleteDeployment(t, md.Name)
}

// zoneOf the VM of a Machine.
func zoneOf(t *testing.T, f kit.Fleet, machine string) string {
	t.Helper()
	vms := (&member{f: f, name: machine}).vms(t.Context())
	if len(vms) != 1 {
		t.Fatalf("Machine %s has %d VMs", machine, len(vms))
	}
	return vms[0].Zone
}

// TestTheProviderIsKeptWhileThereAreMachines runs without Machines of other tests: parallel tests
// run later.
func TestTheProviderIsKeptWhileThereAreMachines(t *testing.T) {
	f := plane.NewFleet(t)
	m := running(t, f, "guarding")
	provider := &unstructured.Unstructured{}
	provider.SetGroupVersionKind(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "Provider"})
	provider.SetName("drover-provider-drover")
	usage := &unstructured.Unstructured{}
	usage.SetGroupVersionKind(schema.GroupVersionKind{Group: "protection.crossplane.io", Version: "v1beta1", Kind: "ClusterUsage"})
	usage.SetName("drover-machines")

	patience.Eventually(t, func(ctx context.Context) string {
		// Use a dry run first, so that the provider is not deleted if the deletion is not refused.
		err := f.Client.Delete(ctx, provider, client.DryRunAll)
		if err == nil {
			return "the deletion of the Provider is not refused"
		}
		if !strings.Contains(err.Error(), packageguard.ProviderReason) {
			return "the deletion of the Provider is refused with another message: " + err.Error()
		}
		return ""
	}, f.Describe)
	out, err := f.Kubectl(t, "delete", "provider.pkg.crossplane.io", provider.GetName())
	if err == nil || !strings.Contains(out, packageguard.ProviderReason) {
		t.Errorf("kubectl delete provider: %v\n%s", err, out)
	}
	must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(provider), provider))
	if at := provider.GetDeletionTimestamp(); at != nil {
		t.Fatalf("the Provider is being deleted since %s", at)
	}
	if s := m.is(t.Context(), machinev1alpha1.MachineRunning); s != "" {
		t.Error(s)
	}

	m.delete(t)
	m.awaitGone(t)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(usage), usage); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the ClusterUsage is there: %v", err)
		}
		if err := f.Client.Delete(ctx, provider, client.DryRunAll); err != nil {
			return "without Machines the Provider may be deleted: " + err.Error()
		}
		return ""
	})
}
