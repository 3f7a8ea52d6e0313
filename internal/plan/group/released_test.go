package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestReleaseOf(t *testing.T) {
	deleted := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: deleted.Add(d)} }
	for name, tc := range map[string]struct {
		edit  func(*v1alpha1.MachineStatus)
		drain time.Duration // -1 for none
		none  bool
	}{
		"AMachineWithoutANodeIsNotReported":        {edit: func(s *v1alpha1.MachineStatus) { s.NodeRef = nil }, none: true},
		"ADrainCountsFromItsStart":                 {edit: func(s *v1alpha1.MachineStatus) { s.Drain = &v1alpha1.DrainStatus{StartTime: *after(10 * time.Second)} }, drain: 50 * time.Second},
		"ADrainWithoutAStatusCountsFromDeletion":   {edit: func(*v1alpha1.MachineStatus) {}, drain: time.Minute},
		"ANodeThatWasGoneWasNotDrained":            {edit: func(s *v1alpha1.MachineStatus) { s.NodeGoneSince = after(-time.Hour) }, drain: -1},
		"WithoutAVMTheMachineIsGoneWithItsNode":    {edit: func(s *v1alpha1.MachineStatus) { s.Deletion.NodeDeletedTime = nil }, drain: 5 * time.Minute},
		"ADrainThatStartedAfterItsEndTookNoTime":   {edit: func(s *v1alpha1.MachineStatus) { s.Drain = &v1alpha1.DrainStatus{StartTime: *after(time.Hour)} }, drain: 0},
		"ADeletionThatWasNeverReportedCountsToNow": {edit: func(s *v1alpha1.MachineStatus) { s.Deletion = nil }, drain: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", DeletionTimestamp: after(0)}}
			m.Status.NodeRef = &v1alpha1.NodeReference{Name: "n"}
			m.Status.Deletion = &v1alpha1.DeletionStatus{Stage: v1alpha1.DeletionDeletingVM, NodeDeletedTime: after(time.Minute)}
			tc.edit(&m.Status)
			r, counts := ReleaseOf(m, deleted.Add(5*time.Minute))
			if counts == tc.none {
				t.Fatalf("counts %t", counts)
			}
			if tc.none {
				return
			}
			want := v1alpha1.ReleasedMachine{Name: "m", Node: "n", DeletionTime: *after(0)}
			if tc.drain >= 0 {
				want.DrainDuration = &metav1.Duration{Duration: tc.drain}
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAStatusHasTheLastReleasedMachines(t *testing.T) {
	machines := func(from, to int) (out []v1alpha1.ReleasedMachine) {
		for i := from; i < to; i++ {
			out = append(out, v1alpha1.ReleasedMachine{Name: fmt.Sprint(i)})
		}
		return out
	}
	g := &v1alpha1.MachineGroup{Status: v1alpha1.MachineGroupStatus{Released: machines(0, 40)}}
	is := Status(g, Plan{}, Outcome{Released: machines(30, 60)}).Released
	if diff := cmp.Diff(machines(10, 60), is); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
