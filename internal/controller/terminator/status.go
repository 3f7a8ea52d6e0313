package terminator

import (
	"context"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// told remembers what was told last of each Machine, for a cache that has not seen it
// yet: it would be told again, each time with another moment.
type told struct{ last sync.Map } // *word by types.NamespacedName

// A word is a status that was told, and the version of the Machine that has it.
type word struct {
	uid     types.UID
	version string
	status  MachineStatus
}

// recall the status of a Machine that comes from a cache.
func (t *told) recall(m *Machine) {
	key := client.ObjectKeyFromObject(m)
	v, ok := t.last.Load(key)
	if !ok {
		return
	}
	w, _ := v.(*word)
	if older, err := resourceversion.CompareResourceVersion(m.GetResourceVersion(), w.version); err == nil && older < 0 && w.uid == m.GetUID() {
		m.Status = w.status
		return
	}
	t.last.Delete(key)
}

func (t *told) forget(key types.NamespacedName) { t.last.Delete(key) }

// tell in the Machine's status what it waits for, if that is new.
func (t *told) tell(ctx context.Context, c client.Client, m *Machine, op *v1alpha1.LastOperation, d *v1alpha1.DeletionStatus, now metav1.Time) error {
	if op == nil || d == nil || (m.Status.Phase == v1alpha1.MachineTerminating && same(op, m.Status.LastOperation) && equality.Semantic.DeepEqual(d, m.Status.Deletion)) {
		return nil
	}
	if same(op, m.Status.LastOperation) {
		now = *m.Status.LastOperation.LastUpdateTime
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": v1alpha1.MachineTerminating,
		"lastOperation": map[string]any{
			"type": op.Type, "state": op.State, "description": op.Description, "lastUpdateTime": now,
			"errorCode": nil, // of an earlier operation
		},
		"deletion": map[string]any{"stage": d.Stage, "since": d.Since, "hooks": d.Hooks, "pods": d.Pods},
	}})
	if err != nil {
		return err
	}
	patched := metadataOf(v1alpha1.MachineGroupVersionKind, m)
	if err := c.Status().Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	op = op.DeepCopy()
	op.LastUpdateTime = &now
	t.last.Store(client.ObjectKeyFromObject(m), &word{uid: m.GetUID(), version: patched.GetResourceVersion(), status: MachineStatus{
		Phase: v1alpha1.MachineTerminating, LastOperation: op, Deletion: d,
	}})
	return nil
}

func same(a, b *v1alpha1.LastOperation) bool {
	return b != nil && b.LastUpdateTime != nil && a.Type == b.Type && a.State == b.State && a.Description == b.Description && a.ErrorCode == b.ErrorCode
}
