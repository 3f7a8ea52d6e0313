package gitops

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestArgoCDSeesNoDifferenceThatDroverMade checks that fields which Crossplane and Drover write
// to an object from Git are no difference, nor is a number that another client set. A change of
// the template is a difference.
func TestArgoCDSeesNoDifferenceThatDroverMade(t *testing.T) {
	t.Parallel()
	f := plane(t).NewFleet(t)
	md := f.Deployment("workers", 1, 1, 0)
	manifest := manifestOf(t, md, "MachineDeployment")
	class := manifestOf(t, f.Class("small", "local", `{"image":"ubuntu-24.04","size":"small"}`), "MachineClass")
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	live := func(manifest map[string]any) map[string]any {
		t.Helper()
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind((&unstructured.Unstructured{Object: manifest}).GroupVersionKind())
		key := client.ObjectKeyFromObject(&unstructured.Unstructured{Object: manifest})
		if err := f.Client.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		return o.Object
	}
	isOutOfSync := func(ignore any, manifest map[string]any) bool {
		t.Helper()
		return judge(t, []map[string]any{live(manifest)}, []map[string]any{manifest}, ignore)[0].OutOfSync
	}
	ignore := ignoreDifferences(t)
	for name, m := range map[string]map[string]any{"MachineDeployment": manifest, "MachineClass": class} {
		if isOutOfSync(ignore, m) {
			t.Errorf("the %s is out of sync: %v", name, live(m))
		}
	}

	if out, err := f.Kubectl(t, "scale", "machinedeployment", md.Name, "--replicas=2", "-n", f.Namespace); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if isOutOfSync(ignore, manifest) {
		t.Error("the number of another client is a difference")
	}
	if !isOutOfSync(nil, manifest) {
		t.Error("without ignoreDifferences the number is none")
	}
	f.Patch(t, md, `{"spec":{"template":{"spec":{"version":"v1.35.4"}}}}`)
	if !isOutOfSync(ignore, manifest) {
		t.Error("another version is no difference")
	}
	f.DeleteDeployment(t, md.Name)
}

// manifestOf returns an object as Git has it: without the fields that the API server and
// controllers write.
func manifestOf(t *testing.T, o client.Object, kind string) map[string]any {
	t.Helper()
	u := unstructuredOf(t, o, kind)
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u.Object
}

func unstructuredOf(t *testing.T, o client.Object, kind string) *unstructured.Unstructured {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: m}
	u.SetAPIVersion(machineGroup)
	u.SetKind(kind)
	return u
}
