package terminator

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
			// The cache lacks the child.
			views := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.MachineSet{}).WithObjects(set.DeepCopy()).Build()
			r := &parents{gvk: gvk, child: v1alpha1.MachineGroupVersionKind, label: v1alpha1.LabelSet, client: c, live: c, views: views,
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

func TestAConflictIsTriedAgainAndNoError(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	gvk := v1alpha1.MachineSetGroupVersionKind
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "uid-set"}}
	// The cache has the set before Crossplane wrote it.
	views := fake.NewClientBuilder().WithScheme(s).WithObjects(set.DeepCopy()).Build()
	set.Labels = map[string]string{"written": "by Crossplane"}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(set).Build()
	if err := c.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	r := &parents{gvk: gvk, client: c, live: c, views: views, children: func(context.Context, client.Object) (int, error) { return 0, nil }, reporter: newReporter(c, sets{})}
	got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
	if err != nil || got.RequeueAfter != afterConflict {
		t.Errorf("result %+v, %v", got, err)
	}
}

func TestASetThatTheGarbageCollectorDeletesKeepsItsMachines(t *testing.T) {
	deployment := func(uid types.UID) *v1alpha1.MachineDeployment {
		return &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid}}
	}
	gvk := v1alpha1.MachineSetGroupVersionKind
	for name, tc := range map[string]struct {
		change  func(*v1alpha1.MachineSet)
		objects []client.Object
		left    int
		// want is the action: held, deleted (in the foreground), or gone (without its finalizer).
		want string
	}{
		"ItsDeploymentIsGone":             {nil, nil, 1, "held"},
		"ADeploymentOfItsNameWasRestored": {nil, []client.Object{deployment("after")}, 1, "held"},
		"ItsDeploymentExists":             {nil, []client.Object{deployment("before")}, 1, "deleted"},
		"WithoutMachinesItGoes":           {nil, nil, 0, "gone"},
		"AUserConfirmedIt": {func(s *v1alpha1.MachineSet) {
			s.Annotations = map[string]string{v1alpha1.AnnotationConfirmDeletion: "true"}
		}, nil, 1, "deleted"},
		"ASetThatStandsAloneIsDeletedByItsUser":  {func(s *v1alpha1.MachineSet) { s.OwnerReferences = nil }, nil, 1, "deleted"},
		"OwnersOfOtherKindsMayGoBeforeTheirSets": {func(s *v1alpha1.MachineSet) { s.OwnerReferences[0].APIVersion = "example.org/v1" }, nil, 1, "deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "uid-set", Finalizers: []string{v1alpha1.FinalizerTerminator, "other/one"}}}
			set.DeletionTimestamp = ptr.To(metav1.Unix(50, 0))
			set.OwnerReferences = []metav1.OwnerReference{{APIVersion: gvk.GroupVersion().String(), Kind: "MachineDeployment", Name: "web", UID: "before", Controller: ptr.To(true)}}
			if tc.change != nil {
				tc.change(set)
			}
			s := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			deleted := false
			c := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.MachineSet{}).WithObjects(append(tc.objects, set)...).
				WithInterceptorFuncs(interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					deleted = true
					return nil
				}}).Build()
			r := &parents{gvk: gvk, owner: v1alpha1.MachineDeploymentGroupVersionKind, child: v1alpha1.MachineGroupVersionKind, label: v1alpha1.LabelSet, client: c, live: c, views: c,
				children: func(context.Context, client.Object) (int, error) { return tc.left, nil },
				reporter: newReporter(c, sets{})}
			key := types.NamespacedName{Namespace: "ns", Name: "set"}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			got := &v1alpha1.MachineSet{}
			if err := c.Get(t.Context(), key, got); err != nil {
				t.Fatal(err)
			}
			stalled := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionStalled)
			is := "held"
			switch {
			case deleted:
				is = "deleted"
			case !slices.Contains(got.GetFinalizers(), v1alpha1.FinalizerTerminator):
				is = "gone"
			case stalled == nil || stalled.Reason != v1alpha1.ReasonDeletionHeld:
				is = "silent"
			}
			if is != tc.want {
				t.Errorf("it is %s, want %s; conditions %+v", is, tc.want, got.Status.Conditions)
			}
		})
	}
}
