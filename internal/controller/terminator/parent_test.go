package terminator

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

func TestParentsStayUntilTheLastChildIsGone(t *testing.T) {
	at := metav1.Unix(50, 0)
	gvk := v1alpha1.MachineSetGroupVersionKind
	set := &v1alpha1.MachineSet{}
	set.SetNamespace("ns")
	set.SetName("set")
	set.SetUID("uid-set")
	set.SetFinalizers([]string{v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents, "other/one"})
	set.SetDeletionTimestamp(&at)
	child := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid-m"}}
	child.Labels = map[string]string{v1alpha1.LabelSet: "set"}
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: "set", UID: "uid-set"}}

	for name, tc := range map[string]struct {
		cached int
		live   []client.Object
		held   bool
	}{
		"AChildInTheCacheKeepsIt":        {cached: 1, held: true},
		"AChildThatTheCacheLacksKeepsIt": {live: []client.Object{child}, held: true},
		"WithoutChildrenItGoes":          {},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.MachineSet{}).WithObjects(append(tc.live, set.DeepCopy())...).Build()
			r := &parents{gvk: gvk, child: v1alpha1.MachineGroupVersionKind, label: v1alpha1.LabelSet, client: c, live: c, views: c,
				children: func(context.Context, client.Object) (int, error) { return tc.cached, nil },
				reporter: newReporter(c, sets{})}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "set"}}); err != nil {
				t.Fatal(err)
			}
			got := finalizer.NewMetadata(gvk)
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "set"}, got); err != nil {
				t.Fatal(err)
			}
			if held := slices.Contains(got.GetFinalizers(), v1alpha1.FinalizerTerminator); held != tc.held {
				t.Errorf("held %v, want %v", held, tc.held)
			}
		})
	}
}
