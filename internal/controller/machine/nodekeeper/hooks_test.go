package nodekeeper

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

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
			x, e := newKeeper(start, kube, n)
			x.Now = func() time.Time { return at }
			x.Hooks = func(context.Context, *machinev1alpha1.Machine) ([]string, error) {
				if at.Before(start.Add(tc.releaseAt)) {
					return []string{"backup"}, nil
				}
				return nil, nil
			}
			// The errors of the cluster do not matter while hooks hold.
			x.Nodes = func(context.Context, string, string, string) ([]*corev1.Node, error) {
				if at.Before(start.Add(tc.wantAt)) {
					return nil, &target.Error{Kind: target.Unreachable}
				}
				return []*corev1.Node{n}, nil
			}
			wn := workerNode(deleted, func(wn *Node) {
				wn.Parameters.Drain.HookTimeout.Duration = 30 * time.Minute
				wn.Parameters.Drain.Timeout.Duration = time.Minute
			})
			for ; ; at = at.Add(time.Minute) {
				if gone, err := x.Remove(t.Context(), wn, nil); err != nil || gone {
					t.Fatalf("after %s: gone %v, %v", at.Sub(start), gone, err)
				}
				d := wn.Observation.Drain
				if d.Stage != machinev1alpha1.DrainWaitingForHooks {
					break
				}
				if !slices.Equal(d.Hooks, []string{"backup"}) || len(writes(kube)) > 0 {
					t.Fatalf("drain %+v, writes %v", d, writes(kube))
				}
			}
			if got := at.Sub(start); got != tc.wantAt || e.has(machinev1alpha1.EventHookTimeout) != tc.timedOut {
				t.Errorf("held for %s, events %v", got, *e)
			}
			if d := wn.Observation.Drain; !d.StartTime.Time.Equal(at) || d.Hooks != nil {
				t.Errorf("the drain's timeout does not count from when it began: %+v", d)
			}
		})
	}
}

func TestHooksAreThoseOfTheLiveMachine(t *testing.T) {
	s := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid-m", Annotations: map[string]string{
		machinev1alpha1.HookPreDrain + "b": "", machinev1alpha1.HookPreDrain + "a": "owner", machinev1alpha1.HookPreTerminate + "c": "",
	}}}
	hooks := HooksOf(crfake.NewClientBuilder().WithScheme(s).WithObjects(m).Build())
	cached := func(name, uid string) *machinev1alpha1.Machine {
		return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}}
	}
	for name, tc := range map[string]struct {
		m    *machinev1alpha1.Machine
		want []string
	}{
		"OfAMachineWhoseCacheLags": {cached("m", "uid-m"), []string{"a", "b"}},
		"OfOneThatIsGone":          {cached("gone", "uid-m"), nil},
		"OfAnEarlierOneOfTheName":  {cached("m", "another"), nil},
	} {
		got, err := hooks(t.Context(), tc.m)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
}
