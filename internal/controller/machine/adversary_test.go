package machine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
)

// An adversary acts on a Machine that is being deleted, on its Node and on its VM: it sets the clock of the kubelet, and
// finalizers and hooks. The Machine of another namespace joined the same cluster.
type adversary struct {
	*world
	rand *rand.Rand
	// status of the Node, and since when Drover has observed no other one but False and Unknown, zero if it has.
	status   corev1.ConditionStatus
	notReady time.Time
}

const (
	adversaryHooks = 10 * time.Minute
	adversaryDrain = 20 * time.Minute
)

var nameOfOther = types.NamespacedName{Namespace: "other", Name: "m"}

func newAdversary(t *testing.T, seed uint64) *adversary {
	m, v := dying(), aVM()
	m.Spec.Drain.Timeout.Duration, m.Spec.Drain.HookTimeout.Duration = adversaryDrain, adversaryHooks
	meta.SetExternalName(v, "vm-1")
	other, otherVM := dying(), aVM()
	other.SetNamespace(nameOfOther.Namespace)
	other.SetUID("uid-other")
	other.Status.NodeRef = &v1alpha1.NodeReference{Name: "other", UID: "uid-of-other"}
	otherVM.SetNamespace(nameOfOther.Namespace)
	refs := owner()
	refs[0].UID = other.GetUID()
	otherVM.SetOwnerReferences(refs)

	a := &adversary{world: newWorld(t, m, v, other, otherVM), rand: rand.New(rand.NewPCG(seed, 1)), status: corev1.ConditionTrue}
	a.budgetsRefuse()
	a.finalizersHold()
	a.podsHaveNodes()
	n := nodetest.New("other", corev1.ConditionTrue)
	n.SetUID("uid-of-other")
	n.SetLabels(map[string]string{clusterv1alpha1.LabelJoinToken: "uid-other"})
	a.join(itsNode(), nodetest.PodOn("a"), n)
	return a
}

// podsHaveNodes has a list of the pods of one Node return no others, which the fake does not do.
func (a *adversary) podsHaveNodes() {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	a.target.PrependReactor("list", "pods", func(call clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := a.target.Tracker().List(pods, corev1.SchemeGroupVersion.WithKind("Pod"), call.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		list := obj.(*corev1.PodList).DeepCopy()
		list.Items = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
			return !call.(clienttesting.ListAction).GetListRestrictions().Fields.Matches(fields.Set{"spec.nodeName": p.Spec.NodeName})
		})
		return true, list, nil
	})
}

// skew returns the error of a clock.
func (a *adversary) skew() time.Duration {
	return time.Duration(a.rand.IntN(48)-24) * time.Hour
}

// act does one thing that a kubelet, or another controller, can do.
func (a *adversary) act() {
	switch a.rand.IntN(6) {
	case 0:
		a.status = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}[a.rand.IntN(3)]
		a.changeNode(func(*corev1.Node) {})
	case 1:
		a.changeNode(func(n *corev1.Node) { n.SetFinalizers([]string{"example.org/hold"}) })
	case 2:
		m := a.machine()
		m.SetAnnotations(map[string]string{v1alpha1.HookPreDrain + "x": "a hook"})
		a.update(m)
	case 3:
		if v, ok := a.find(vmKind, "v"); ok && !slices.Contains(v.GetFinalizers(), "example.org/backup") {
			v.SetFinalizers(append(v.GetFinalizers(), "example.org/backup"))
			a.update(v)
		}
	case 4:
		a.restart()
	case 5:
		a.changeNode(func(*corev1.Node) {}) // The kubelet reports another time.
	}
}

// changeNode writes the Node with the clock of its kubelet.
func (a *adversary) changeNode(change func(*corev1.Node)) {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	obj, err := a.target.Tracker().Get(nodes, "", "n")
	if err != nil {
		return // It is gone.
	}
	n := obj.(*corev1.Node).DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: a.status, LastTransitionTime: metav1.NewTime(a.now.Add(a.skew()))}}
	change(n)
	if err := a.target.Tracker().Update(nodes, n, ""); err != nil {
		a.t.Fatal(err)
	}
}

// round lets time pass, and reconciles both Machines.
func (a *adversary) round() {
	a.now = a.now.Add(time.Duration(1+a.rand.IntN(120)) * time.Second)
	if a.status == corev1.ConditionTrue {
		a.notReady = time.Time{}
	} else if a.notReady.IsZero() {
		a.notReady = a.now
	}
	for _, name := range []types.NamespacedName{nameOfM, nameOfOther} {
		if _, err := a.r.Reconcile(a.t.Context(), reconcile.Request{NamespacedName: name}); err != nil {
			a.t.Fatal(err)
		}
	}
}

// isOtherReleased reports whether the VM of the other Machine may be deleted.
func (a *adversary) isOtherReleased() bool {
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(vmKind)
	if err := a.client.Get(a.t.Context(), client.ObjectKey{Namespace: nameOfOther.Namespace, Name: "v"}, v); err != nil {
		a.t.Fatal(err)
	}
	return !slices.Contains(v.GetFinalizers(), v1alpha1.FinalizerDrain)
}

// TestNeitherClocksNorFinalizersOfOthersVoidABudgetOrHoldAMachine checks that
//   - a pod whose budget refuses its eviction is deleted only when the drain has timed out, or when Drover has observed
//     for 5 minutes that its Node is not Ready;
//   - the VM is released after the timeouts of its hooks and its drain, and a minute;
//   - the Machine of the other namespace waits for nothing of this one;
//   - each wait has a stage and an operation in the status.
func TestNeitherClocksNorFinalizersOfOthersVoidABudgetOrHoldAMachine(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			a := newAdversary(t, seed)
			deleted := a.machine().GetDeletionTimestamp().Time
			deadline := deleted.Add(adversaryHooks + adversaryDrain + nodekeeper.AbandonAfter + 10*time.Minute)
			for i := 0; a.now.Before(deadline); i++ {
				for range a.rand.IntN(3) {
					a.act()
				}
				was := a.deletesPods()
				a.round()
				isDead := !a.notReady.IsZero() && a.now.Sub(a.notReady) >= drain.DeadAfter-time.Second
				if !was && a.deletesPods() && a.now.Before(deleted.Add(adversaryDrain)) && !isDead {
					t.Fatalf("after %s the pod was deleted against its budget: not Ready since %s", a.now.Sub(deleted), a.notReady)
				}
				if i == 3 && !a.isOtherReleased() {
					t.Fatal("the Machine of another namespace waits")
				}
				if s := a.machine().Status; s.Deletion == nil || s.LastOperation == nil || s.LastOperation.Description == "" {
					t.Fatalf("deletion %+v, operation %+v: the wait is not reported", s.Deletion, s.LastOperation)
				}
			}
			if v := a.vm(); slices.Contains(v.GetFinalizers(), v1alpha1.FinalizerDrain) {
				t.Errorf("the VM is still held: %+v, %s", a.machine().Status.Deletion, a.machine().Status.LastOperation.Description)
			}
		})
	}
}
