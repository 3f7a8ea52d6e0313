package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/internal/pipeline"
)

var inventoryKind = schema.GroupVersionKind{Group: "aws.drover.dev", Version: "v1alpha1", Kind: "VirtualMachineInventory"}

const confirmedAt = "2030-01-01T12:05:00Z"

func missing(vm, machine, confirmed string) map[string]any {
	out := map[string]any{"externalName": vm, "namespace": "team", "name": vm, "machine": machine, "firstMissed": "2030-01-01T12:00:00Z"}
	if confirmed != "" {
		out["confirmedAt"] = confirmed
	}
	return out
}

func stopped(vm, machine, confirmed string) map[string]any {
	out := missing(vm, machine, confirmed)
	out["firstSeen"], out["state"], out["text"] = out["firstMissed"], "Stopped", "instance state stopped"
	delete(out, "firstMissed")
	return out
}

// list is an inventory of the operators whose last read of the cloud succeeded.
func list(atProvider map[string]any, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{"type": "Synced", "status": "True", "observedGeneration": int64(1)}},
		"atProvider": atProvider,
	}}}
	u.SetGroupVersionKind(inventoryKind)
	u.SetNamespace("crossplane-system")
	u.SetName("aws-1")
	u.SetGeneration(1)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "machine.drover.dev/v1alpha1", Kind: "OrphanCollector", Name: "aws", Controller: ptr.To(true)}})
	for _, c := range change {
		c(u)
	}
	return u
}

func synced(status string, generation int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.Object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Synced", "status": status, "observedGeneration": generation}}
	}
}

func inventoryOwnedBy(refs ...metav1.OwnerReference) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetOwnerReferences(refs) }
}

func TestWhatAnInventoryReportsOfAMachine(t *testing.T) {
	one := map[string]any{"missing": []any{missing("i-1", "m", confirmedAt)}}
	cases := map[string]struct {
		inventory *unstructured.Unstructured
		vm        string
		want      string
	}{
		"AVMThatIsMissing":                   {list(one), "i-1", "Missing"},
		"AVMThatIsStopped":                   {list(map[string]any{"states": []any{stopped("i-1", "m", confirmedAt)}}), "i-1", "Stopped"},
		"NothingThatIsNotConfirmed":          {list(map[string]any{"missing": []any{missing("i-1", "m", "")}, "states": []any{stopped("i-1", "m", "")}}), "i-1", ""},
		"NothingOfAnotherVM":                 {list(one), "i-2", ""},
		"NothingOfAnotherMachine":            {list(map[string]any{"missing": []any{missing("i-1", "other", confirmedAt)}}), "i-1", ""},
		"NothingOfAVMWithoutAMachine":        {list(map[string]any{"missing": []any{missing("i-1", "", confirmedAt)}}), "i-1", ""},
		"NothingInTheNamespaceOfATeam":       {list(one, func(u *unstructured.Unstructured) { u.SetNamespace("team") }), "i-1", ""},
		"NothingWithoutACollector":           {list(one, inventoryOwnedBy()), "i-1", ""},
		"NothingOfAnOwnerOfAnotherKind":      {list(one, inventoryOwnedBy(metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "OrphanCollector", Name: "x", Controller: ptr.To(true)})), "i-1", ""},
		"NothingOfAnOwnerThatDoesNotControl": {list(one, inventoryOwnedBy(metav1.OwnerReference{APIVersion: "machine.drover.dev/v1alpha1", Kind: "OrphanCollector", Name: "x"})), "i-1", ""},
		"NothingAfterALookThatFailed":        {list(one, synced("False", 1)), "i-1", ""},
		"NothingOfWhatWasAskedBefore":        {list(one, synced("True", 0), func(u *unstructured.Unstructured) { synced("True", 1)(u); u.SetGeneration(2) }), "i-1", ""},
		"NothingOfOneThatIsBeingDeleted":     {list(one, func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(ptr.To(metav1.Now())) }), "i-1", ""},
		"NothingThatCannotBeDecoded":         {list(map[string]any{"missing": "all"}), "i-1", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := newInventories(func(schema.GroupVersionKind) bool { return false })
			woken(t, func(q queue) { i.handler(inventoryKind).Create(t.Context(), created{Object: tc.inventory}, q) })
			vm := &unstructured.Unstructured{}
			vm.SetAnnotations(map[string]string{"crossplane.io/external-name": tc.vm})
			got := ""
			if r := i.report(inventoryKind, types.NamespacedName{Namespace: "team", Name: "m"}, vm); r != nil {
				got = r.State
			}
			if got != tc.want {
				t.Errorf("reports %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnInventoryWakesOnlyMachinesWhoseReportChanged(t *testing.T) {
	i := newInventories(func(schema.GroupVersionKind) bool { return false })
	h := i.handler(inventoryKind)
	update := func(u *unstructured.Unstructured) []string {
		return woken(t, func(q queue) { h.Update(t.Context(), updated{ObjectOld: u, ObjectNew: u}, q) })
	}
	for n, step := range []struct {
		now  map[string]any
		want string
	}{
		{map[string]any{"claimedCount": int64(900), "missing": []any{missing("i-1", "a", "")}}, ""},
		{map[string]any{"claimedCount": int64(901), "missing": []any{missing("i-1", "a", confirmedAt)}}, "a"},
		{map[string]any{"claimedCount": int64(902), "missing": []any{missing("i-1", "a", confirmedAt)}}, ""},
		{map[string]any{"missing": []any{missing("i-1", "a", confirmedAt)}, "states": []any{stopped("i-2", "b", confirmedAt)}}, "b"},
		{map[string]any{}, "a b"},
	} {
		if got := strings.Join(update(list(step.now)), " "); got != step.want {
			t.Errorf("update %d wakes %q, want %q", n, got, step.want)
		}
	}
	update(list(map[string]any{"missing": []any{missing("i-1", "a", confirmedAt)}}))
	if got := woken(t, func(q queue) { h.Delete(t.Context(), removed{Object: list(nil)}, q) }); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the deletion wakes %v", got)
	}
}

func TestAKindOfInventoriesIsWatchedOnceItIsThere(t *testing.T) {
	there, started := false, 0
	i := newInventories(func(schema.GroupVersionKind) bool { return there })
	i.start = func(schema.GroupVersionKind, handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) error {
		if started++; started == 1 {
			return fmt.Errorf("the cache is not there yet")
		}
		return nil
	}
	report := func() { i.report(inventoryKind, types.NamespacedName{}, &unstructured.Unstructured{}) }
	for range 3 {
		report()
	}
	i.retry()
	if started != 0 {
		t.Fatal("a kind that is not there is watched")
	}
	there = true
	report()
	if started != 0 {
		t.Error("a reconcile looks for the kind again")
	}
	for range 3 {
		i.retry()
	}
	if started != 2 {
		t.Errorf("%d starts, want one that fails and one that does not", started)
	}
}

func TestTheKindOfInventoriesIsInTheBinding(t *testing.T) {
	step := func(input map[string]any) []pipeline.Step {
		s, err := structpb.NewStruct(input)
		if err != nil {
			t.Fatal(err)
		}
		return []pipeline.Step{{Input: s}}
	}
	of := func(kind string) map[string]any {
		return map[string]any{"kind": kind, "inventory": map[string]any{"apiVersion": "aws.drover.dev/v1alpha1", "kind": "VirtualMachineInventory"}}
	}
	if got := inventoryKindOf(step(of("Infrastructure"))); got != inventoryKind {
		t.Errorf("%s", got)
	}
	for _, input := range []map[string]any{
		of("Lifecycle"), {"kind": "Infrastructure"},
		{"kind": "Infrastructure", "inventory": map[string]any{"apiVersion": "v1", "kind": "Secret"}},
	} {
		if got := inventoryKindOf(step(input)); !got.Empty() {
			t.Errorf("%v has %s", input, got)
		}
	}
}
