package machine

import (
	"context"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/stored"
)

const tooLong = `spec.creationTimeout: "9999999h": time: invalid duration "9999999h"`

func TestAMachineThatCannotBeDecodedIsReportedAndKeepsItsVM(t *testing.T) {
	w := newWorld(t, withNode(aMachine(false, v1alpha1.FinalizerTerminator)), aVM())
	w.join(itsNode())
	w.undecoded = tooLong
	w.script = func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		t.Error("the pipeline ran: it decides by the default of the field")
		return &fnv1.RunFunctionResponse{}, nil
	}
	vm := w.vm()
	if got := w.step(); !slices.Equal(got, []string{"patch Machine/status"}) {
		t.Errorf("writes %v", got)
	}
	if diff := cmp.Diff(vm, w.vm()); diff != "" {
		t.Errorf("the VM resource changed: %s", diff)
	}
	c := meta.FindStatusCondition(w.machine().Status.Conditions, v1alpha1.ConditionValid)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNotDecodable || !strings.Contains(c.Message, tooLong) {
		t.Errorf("condition %+v", c)
	}
	if got := w.events.of(v1alpha1.ReasonNotDecodable); len(got) != 1 {
		t.Errorf("events %v", w.events.all)
	}
}

func TestANewMachineThatCannotBeDecodedGetsTheFinalizer(t *testing.T) {
	w := newWorld(t, aMachine(false))
	w.undecoded = tooLong
	w.step()
	if !w.isHeld() {
		t.Error("its VM would outlive it")
	}
}

// TestAMachineThatCannotBeDecodedIsDeletedAsAnyOther compares the writes of two deletions.
func TestAMachineThatCannotBeDecodedIsDeletedAsAnyOther(t *testing.T) {
	var writes [][]string
	for _, undecoded := range []string{"", tooLong} {
		w := newWorld(t, dying(), aVM())
		w.undecoded = stored.Undecoded(undecoded)
		w.podsStay()
		w.join(itsNode(), nodetest.PodOn("a"))
		var all []string
		for i := range 6 {
			all = append(all, w.step()...)
			if i == 1 {
				w.podGone("a")
			}
		}
		if w.hasNode(itsNode().GetName()) || w.isVMHeld() {
			t.Errorf("fields %q: the Node is still there, or the VM is still held", undecoded)
		}
		writes = append(writes, all)
	}
	if diff := cmp.Diff(writes[0], writes[1]); diff != "" {
		t.Error(diff)
	}
}
