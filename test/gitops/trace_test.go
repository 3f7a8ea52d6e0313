package gitops

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

func inNamespace(args []string, namespace string) []string {
	out := slices.Clone(args)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "NAMESPACE", namespace)
	}
	return out
}

// TestTraceShowsAllBelowAMachineDeployment checks that a trace has each Machine with its VM, and
// after a change no deleted Machine.
func TestTraceShowsAllBelowAMachineDeployment(t *testing.T) {
	t.Parallel()
	f := plane(t).NewFleet(t)
	md := f.Deployment("workers", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	wantTraceOfAll(t, f, "machinedeployments")
	wantOwnersOfAll(t, f)

	f.Patch(t, md, fmt.Sprintf(`{"spec":{"replicas":1,"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	f.AwaitDeployment(t, md.Name)
	wantTraceOfAll(t, f, "machinedeployments")
	wantOwnersOfAll(t, f)
	f.DeleteDeployment(t, md.Name)
}

// wantTraceOfAll waits until the trace of the object of a kind has exactly the objects that
// exist.
func wantTraceOfAll(t *testing.T, f kit.Fleet, of string) {
	t.Helper()
	row := regexp.MustCompile(`([A-Za-z]+)/([a-z0-9-]+) `)
	patience.Eventually(t, func(ctx context.Context) string {
		out, err := crossplane(t, f.Kubeconfig, inNamespace(command(t, "resource trace "+of+".machine.drover.dev"), f.Namespace)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got []string
		for _, m := range row.FindAllStringSubmatch(out, -1) {
			got = append(got, m[1]+" "+m[2])
		}
		var want []string
		for _, o := range objectsOf(ctx, t, f) {
			want = append(want, o.GetKind()+" "+o.GetName())
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || strings.Contains(out, "Error") {
			return fmt.Sprintf("the trace has %v, want %v:\n%s", got, want, out)
		}
		return ""
	})
}

// objectsOf returns the NodePool or MachineDeployment of a fleet and all objects below it.
func objectsOf(ctx context.Context, t *testing.T, f kit.Fleet) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, kind := range kinds {
		if kind.Kind == "MachineClass" {
			continue
		}
		out = append(out, list(ctx, t, f, kind)...)
	}
	return out
}

func list(ctx context.Context, t *testing.T, f kit.Fleet, kind schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// wantOwnersOfAll checks that kubectl tree finds each object below the MachineDeployment by owner
// references.
func wantOwnersOfAll(t *testing.T, f kit.Fleet) {
	t.Helper()
	owners := map[string]string{
		"MachineSet": "MachineDeployment", "MachineGroup": "MachineSet", "Machine": "MachineSet", "VirtualMachine": "Machine", "Secret": "Machine",
	}
	objects := append(objectsOf(t.Context(), t, f), list(t.Context(), t, f, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})...)
	uids := map[string]string{}
	for _, o := range objects {
		uids[string(o.GetUID())] = o.GetKind()
	}
	for _, o := range objects {
		want, ok := owners[o.GetKind()]
		if !ok {
			continue
		}
		if refs := o.GetOwnerReferences(); len(refs) != 1 || uids[string(refs[0].UID)] != want || refs[0].Kind != want {
			t.Errorf("%s %s has the owners %v, want one %s", o.GetKind(), o.GetName(), refs, want)
		}
	}
}
