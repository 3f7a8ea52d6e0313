package terminator

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// tell in the Machine's status what it waits for, if that is new.
func tell(ctx context.Context, c client.Client, m *Machine, op *v1alpha1.LastOperation, d *v1alpha1.DeletionStatus, now metav1.Time) error {
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
	return client.IgnoreNotFound(c.Status().Patch(ctx, metadataOf(v1alpha1.MachineGroupVersionKind, m), client.RawPatch(types.MergePatchType, patch)))
}

func same(a, b *v1alpha1.LastOperation) bool {
	return b != nil && b.LastUpdateTime != nil && a.Type == b.Type && a.State == b.State && a.Description == b.Description && a.ErrorCode == b.ErrorCode
}
