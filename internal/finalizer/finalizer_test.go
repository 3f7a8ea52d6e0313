package finalizer

import (
	"context"
	"slices"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestNextStepOfAnObject(t *testing.T) {
	cases := map[string]struct {
		State
		left bool
		want Step
	}{
		"OneThatLivesIsHeld":                           {State: State{}, left: true, want: Add},
		"OneThatIsHeldIsLeftAlone":                     {State: State{Held: true}, left: true, want: Nothing},
		"ADeletionInTheBackgroundIsMadeAForegroundOne": {State: State{Deleting: true, Held: true}, left: true, want: DeleteAgain},
		"ADeletionInTheForegroundRuns":                 {State: State{Deleting: true, Held: true, Foreground: true}, left: true, want: Nothing},
		"WithNothingLeftItMayGo":                       {State: State{Deleting: true, Held: true, Foreground: true}, want: Remove},
		"WithNothingLeftItIsNotDeletedAgain":           {State: State{Deleting: true, Held: true}, want: Remove},
		"WhatIsDyingUnheldCannotBeHeldAnyMore":         {State: State{Deleting: true}, left: true, want: Nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.Next(tc.left); got != tc.want {
				t.Errorf("step %s, want %s", got, tc.want)
			}
		})
	}
}

// TestTake does each step to a Machine, by its metadata alone.
func TestTake(t *testing.T) {
	gvk := v1alpha1.MachineGroupVersionKind
	machine := func(uid types.UID, finalizers ...string) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: uid, Finalizers: append([]string{"example.org/other"}, finalizers...)}}
	}
	cases := map[string]struct {
		reason string
		there  *v1alpha1.Machine
		stale  bool
		step   Step
		want   []string // finalizers
		fails  bool
	}{
		"Add":         {"Finalizers of others stay.", machine("a"), false, Add, []string{"example.org/other", v1alpha1.FinalizerTerminator}, false},
		"AddToStale":  {"The list is patched as a whole: only on top of what was read.", machine("a"), true, Add, []string{"example.org/other"}, true},
		"Remove":      {"Finalizers of others stay.", machine("a", v1alpha1.FinalizerTerminator), false, Remove, []string{"example.org/other"}, false},
		"RemoveStale": {"As for Add.", machine("a", v1alpha1.FinalizerTerminator), true, Remove, []string{"example.org/other", v1alpha1.FinalizerTerminator}, true},
		"Nothing":     {"Nothing is written.", machine("a"), true, Nothing, []string{"example.org/other"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{}, tc.there)
			m := &v1alpha1.Machine{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(tc.there), m); err != nil {
				t.Fatal(err)
			}
			if tc.stale {
				now := m.DeepCopy()
				now.SetLabels(map[string]string{"a": "b"})
				if err := c.Update(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
			if err := Take(t.Context(), c, gvk, m, tc.step); kerrors.IsConflict(err) != tc.fails || err != nil && !tc.fails {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(tc.there), m); err != nil || !slices.Equal(m.GetFinalizers(), tc.want) {
				t.Errorf("%s\nfinalizers %v, error %v", tc.reason, m.GetFinalizers(), err)
			}
		})
	}
	for _, step := range []Step{Remove, DeleteAgain} {
		if err := Take(t.Context(), newClient(t, interceptor.Funcs{}), gvk, machine("a", v1alpha1.FinalizerTerminator), step); err != nil {
			t.Errorf("%s of an object that is gone: %v", step, err)
		}
	}
}

func TestDeleteAgainIsInTheForegroundAndOfThisObjectAlone(t *testing.T) {
	got := &client.DeleteOptions{}
	c := newClient(t, interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
		got.ApplyOptions(opts)
		return nil
	}})
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "a"}}
	if err := Take(t.Context(), c, v1alpha1.MachineGroupVersionKind, m, DeleteAgain); err != nil {
		t.Fatal(err)
	}
	if got.PropagationPolicy == nil || *got.PropagationPolicy != metav1.DeletePropagationForeground || got.Preconditions == nil || *got.Preconditions.UID != "a" {
		t.Errorf("deleted with %+v", got)
	}
}

func newClient(t *testing.T, funcs interceptor.Funcs, objs ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithInterceptorFuncs(funcs).Build()
}
