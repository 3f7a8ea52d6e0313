// Package machinegroup holds what the function that writes MachineGroups and the
// controller that carries them out must agree on.
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
)

// TellEvery is how often a set is told of its Machines, by the digest, when many change. One
// that sees them otherwise than it was told looks again after that time.
const TellEvery = 3 * time.Second

// Facts of a Machine that its MachineSet may decide by: what it is made from, what
// somebody said of it, and how it is. What follows from its template, and what only
// tells people something, is left out, so that it wakes nobody.
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
	f.Status.ResourceRefs, f.Status.CompositionRevision, f.Status.NodeGoneSince = nil, "", nil
	f.Status.ObservedGeneration, f.Status.Identity = 0, nil
	if op := f.Status.LastOperation; op != nil {
		f.Status.LastOperation = &v1alpha1.LastOperation{ErrorCode: op.ErrorCode}
	}
	return f
}

// problem of a Machine for which no VM can be created, without the words, which may change.
func problem(m *v1alpha1.Machine) []metav1.Condition {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValid)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return []metav1.Condition{{Type: c.Type, Status: c.Status, Reason: c.Reason}}
}

// Digest of what a MachineSet of the UID sees of Machines, in any order: the facts of its
// own and of those that nobody controls, and of others whose they are. Of those that are
// not its own it does not see what is being deleted.
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
