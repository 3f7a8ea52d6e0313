package group

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// MaxReleased is how many Machines that are gone a group records. A set lists fewer, but many Machines may be
// gone before it observes the group again.
const MaxReleased = 50

// ReleaseOf returns the record of a Machine that is gone since a time, by its last state. It reports false for
// a Machine that never had a Node.
func ReleaseOf(m *v1alpha1.Machine, gone time.Time) (v1alpha1.ReleasedMachine, bool) {
	if m.Status.NodeRef == nil || m.DeletionTimestamp == nil {
		return v1alpha1.ReleasedMachine{}, false
	}
	return v1alpha1.ReleasedMachine{
		Name: m.Name, Node: m.Status.NodeRef.Name, DeletionTime: *m.DeletionTimestamp, DrainDuration: drained(m, gone),
	}, true
}

// drained returns how long the Node of a Machine was drained, in whole seconds, nil if there was nothing to
// drain. A drain whose only stage took no time has no status of its own, and counts from the deletion. If
// there was no VM to delete either, the Machine was gone with its Node.
func drained(m *v1alpha1.Machine, gone time.Time) *metav1.Duration {
	if m.Status.NodeGoneSince != nil {
		return nil
	}
	start, end := m.DeletionTimestamp.Time, gone
	if m.Status.Drain != nil {
		start = m.Status.Drain.StartTime.Time
	}
	if d := m.Status.Deletion; d != nil && d.NodeDeletedTime != nil {
		end = d.NodeDeletedTime.Time
	}
	return &metav1.Duration{Duration: max(0, end.Sub(start)).Truncate(time.Second)}
}

// Unreported returns the Machines that are gone and not among those that a status reports.
func Unreported(gone, reported []v1alpha1.ReleasedMachine) []v1alpha1.ReleasedMachine {
	return slices.DeleteFunc(slices.Clone(gone), func(r v1alpha1.ReleasedMachine) bool {
		return slices.ContainsFunc(reported, isRelease(r.Name))
	})
}

// released returns the last Machines that are gone, each of them once.
func released(was, more []v1alpha1.ReleasedMachine) []v1alpha1.ReleasedMachine {
	out := slices.Clone(was)
	for _, r := range more {
		if !slices.ContainsFunc(out, isRelease(r.Name)) {
			out = append(out, r)
		}
	}
	return out[max(0, len(out)-MaxReleased):]
}

func isRelease(name string) func(v1alpha1.ReleasedMachine) bool {
	return func(r v1alpha1.ReleasedMachine) bool { return r.Name == name }
}
