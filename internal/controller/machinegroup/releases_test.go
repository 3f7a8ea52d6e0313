package machinegroup

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

// working is a Machine of the set.
func working(name string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.Namespace, m.Name = key.Namespace, name
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.drover.dev/v1alpha1", Kind: "MachineSet", Name: "set", UID: "uid-of-set", Controller: ptr.To(true)}}
	return m
}

// released is a Machine of the set with a Node, in its last state.
func released(name string) *v1alpha1.Machine {
	m := working(name)
	m.DeletionTimestamp = &metav1.Time{Time: time.Unix(100, 0)}
	m.Status.NodeRef = &v1alpha1.NodeReference{Name: "node-of-" + name}
	return m
}

func (w *world) watched(m *v1alpha1.Machine) {
	w.releases.watch().Delete(event.DeleteEvent{Object: m})
}

func TestAMachineThatIsGoneIsReportedWithTheNextStatus(t *testing.T) {
	w := newWorld(t, v1alpha1.MachineGroupSpec{}, working("a"))
	w.settle()
	writes := w.writes.Load()
	if err := w.Client.Delete(t.Context(), working("a")); err != nil {
		t.Fatal(err)
	}
	w.watched(released("a"))
	w.settle()
	if r := w.group().Status.Released; len(r) != 1 || r[0].Name != "a" || r[0].Node != "node-of-a" {
		t.Errorf("released are %+v", r)
	}
	if n := w.writes.Load() - writes; n != 1 {
		t.Errorf("%d writes, want that of the digest alone", n)
	}
	if left := w.releases.of(key); len(left) > 0 {
		t.Errorf("remembered are %v", left)
	}
}

func TestAMachineIsRememberedUntilAStatusHasIt(t *testing.T) {
	w := newWorld(t, v1alpha1.MachineGroupSpec{})
	w.settle()
	w.watched(released("a"))
	w.old = w.group()
	w.old.ResourceVersion = "1" // Another client changed the group.
	w.settle()
	if left := w.releases.of(key); len(left) != 1 {
		t.Fatalf("remembered are %v", left)
	}
	w.old = nil
	w.settle()
	if r := w.group().Status.Released; len(r) != 1 {
		t.Errorf("released are %+v", r)
	}
}

func TestTheMemoryOfMachinesThatAreGoneIsBounded(t *testing.T) {
	w := newWorld(t, v1alpha1.MachineGroupSpec{})
	for i := range 2 * group.MaxReleased {
		w.watched(released(fmt.Sprint(i)))
	}
	if n := len(w.releases.of(key)); n != group.MaxReleased {
		t.Errorf("%d Machines are remembered", n)
	}
	lone := released("lone")
	lone.OwnerReferences = nil
	w.watched(lone)
	if err := w.Client.Delete(t.Context(), w.group()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if len(w.releases.groups) > 0 {
		t.Errorf("remembered are %v", w.releases.groups)
	}
}
