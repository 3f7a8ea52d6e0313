package machine

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// discarding is a pipeline that keeps the VM resource, has its deletion requested, and records the refusal of its instance type. If there
// is no VM resource, it composes one.
func discarding(t *testing.T, uid types.UID) func(context.Context, *fnRequest) (*fnResponse, error) {
	t.Helper()
	return func(_ context.Context, req *fnRequest) (*fnResponse, error) {
		resource := desiredVM(machineIn(t, req), "small")
		metadata := resource["metadata"].(map[string]any)
		metadata["name"], metadata["finalizers"] = "v", []any{v1alpha1.FinalizerDrain, plan.FinalizerManaged}
		a := answered{vm: plan.VM{State: plan.VMCreating, Discard: uid}, resources: map[string]map[string]any{v1alpha1.ResourceVM: resource}}
		a.status.InstanceType = &v1alpha1.InstanceTypeStatus{Round: 1, Refused: []v1alpha1.RefusedInstanceType{{Name: "a", ErrorCode: "CapacityExhausted", Round: 1, VMUID: uid}}}
		return answer(t, req, a), nil
	}
}

// withoutVM is a Machine that was requested, and never had a VM.
func withoutVM() *v1alpha1.Machine {
	m := aMachine(false, v1alpha1.FinalizerTerminator)
	m.Spec.ProviderID, m.Status.ProviderID, m.Status.NodeRef = nil, "", nil
	return m
}

// refusedVM has the finalizers of Drover and of its provider.
func refusedVM() *unstructured.Unstructured {
	v := aVM()
	v.SetUID("uid-refused")
	v.SetFinalizers([]string{v1alpha1.FinalizerDrain, plan.FinalizerManaged})
	return v
}

func TestARefusedVMResourceIsDeletedAfterTheRefusalIsRecorded(t *testing.T) {
	w := newWorld(t, withoutVM(), aClass(), refusedVM(), revision("machine-cloud", 1))
	w.script = discarding(t, "")
	w.step()
	w.script = discarding(t, "uid-refused")
	writes := w.step()
	status, deletion := slices.Index(writes, "patch Machine/status"), slices.Index(writes, "delete Server")
	if status < 0 || deletion < status {
		t.Fatalf("writes: %v", writes)
	}
	if v := w.vm(); v.GetDeletionTimestamp() == nil || isHeldByDrain(v) || !slices.Contains(v.GetFinalizers(), plan.FinalizerManaged) {
		t.Errorf("the VM resource is deleted at %v and has the finalizers %v", v.GetDeletionTimestamp(), v.GetFinalizers())
	}
	if again := w.step(); slices.Contains(again, "delete Server") || slices.Contains(again, "apply Server") {
		t.Errorf("while it is being deleted: %v", again)
	}
	w.gone(w.vm())
	w.restart()
	w.step()
	if v := w.vm(); v.GetUID() == "uid-refused" || v.GetDeletionTimestamp() != nil {
		t.Errorf("the next VM resource has the UID %s", v.GetUID())
	}
}

// TestARefusedVMResourceThatIsStillHeldIsReleased after a crash between the deletion and the release.
func TestARefusedVMResourceThatIsStillHeldIsReleased(t *testing.T) {
	v := refusedVM()
	now := metav1.Now()
	v.SetDeletionTimestamp(&now)
	w := newWorld(t, withoutVM(), aClass(), v, revision("machine-cloud", 1))
	w.script = discarding(t, "uid-refused")
	w.step()
	if v := w.vm(); isHeldByDrain(v) || !slices.Contains(v.GetFinalizers(), plan.FinalizerManaged) {
		t.Errorf("finalizers %v", v.GetFinalizers())
	}
}

func TestWhichVMResourcesAreNotDiscarded(t *testing.T) {
	for name, tc := range map[string]struct {
		discard types.UID
		prepare func(*world)
		fails   bool
	}{
		"AnotherOne":            {discard: "uid-other"},
		"OneThatNobodyDiscards": {},
		"OneWhoseRefusalIsRefused": {discard: "uid-refused", fails: true, prepare: func(w *world) {
			w.refuse = func(write string) error {
				if write == "patch Machine/status" {
					return errors.New("no")
				}
				return nil
			}
		}},
		// The provider may have begun another creation since.
		"OneThatChangedSince": {discard: "uid-refused", prepare: func(w *world) {
			w.refuse = func(write string) error {
				if write != "patch Machine/status" {
					return nil
				}
				w.refuse = nil
				v := w.vm()
				annotate(v, "crossplane.io/external-create-pending", "2030-01-01T00:00:00Z")
				w.update(v)
				return nil
			}
		}},
		"OneOfAMachineThatIsBeingDeletedByNow": {discard: "uid-refused", prepare: func(w *world) {
			w.stale = w.machine()
			m := w.machine()
			if err := w.client.Delete(w.t.Context(), m); err != nil {
				w.t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withoutVM(), aClass(), refusedVM(), revision("machine-cloud", 1))
			w.script = discarding(t, "")
			w.step()
			w.script = discarding(t, tc.discard)
			if tc.prepare != nil {
				tc.prepare(w)
			}
			if err := w.reconcile(); (err != nil) != tc.fails {
				t.Errorf("the reconcile returns %v", err)
			}
			if v := w.vm(); v.GetDeletionTimestamp() != nil || !isHeldByDrain(v) {
				t.Errorf("the VM resource is deleted at %v and has the finalizers %v", v.GetDeletionTimestamp(), v.GetFinalizers())
			}
		})
	}
}
