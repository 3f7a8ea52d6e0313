package workernode

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

func TestHooksHoldADrainUntilTheyLetGoOrTheTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		releaseAt, wantAt time.Duration // since the deletion
		timedOut          bool
	}{
		"NoHooks":        {releaseAt: 0, wantAt: 0},
		"TheyLetGo":      {releaseAt: 20 * time.Minute, wantAt: 20 * time.Minute},
		"TheyNeverLetGo": {releaseAt: 24 * time.Hour, wantAt: 30 * time.Minute, timedOut: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("n", corev1.ConditionTrue)
			kube := fake.NewClientset(n)
			at := start
			x, e := newExternal(start, kube, n)
			x.now = func() time.Time { return at }
			x.hooks = func(context.Context, *v1alpha1.WorkerNode) ([]string, error) {
				if at.Before(start.Add(tc.releaseAt)) {
					return []string{"backup"}, nil
				}
				return nil, nil
			}
			// What the cluster says does not matter while hooks hold.
			x.nodes = func(context.Context, string) ([]*corev1.Node, error) {
				if at.Before(start.Add(tc.wantAt)) {
					return nil, &target.Error{Kind: target.Unreachable}
				}
				return []*corev1.Node{n}, nil
			}
			wn := workerNode(deleted, func(wn *v1alpha1.WorkerNode) {
				wn.Spec.ForProvider.Drain.HookTimeout.Duration = 30 * time.Minute
				wn.Spec.ForProvider.Drain.Timeout.Duration = time.Minute
			})
			for ; ; at = at.Add(time.Minute) {
				x.held = false
				o, err := x.Observe(t.Context(), wn)
				if err != nil || !o.ResourceExists {
					t.Fatalf("after %s: %+v, %v", at.Sub(start), o, err)
				}
				if _, err := x.Delete(t.Context(), wn); err != nil {
					t.Fatalf("after %s: %v", at.Sub(start), err)
				}
				d := wn.Status.AtProvider.Drain
				if d.Stage != v1alpha1.DrainWaitingForHooks {
					break
				}
				if !slices.Equal(d.Hooks, []string{"backup"}) || len(writes(kube)) > 0 {
					t.Fatalf("drain %+v, writes %v", d, writes(kube))
				}
			}
			if got := at.Sub(start); got != tc.wantAt || e.has(reasonHookTimeout) != tc.timedOut {
				t.Errorf("held for %s, events %v", got, *e)
			}
			if d := wn.Status.AtProvider.Drain; !d.StartTime.Time.Equal(at) || d.Hooks != nil {
				t.Errorf("the drain's timeout does not count from when it began: %+v", d)
			}
		})
	}
}

func TestHooksAreThoseOfTheOwner(t *testing.T) {
	s := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid-m", Annotations: map[string]string{
		machinev1alpha1.HookPreDrain + "b": "", machinev1alpha1.HookPreDrain + "a": "owner", machinev1alpha1.HookPreTerminate + "c": "",
	}}}
	hooks := hooksOfOwner(crfake.NewClientBuilder().WithScheme(s).WithObjects(m).Build())
	yes := true
	owned := func(kind, name, uid string) func(*v1alpha1.WorkerNode) {
		return func(wn *v1alpha1.WorkerNode) {
			wn.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.drover.dev/v1alpha1", Kind: kind, Name: name, UID: "uid-" + "m", Controller: &yes}}
			wn.OwnerReferences[0].UID = m.UID
			if uid != "" {
				wn.OwnerReferences[0].UID = "another"
			}
		}
	}
	for name, tc := range map[string]struct {
		wn   *v1alpha1.WorkerNode
		want []string
	}{
		"OfAMachine":              {workerNode(owned("Machine", "m", "")), []string{"a", "b"}},
		"OfOneThatIsGone":         {workerNode(owned("Machine", "gone", "")), nil},
		"OfAnEarlierOneOfTheName": {workerNode(owned("Machine", "m", "another")), nil},
		"OfSomethingElse":         {workerNode(owned("Thing", "m", "")), nil},
		"OfNobody":                {workerNode(), nil},
	} {
		got, err := hooks(t.Context(), tc.wn)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
}
