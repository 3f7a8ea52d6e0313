package nodekeeper

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var outdated = machinev1alpha1.NodeMarks{
	Annotations: map[string]string{"held": "off"},
	Taints:      []machinev1alpha1.Taint{{Key: "old", Effect: "PreferNoSchedule"}},
}

func ownedBy(kind, name, uid string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID("uid-of-" + uid), Controller: &yes}}
}

func TestMarksAreThoseOfTheMachineSet(t *testing.T) {
	group := &machinev1alpha1.MachineGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set"}, Spec: machinev1alpha1.MachineGroupSpec{NodeMarks: outdated}}
	cases := map[string]struct {
		owners []metav1.OwnerReference
		there  []client.Object
		want   machinev1alpha1.NodeMarks
	}{
		"OfItsMachinesSet":           {ownedBy("MachineSet", "set", "s"), []client.Object{group}, outdated},
		"NoneOfAMachineOfItsOwn":     {nil, []client.Object{group}, machinev1alpha1.NodeMarks{}},
		"NoneOfASetWithoutGroup":     {ownedBy("MachineSet", "set", "s"), nil, machinev1alpha1.NodeMarks{}},
		"NoneOfWhatIsOwnedByAnother": {ownedBy("Deployment", "set", "s"), []client.Object{group}, machinev1alpha1.NodeMarks{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := machinev1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", OwnerReferences: tc.owners}}
			got, err := MarksOfSet(crfake.NewClientBuilder().WithScheme(s).WithObjects(tc.there...).Build())(t.Context(), m)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestMarksComeAndGoWithoutAChangeOfTheMachine(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	kube := fake.NewClientset(n)
	x, _ := newKeeper(start, kube, n)
	x.Marks = func(context.Context, *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error) {
		return outdated, nil
	}
	wn := workerNode(func(wn *Node) { wn.Parameters.Annotations = map[string]string{"held": "on"} })
	if _, err := x.update(t.Context(), wn); err != nil {
		t.Fatal(err)
	}
	marked, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil || len(marked.Spec.Taints) != 1 || marked.Spec.Taints[0].Key != "old" || marked.Annotations["held"] != "on" {
		t.Fatalf("%v: taints %v, annotations %v; the Machine's own take precedence", err, marked.Spec.Taints, marked.Annotations)
	}
	if len(wn.Parameters.Taints) > 0 {
		t.Errorf("the parameters changed: %v", wn.Parameters.Taints)
	}
	x.Nodes, x.Marks = always(marked), noMarks
	if _, err := x.update(t.Context(), wn); err != nil {
		t.Fatal(err)
	}
	if clean, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err != nil || len(clean.Spec.Taints) > 0 {
		t.Errorf("%v: taints %v", err, clean.Spec.Taints)
	}
}

func TestMarksThatCannotBeReadChangeNothing(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	n.Spec.Taints = []corev1.Taint{{Key: "old", Effect: "PreferNoSchedule"}}
	kube := fake.NewClientset(n)
	x, _ := newKeeper(start, kube, n)
	x.Marks = func(context.Context, *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error) {
		return machinev1alpha1.NodeMarks{}, errors.New("no answer")
	}
	if _, err := x.update(t.Context(), workerNode(func(wn *Node) {
		wn.Status.AppliedToNode = &machinev1alpha1.AppliedToNode{NodeUID: "uid-1", Taints: []string{"old:PreferNoSchedule"}}
	})); err == nil || len(writes(kube)) > 0 {
		t.Errorf("%v, writes %v", err, writes(kube))
	}
}

func TestOnlyChangedMarksWakeMachines(t *testing.T) {
	was := &machinev1alpha1.MachineGroup{Spec: machinev1alpha1.MachineGroupSpec{NodeMarks: outdated}}
	same := was.DeepCopy()
	same.Spec.Delete, same.Status.Digest = []string{"m"}, "other"
	changed := &machinev1alpha1.MachineGroup{}
	type update = event.TypedUpdateEvent[*machinev1alpha1.MachineGroup]
	p := MarksChanged()
	if p.Update(update{ObjectOld: was, ObjectNew: same}) || !p.Update(update{ObjectOld: was, ObjectNew: changed}) {
		t.Error("it looks at something else")
	}
	if p.Create(event.TypedCreateEvent[*machinev1alpha1.MachineGroup]{Object: was}) {
		t.Error("a restart wakes all Machines twice")
	}
	was.Namespace, was.Spec.Machines = "ns", []machinev1alpha1.GroupMember{{Name: "a"}, {Name: "b"}}
	var got []string
	for _, req := range MachinesOfGroup(t.Context(), was) {
		got = append(got, req.String())
	}
	if d := cmp.Diff([]string{"ns/a", "ns/b"}, got); d != "" {
		t.Errorf("woken (-want +got):\n%s", d)
	}
}
