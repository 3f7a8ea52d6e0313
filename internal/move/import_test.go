package move

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

var (
	compositionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}
	inventoryKind   = serverKind.GroupVersion().WithKind("VirtualMachineInventory")
)

// orphaned is a cluster with a set of two that has one Machine, and with one orphan.
func orphaned(t *testing.T, orphan map[string]any, objs ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, kind := range []schema.GroupVersionKind{
		machinev1alpha1.MachineGroupVersionKind, machinev1alpha1.MachineSetGroupVersionKind, machinev1alpha1.MachineClassGroupVersionKind, machinev1alpha1.ClusterMachineClassGroupVersionKind, serverKind, compositionKind, inventoryKind,
	} {
		s.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	composition := object(compositionKind, "machine-cloud", clusterScoped, with([]any{map[string]any{"step": "infrastructure", "input": map[string]any{
		"apiVersion": fn.Group + "/" + fn.Version, "kind": "Infrastructure", "virtualMachine": map[string]any{"apiVersion": serverKind.GroupVersion().String(), "kind": serverKind.Kind},
	}}}, "spec", "pipeline"))
	composition.SetLabels(map[string]string{machinev1alpha1.LabelProvider: "cloud"})
	deployment := object(machinev1alpha1.MachineDeploymentGroupVersionKind, "web")
	set := object(machinev1alpha1.MachineSetGroupVersionKind, "web-a", of(deployment, machinev1alpha1.LabelDeployment), with(map[string]any{
		"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web", "tier": "a"}}, "spec": map[string]any{
			"version": "v1.35.4", "classRef": map[string]any{"name": "small"}, "clusterRef": map[string]any{"kind": "ClusterProviderConfig", "name": "eu"},
		}},
	}, "spec"))
	there := object(machinev1alpha1.MachineGroupVersionKind, "web-a-0", with("id-0", "spec", "providerID"))
	there.SetLabels(map[string]string{"app": "web"})
	class := object(machinev1alpha1.SchemeGroupVersion.WithKind("MachineClass"), "small", with(map[string]any{
		"provider": "cloud", "providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "default"}, "forProvider": map[string]any{"size": "large", "cores": int64(4)},
	}, "spec"))
	inventory := object(inventoryKind, "orphans", with([]any{orphan}, "status", "atProvider", "unclaimed"))
	return fake.NewClientBuilder().WithScheme(s).WithRESTMapper(mapper).WithObjects(append(objs, composition, set, there, class, inventory)...).Build()
}

func anOrphan(change map[string]any) map[string]any {
	o := map[string]any{
		"externalName": "vm-1", "providerID": "id-1", "installation": "here", "cluster": "eu", "namespace": "ns", "machine": "web-a-1", "machineUID": "uid-1", "firstSeen": "2030-01-01T00:00:00Z",
	}
	for k, v := range change {
		o[k] = v
	}
	return o
}

func TestAnOrphanBecomesAMachineOfASetAgain(t *testing.T) {
	node := names.OfMachine("web-a-1", "uid-1")
	another := object(machinev1alpha1.MachineGroupVersionKind, "web-a-1")
	for name, tc := range map[string]struct {
		objs []client.Object
		want string
	}{
		"OfItsName":                          {nil, "web-a-1"},
		"OfTheNameOfItsNodeIfThatIsTakenNow": {[]client.Object{another}, node},
	} {
		t.Run(name, func(t *testing.T) {
			c := orphaned(t, anOrphan(nil), tc.objs...)
			i := Import{Client: c, Namespace: "ns", Set: "web-a", VMs: []string{"vm-1"}, Log: t.Logf}
			for range 2 { // Once more changes nothing.
				if err := i.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			m, v := read(t, c, machinev1alpha1.MachineGroupVersionKind, tc.want), read(t, c, serverKind, node)
			if id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID"); id != "id-1" || m.GetLabels()["app"] != "web" || m.GetLabels()["tier"] != "a" || len(m.GetOwnerReferences()) > 0 {
				t.Errorf("Machine %v", m.Object)
			}
			want := map[string]string{
				"crossplane.io/external-name": "vm-1", AnnotationRole: "vm", machinev1alpha1.AnnotationMachineUID: "uid-1",
				machinev1alpha1.AnnotationNodeName: node, machinev1alpha1.AnnotationInstallation: "here",
			}
			for k, w := range want {
				if got := v.GetAnnotations()[k]; got != w {
					t.Errorf("annotation %s: %q, want %q", k, got, w)
				}
			}
			policies, _, _ := unstructured.NestedStringSlice(v.Object, "spec", "managementPolicies")
			size, _, _ := unstructured.NestedString(v.Object, "spec", "forProvider", "size")
			if !slices.Equal(policies, []string{"Observe", "Delete"}) || size != "large" || v.GetLabels()[machinev1alpha1.LabelMachine] != tc.want || metav1.GetControllerOf(v) != nil {
				t.Errorf("VM resource %v", v.Object)
			}
		})
	}
}

func TestAnImportChangesNothingIfSomethingStandsAgainstIt(t *testing.T) {
	for name, tc := range map[string]struct {
		orphan map[string]any
		vms    []string
		want   string
	}{
		"AVMThatNobodyReports":   {nil, []string{"vm-1", "vm-2"}, `VM "vm-2": no inventory of Server.cloud.example.org reports it as unclaimed`},
		"AVMOfAnotherNamespace":  {map[string]any{"namespace": "other"}, []string{"vm-1"}, `VM "vm-1" was made for a Machine of the namespace "other": must be "ns"`},
		"AVMOfAnotherCluster":    {map[string]any{"cluster": "us"}, []string{"vm-1"}, `VM "vm-1" was made for the cluster "us": must be "eu"`},
		"AVMWithoutTags":         {map[string]any{"machineUID": ""}, []string{"vm-1"}, `VM "vm-1" lacks the tags of Drover, or a providerID: import it by hand`},
		"ASetThatDoesNotKeepAll": {nil, []string{"vm-1", "vm-1"}, "MachineSet web-a would have 3 Machines, and keeps 2: it would delete the others"},
	} {
		t.Run(name, func(t *testing.T) {
			c := orphaned(t, anOrphan(tc.orphan))
			i := Import{Client: c, Namespace: "ns", Set: "web-a", VMs: tc.vms, Log: t.Logf}
			if err := i.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
			if l, err := list(t.Context(), c, serverKind, "ns"); err != nil || len(l) > 0 {
				t.Errorf("%d VM resources, error %v", len(l), err)
			}
		})
	}
}

// TestAnImportCopiesNoObjectThatDoesNotDecode: a field that was dropped would be missing in the new Machine and its VM.
func TestAnImportCopiesNoObjectThatDoesNotDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		kind schema.GroupVersionKind
		name string
		set  func(*unstructured.Unstructured)
		want string
	}{
		"ASetWhoseDrainHasNoDuration": {
			machinev1alpha1.MachineSetGroupVersionKind, "web-a", with("9999999h", "spec", "template", "spec", "drain", "timeout"),
			`MachineSet ns/web-a cannot be decoded: spec.template.spec.drain.timeout: "9999999h"`,
		},
		"AClassWhosePodsAreNoNumber": {
			machinev1alpha1.MachineClassGroupVersionKind, "small", with("many", "spec", "kubelet", "maxPods"),
			`MachineClass small cannot be decoded: spec.kubelet.maxPods: "many"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := orphaned(t, anOrphan(nil))
			obj := read(t, c, tc.kind, tc.name)
			tc.set(obj)
			if err := c.Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			i := Import{Client: c, Namespace: "ns", Set: "web-a", VMs: []string{"vm-1"}, Log: t.Logf}
			if err := i.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			for _, kind := range []schema.GroupVersionKind{serverKind, machinev1alpha1.MachineGroupVersionKind} {
				if l, err := list(t.Context(), c, kind, "ns"); err != nil || len(l) > 0 && kind == serverKind || len(l) > 1 {
					t.Errorf("%d objects of kind %s, error %v", len(l), kind.Kind, err)
				}
			}
		})
	}
}

func TestAnOrphanIsImportedWithTheFieldsOfAClusterMachineClass(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed []any
		want    string
	}{
		"ThatServesTheNamespace": {[]any{"n*"}, ""},
		"ThatServesOthers":       {[]any{"other"}, `MachineSet web-a: spec.template.spec.classRef.name: ClusterMachineClass "small": Machines of namespace "ns" may not use it`},
	} {
		t.Run(name, func(t *testing.T) {
			c := orphaned(t, anOrphan(nil), object(machinev1alpha1.ClusterMachineClassGroupVersionKind, "small", clusterScoped, with(map[string]any{
				"provider": "cloud", "providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "default"}, "forProvider": map[string]any{"size": "of-the-cluster"}, "allowedNamespaces": tc.allowed,
			}, "spec")))
			set := read(t, c, machinev1alpha1.MachineSetGroupVersionKind, "web-a")
			with("ClusterMachineClass", "spec", "template", "spec", "classRef", "kind")(set)
			if err := c.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			i := Import{Client: c, Namespace: "ns", Set: "web-a", VMs: []string{"vm-1"}, Log: t.Logf}
			err := i.Run(t.Context())
			vms, _ := list(t.Context(), c, serverKind, "ns")
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || len(vms) > 0 {
					t.Errorf("%d VM resources, error %v", len(vms), err)
				}
				return
			}
			if err != nil || len(vms) != 1 {
				t.Fatalf("%d VM resources, error %v", len(vms), err)
			}
			if size, _, _ := unstructured.NestedString(vms[0].Object, "spec", "forProvider", "size"); size != "of-the-cluster" {
				t.Errorf("size %q", size)
			}
		})
	}
}

func read(t *testing.T, c client.Client, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, u); err != nil {
		t.Fatal(err)
	}
	return u
}
