package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Describe returns the state of a fleet, for the message of a failed test.
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
		for _, o := range l.Items {
			status, _ := json.Marshal(o.Object["status"])
			fmt.Fprintf(b, "%s %s deleted=%v finalizers=%v\n  %s\n", gvk.Kind, o.GetName(), o.GetDeletionTimestamp(), o.GetFinalizers(), status)
		}
	}
	events := &corev1.EventList{}
	if err := f.Client.List(ctx, events, client.InNamespace(f.Namespace)); err == nil {
		for _, e := range events.Items {
			if e.Type == corev1.EventTypeWarning {
				fmt.Fprintf(b, "Warning %s/%s %s: %s (%d)\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message, e.Count)
			}
		}
	}
	return b.String()
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
