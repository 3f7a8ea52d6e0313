// Package group holds the rules that the function that writes MachineGroups shares with the
// controller that carries them out.
package group

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// NotifyEvery is the shortest interval at which the digest of a group changes when many Machines
// change. A set whose view differs from the digest requeues after this interval.
const NotifyEvery = 3 * time.Second

// Facts returns the fields of a Machine that its MachineSet may decide by: its template, the
// annotations and labels that users set, and its state. Fields that follow from the template, or
// only inform users, are left out: a change of them must not requeue the set.
func Facts(m *v1alpha1.Machine) *v1alpha1.Machine {
	f := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, UID: m.UID, Labels: m.Labels, Annotations: m.Annotations,
			CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		},
		Spec: m.Spec, Status: m.Status,
	}
	f.Spec.Metadata = v1alpha1.NodeMetadata{}
	f.Spec.Taints, f.Spec.StartupTaints = nil, nil
	f.Spec.Drain = v1alpha1.Drain{}
	f.Spec.Crossplane = nil

	f.Status.Conditions = problem(m)
	f.Status.Addresses, f.Status.NodeInfo = nil, nil
	f.Status.Deletion, f.Status.Drain = nil, nil
	f.Status.ResourceRefs, f.Status.CompositionRevision, f.Status.NodeGoneSince, f.Status.NotReadySince = nil, "", nil, nil
	if r := f.Status.Reboot; r != nil {
		f.Status.Reboot = &v1alpha1.RebootStatus{ID: r.ID, State: r.State, Mode: r.Mode, Since: r.Since, StartTime: r.StartTime, ByHealth: r.ByHealth}
		if r.IsDone() {
			f.Status.Reboot.Message = r.Message
		}
	}
	f.Status.ObservedGeneration, f.Status.Identity = 0, nil
	if op := f.Status.LastOperation; op != nil {
		f.Status.LastOperation = &v1alpha1.LastOperation{ErrorCode: op.ErrorCode}
	}
	return f
}

// problem returns Valid=False of a Machine, and the condition that it is stuck by, without the messages, which may
// change.
func problem(m *v1alpha1.Machine) []metav1.Condition {
	var out []metav1.Condition
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValid); c != nil && c.Status == metav1.ConditionFalse {
		out = append(out, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	if s := plan.StuckBy(m); s != nil {
		out = append(out, metav1.Condition{Type: s.Type, Status: s.Status, Reason: s.Reason, LastTransitionTime: s.Since})
	}
	return out
}

// Digest hashes the view that the MachineSet of the UID has of Machines, in any order. It covers
// the facts of the set's own Machines and of Machines without a controller. Of the Machines of
// another controller it covers only the name and the controller. Machines that are not the set's
// own and are being deleted are left out.
func Digest(set types.UID, ms []*v1alpha1.Machine) (string, error) {
	type seen struct {
		By types.UID
		*v1alpha1.Machine
	}
	sorted := slices.SortedFunc(slices.Values(ms), func(a, b *v1alpha1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, m := range sorted {
		s := seen{Machine: Facts(m)}
		if by := metav1.GetControllerOfNoCopy(m); by != nil {
			s.By = by.UID
		}
		if s.By != set && m.DeletionTimestamp != nil {
			continue
		}
		if s.By != set && s.By != "" {
			s.Machine = &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
		}
		if err := enc.Encode(s); err != nil {
			return "", fmt.Errorf("cannot encode Machine %q: %w", m.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
