package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
)

func set(uid types.UID) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: uid}}
}

// ofSet is a Machine with a Node that a MachineSet with the UID controls, and that is being
// deleted in the background.
func ofSet(uid types.UID, changes ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := withNode(aMachine(true, v1alpha1.FinalizerTerminator))
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.MachineSetGroupVersionKind.Kind, Name: "s", UID: uid, Controller: ptr.To(true),
	}}
	for _, c := range changes {
		c(m)
	}
	return m
}

func TestWhatTheGarbageCollectorDeletesIsNotDrained(t *testing.T) {
	confirmed := func(m *v1alpha1.Machine) {
		m.Annotations = map[string]string{v1alpha1.AnnotationConfirmDeletion: "true"}
	}
	begun := func(m *v1alpha1.Machine) {
		m.Status.Deletion = &v1alpha1.DeletionStatus{Stage: v1alpha1.DeletionDraining}
	}
	otherKind := func(m *v1alpha1.Machine) { m.OwnerReferences[0].APIVersion = "example.org/v1" }
	cases := map[string]struct {
		objects []client.Object
		held    bool
	}{
		"ASetThatIsGoneDecidedNothing":               {[]client.Object{ofSet("before")}, true},
		"NorDidASetOfItsNameThatWasRestored":         {[]client.Object{ofSet("before"), set("after")}, true},
		"ASetThatExistsDecided":                      {[]client.Object{ofSet("now"), set("now")}, false},
		"AUserMayConfirmIt":                          {[]client.Object{ofSet("before", confirmed)}, false},
		"ADeletionThatBeganGoesOnWithoutItsSet":      {[]client.Object{ofSet("before", begun)}, false},
		"OwnersOfOtherKindsMayGoBeforeTheirMachines": {[]client.Object{ofSet("before", otherKind)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, aVM())...)
			w.podsStay()
			w.join(itsNode(), nodetest.PodOn("a"))
			w.step()
			m := w.machine()
			if got := m.Status.Deletion; got == nil || (got.Stage == v1alpha1.DeletionHeld) != tc.held {
				t.Fatalf("deletion %+v", got)
			}
			cordoned := false
			nodes, err := w.nodes(t.Context(), "", "n", "")
			if err != nil || len(nodes) != 1 {
				t.Fatalf("Nodes %v, error %v", nodes, err)
			}
			cordoned = nodes[0].Spec.Unschedulable
			if cordoned == tc.held || tc.held && (!w.isVMHeld() || len(w.deletes) > 0) {
				t.Errorf("cordoned %t, VM held %t, deleted again %v", cordoned, w.isVMHeld(), w.deletes)
			}
			if !tc.held {
				return
			}
			const want = "Held: MachineSet s does not exist any more, and no user deleted this Machine. Its Node is not drained and its VM is kept. To delete both, set the annotation drover.dev/confirm-deletion=true"
			if op := m.Status.LastOperation; op == nil || op.Description != want {
				t.Errorf("operation %+v", op)
			}
			if got := w.step(); len(got) > 0 {
				t.Errorf("writes %v although nothing changed", got)
			}
			m.Annotations = map[string]string{v1alpha1.AnnotationConfirmDeletion: "true"}
			w.update(m)
			w.step()
			if got := w.machine().Status.Deletion.Stage; got != v1alpha1.DeletionDraining {
				t.Errorf("after the confirmation the stage is %s", got)
			}
		})
	}
}

func TestAMachineWithoutANodeIsNotHeld(t *testing.T) {
	m := ofSet("before", func(m *v1alpha1.Machine) { m.Status.ProviderID, m.Status.NodeRef, m.Spec.ProviderID = "", nil, nil })
	w := newWorld(t, m)
	w.step()
	if w.isHeld() {
		t.Error("it is held, although nothing is left of it")
	}
}

func TestAMachineWhoseVMIsGoneIsNotHeld(t *testing.T) {
	w := newWorld(t, ofSet("before"))
	w.step()
	if w.isHeld() {
		t.Error("it is held, although nothing is left of it")
	}
}

func TestASetThatCannotBeReadIsNotTakenForGone(t *testing.T) {
	w := newWorld(t, ofSet("before"), aVM())
	w.r.live = failingReader{w.client}
	if err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "cannot read MachineSet s") {
		t.Errorf("error %v", err)
	}
	if got := w.machine().Status.Deletion; got != nil {
		t.Errorf("deletion %+v", got)
	}
}

// failingReader fails each get.
type failingReader struct{ client.Reader }

func (failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("the API server does not answer")
}
