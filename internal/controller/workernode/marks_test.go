package workernode

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

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
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
	machine := func(uid string, owners []metav1.OwnerReference) *machinev1alpha1.Machine {
		return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: types.UID(uid), OwnerReferences: owners}}
	}
	group := &machinev1alpha1.MachineGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set"}, Spec: machinev1alpha1.MachineGroupSpec{NodeMarks: outdated}}
	ofMachine := ownedBy("Machine", "m", "m")
	cases := map[string]struct {
		owners []metav1.OwnerReference
		there  []client.Object
		want   machinev1alpha1.NodeMarks
	}{
		"OfItsMachinesSet":           {ofMachine, []client.Object{machine("uid-of-m", ownedBy("MachineSet", "set", "s")), group}, outdated},
		"NoneOfAMachineOfItsOwn":     {ofMachine, []client.Object{machine("uid-of-m", nil), group}, machinev1alpha1.NodeMarks{}},
		"NoneOfASetWithoutGroup":     {ofMachine, []client.Object{machine("uid-of-m", ownedBy("MachineSet", "set", "s"))}, machinev1alpha1.NodeMarks{}},
		"NoneOfAnotherOfThatName":    {ofMachine, []client.Object{machine("another", ownedBy("MachineSet", "set", "s")), group}, machinev1alpha1.NodeMarks{}},
		"NoneWhenTheMachineIsGone":   {ofMachine, []client.Object{group}, machinev1alpha1.NodeMarks{}},
		"NoneOfAWorkerNodeOfNobody":  {nil, []client.Object{group}, machinev1alpha1.NodeMarks{}},
		"NoneOfWhatIsOwnedByAnother": {ownedBy("Deployment", "m", "m"), []client.Object{group}, machinev1alpha1.NodeMarks{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := machinev1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			wn := workerNode(func(wn *v1alpha1.WorkerNode) { wn.Namespace, wn.OwnerReferences = "ns", tc.owners })
			got, err := marksOfSet(crfake.NewClientBuilder().WithScheme(s).WithObjects(tc.there...).Build())(t.Context(), wn)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestMarksComeAndGoWithoutAChangeOfTheWorkerNode(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	kube := fake.NewClientset(n)
	x, _ := newExternal(start, kube, n)
	x.marks = func(context.Context, *v1alpha1.WorkerNode) (machinev1alpha1.NodeMarks, error) { return outdated, nil }
	wn := workerNode(func(wn *v1alpha1.WorkerNode) { wn.Spec.ForProvider.Annotations = map[string]string{"held": "on"} })
	if _, err := x.Update(t.Context(), wn); err != nil {
		t.Fatal(err)
	}
	marked, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil || len(marked.Spec.Taints) != 1 || marked.Spec.Taints[0].Key != "old" || marked.Annotations["held"] != "on" {
		t.Fatalf("%v: taints %v, annotations %v; the WorkerNode's own go before", err, marked.Spec.Taints, marked.Annotations)
	}
	if len(wn.Spec.ForProvider.Taints) > 0 {
		t.Errorf("the WorkerNode changed: %v", wn.Spec.ForProvider.Taints)
	}
	x.nodes, x.marks = always(marked), noMarks
	if _, err := x.Update(t.Context(), wn); err != nil {
		t.Fatal(err)
	}
	if clean, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err != nil || len(clean.Spec.Taints) > 0 {
		t.Errorf("%v: taints %v", err, clean.Spec.Taints)
	}
}

func TestMarksThatCannotBeReadChangeNothing(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	n.Spec.Taints = []corev1.Taint{{Key: "old", Effect: "PreferNoSchedule"}}
	n.Annotations = map[string]string{v1alpha1.AnnotationApplied: `{"taints":["old:PreferNoSchedule"]}`}
	kube := fake.NewClientset(n)
	x, _ := newExternal(start, kube, n)
	x.marks = func(context.Context, *v1alpha1.WorkerNode) (machinev1alpha1.NodeMarks, error) {
		return machinev1alpha1.NodeMarks{}, errors.New("no answer")
	}
	if _, err := x.Update(t.Context(), workerNode()); err == nil || len(writes(kube)) > 0 {
		t.Errorf("%v, writes %v", err, writes(kube))
	}
}

func TestOnlyChangedMarksWakeWorkerNodes(t *testing.T) {
	was := &machinev1alpha1.MachineGroup{Spec: machinev1alpha1.MachineGroupSpec{NodeMarks: outdated}}
	same := was.DeepCopy()
	same.Spec.Delete, same.Status.Digest = []string{"m"}, "other"
	changed := &machinev1alpha1.MachineGroup{}
	p := marksChanged()
	if p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: same}) || !p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: changed}) {
		t.Error("it looks at something else")
	}
}
