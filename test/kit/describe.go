package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Limits of a description: the log of a run keeps only the end of a long message.
const (
	mostObjects  = 20
	mostWarnings = 50
)

// Describe returns the state of a fleet, for the message of a failed test: the newest objects of each kind, and the
// last warnings.
func (f Fleet) Describe(ctx context.Context) string {
	ctx = context.WithoutCancel(ctx)
	b := &strings.Builder{}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineDeployment"},
		{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineSet"},
		{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "Machine"},
		{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachine"},
	} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(gvk)
		if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
			fmt.Fprintf(b, "%s: %v\n", gvk.Kind, err)
			continue
		}
		slices.SortStableFunc(l.Items, func(a, b unstructured.Unstructured) int {
			return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
		})
		for _, o := range newest(b, l.Items, mostObjects, gvk.Kind) {
			status, _ := json.Marshal(o.Object["status"])
			fmt.Fprintf(b, "%s %s deleted=%v finalizers=%v\n  %s\n", gvk.Kind, o.GetName(), o.GetDeletionTimestamp(), o.GetFinalizers(), status)
		}
	}
	events := &corev1.EventList{}
	if err := f.Client.List(ctx, events, client.InNamespace(f.Namespace)); err == nil {
		warnings := slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Type != corev1.EventTypeWarning })
		slices.SortStableFunc(warnings, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
		for _, e := range newest(b, warnings, mostWarnings, "Warning") {
			fmt.Fprintf(b, "Warning %s/%s %s: %s (%d)\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message, e.Count)
		}
	}
	return b.String()
}

// newest returns the last items, at most so many, and writes how many it leaves out.
func newest[T any](b *strings.Builder, items []T, most int, what string) []T {
	out := max(0, len(items)-most)
	if out > 0 {
		fmt.Fprintf(b, "%s: %d older are left out\n", what, out)
	}
	return items[out:]
}

func namesIn(l client.ObjectList) []string {
	var out []string
	_ = meta.EachListItem(l, func(o runtime.Object) error {
		c := o.(client.Object)
		out = append(out, fmt.Sprintf("%T %s", o, c.GetName()))
		return nil
	})
	return out
}

func rawJSON(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }
