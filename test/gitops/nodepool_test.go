package gitops

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestVerdictsOnANodePool judges every version of every object in the life of a NodePool. It also
// checks the trace of the Crossplane CLI and the differences that Argo CD sees. The table of
// verdicts is testdata/verdicts-nodepool.md.
func TestVerdictsOnANodePool(t *testing.T) {
	t.Parallel()
	f := plane(t).NewFleet(t)
	class := func(name, ref string) map[string]any {
		return map[string]any{"name": name, "classRef": map[string]any{"name": ref}, "failureDomains": []any{"zone-a", "zone-b"}, "maxSize": int64(8)}
	}
	f.Offer(t, map[string]any{
		"versions": []any{kit.OldVersion, kit.NewVersion},
		"classes":  []any{class("small", "small"), class("withdrawn", "no-such-class")},
	})
	spec := map[string]any{"class": "small", "size": int64(2), "version": kit.OldVersion}
	manifest := map[string]any{
		"apiVersion": machineGroup, "kind": "NodePool", "metadata": map[string]any{"name": "web", "namespace": f.Namespace}, "spec": spec,
	}
	r := record(t, f)

	var pool *machinev1alpha1.NodePool
	settle := func() {
		t.Helper()
		f.AwaitPool(t, pool, func(context.Context) string { return "" })
	}
	patch := func(p string) {
		t.Helper()
		f.Patch(t, pool, `{"spec":`+p+`}`)
	}
	awaitStalled := func(message string) {
		t.Helper()
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(pool.Status.Conditions, machinev1alpha1.ConditionStalled)
			if pool.Status.ObservedGeneration != pool.Generation || c == nil || c.Status != "True" || !strings.Contains(c.Message, message) {
				return fmt.Sprintf("Stalled %+v, want %s", c, message)
			}
			return ""
		}, f.Describe)
	}
	isOutOfSync := func() bool {
		t.Helper()
		live := list(t.Context(), t, f, machinev1alpha1.NodePoolGroupVersionKind)
		if len(live) != 1 {
			t.Fatalf("%d NodePools", len(live))
		}
		return judge(t, []map[string]any{live[0].Object}, []map[string]any{manifest}, ignoreDifferences(t))[0].OutOfSync
	}
	stages := []*stage{
		{name: "create 2 Machines", do: func() {
			pool = f.Pool(t, "web", spec)
			settle()
			wantTraceOfAll(t, f, "nodepools")
			if isOutOfSync() {
				t.Error("what Crossplane and Drover write is a difference")
			}
		}},
		{name: "scale to 3", do: func() {
			if out, err := f.Kubectl(t, "scale", "nodepool", pool.Name, "--replicas=3", "-n", f.Namespace); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			settle()
			// Git owns the size of a NodePool.
			if !isOutOfSync() {
				t.Error("another size is no difference")
			}
		}},
		{name: "roll to another version", do: func() {
			patch(fmt.Sprintf(`{"version":%q}`, kit.NewVersion))
			settle()
			wantTraceOfAll(t, f, "nodepools")
		}},
		{name: "ask for a class that is not offered", broken: true, do: func() {
			patch(`{"class":"huge"}`)
			awaitStalled("huge")
		}},
		{name: "ask for a class whose MachineClass does not exist", broken: true, do: func() {
			patch(`{"class":"withdrawn"}`)
			awaitStalled("no-such-class")
		}},
		{name: "mend the class", broken: true, do: func() {
			patch(`{"class":"small"}`)
			settle()
		}},
		{name: "delete", do: func() {
			if err := f.Client.Delete(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			f.AwaitNothing(t)
		}},
	}
	live(t, f, stages)
	wantVerdicts(t, r, stages, "NodePool", "verdicts-nodepool.md")
}

// TestExpressionsForFluxCoverAllComposites checks that each composite has an expression: kstatus
// alone reports a new object as Current.
func TestExpressionsForFluxCoverAllComposites(t *testing.T) {
	has := map[string]bool{}
	for _, e := range healthCheckExprs(t) {
		c, ok := e.(map[string]any)
		if !ok || c["apiVersion"] != machineGroup {
			t.Fatalf("healthCheckExprs has %v", e)
		}
		has[fmt.Sprint(c["kind"])] = true
	}
	for _, kind := range kindsOfXRDs(t) {
		if !has[kind] {
			t.Errorf("examples/flux/kustomization.yaml has no healthCheckExprs for %s", kind)
		}
		o := object(machineGroup, kind, nil, nil)
		delete(o, "status")
		if v := judge(t, []map[string]any{o}, nil, nil)[0]; v.Flux == "Current" || v.Argo == "Healthy" {
			t.Errorf("a new %s is %s by Flux and %s by Argo CD", kind, v.Flux, v.Argo)
		}
	}
}

// kindsOfXRDs in the Configuration package.
func kindsOfXRDs(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, file := range filesOf(t, "apis/machine/xrds/*.yaml") {
		xrd := &unstructured.Unstructured{}
		decodeFile(t, file, &xrd.Object)
		kind, _, _ := unstructured.NestedString(xrd.Object, "spec", "names", "kind")
		out = append(out, kind)
	}
	return out
}
