package simulator

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestTheAutoscalersMachineIsDeletedAtAnyMomentOfARollout lets the cluster-autoscaler mark a
// Machine of the new template and lower replicas in the same millisecond, at each moment of a
// rollout. The deployment reads its spec before any set has counted the mark. It must still delete
// that Machine, and no other one of the new template.
func TestTheAutoscalersMachineIsDeletedAtAnyMomentOfARollout(t *testing.T) {
	s := rolling(5, 2, 0)
	cloud := Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second}
	isNew := func(m *machinev1alpha1.Machine) bool { return m.Spec.Version == "v1.1.0" }
	tried := 0
	for moment := time.Duration(0); moment < 10*time.Minute; moment += 13 * time.Second {
		for nth := 0; ; nth++ {
			w := NewWorld(s, cloud)
			if !w.RunUntil(time.Hour, w.Settled) {
				t.Fatalf("is not there after an hour:\n%s", w)
			}
			w.Update(roll)
			if w.RunUntil(moment, w.Settled) {
				break
			}
			var made []*machinev1alpha1.Machine
			for _, m := range running(w.Cluster) {
				if isNew(m) {
					made = append(made, m)
				}
			}
			if nth >= len(made) {
				break
			}
			tried++
			name := made[nth].Name
			w.scaleDown(name)
			if !w.RunUntil(time.Hour, w.Settled) {
				t.Fatalf("after %s: the rollout does not end:\n%s", moment, w)
			}
			left := map[string]bool{}
			for _, m := range w.Machines() {
				left[m.Name] = true
			}
			if left[name] {
				t.Errorf("after %s: %s is marked, and left", moment, name)
			}
			for _, m := range made {
				if m.Name != name && !left[m.Name] {
					t.Errorf("after %s: %s is deleted, which has the new template and is not marked", moment, m.Name)
				}
			}
			if len(w.Violations) > 0 {
				t.Errorf("after %s: %s", moment, w.Violations[0])
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d Machines were marked", tried)
	}
}

// TestTheAutoscalersMachineIsDeletedFromAPoolOfTwoTemplates marks each Machine in turn, in a pool
// that stays in a rollout, and lowers replicas in the same millisecond. That Machine must be
// deleted, and no other.
func TestTheAutoscalersMachineIsDeletedFromAPoolOfTwoTemplates(t *testing.T) {
	onDelete := func(w *World) {
		w.Run(time.Minute)
		for _, m := range running(w.Cluster)[:2] {
			w.DeleteByUser(m.Name)
		}
		w.wake()
	}
	for name, tc := range map[string]struct {
		strategy machinev1alpha1.StrategyType
		// begin the rollout and stop it halfway.
		begin func(*World)
	}{
		"OnDelete": {machinev1alpha1.OnDelete, onDelete},
		"PausedRollingUpdate": {machinev1alpha1.RollingUpdate, func(w *World) {
			w.Run(150 * time.Second)
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true })
		}},
		"PausedRecreate": {machinev1alpha1.Recreate, func(w *World) {
			w.RunUntil(time.Minute, func() bool { return len(w.Sets()) == 2 })
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := rolling(5, 2, 0)
			s.Strategy.Type = tc.strategy
			for nth := 0; ; nth++ {
				w := NewWorld(s, Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
				if !w.RunUntil(time.Hour, w.Settled) {
					t.Fatalf("is not there after an hour:\n%s", w)
				}
				w.Update(roll)
				tc.begin(w)
				w.Run(10 * time.Minute)
				before := running(w.Cluster)
				if len(before) < 5 {
					t.Fatalf("%d Machines run, want 5 at least:\n%s", len(before), w)
				}
				if nth == len(before) {
					break
				}
				w.scaleDown(before[nth].Name)
				w.Run(10 * time.Minute)
				for i, m := range before {
					if _, there := w.machines.last[m.Name]; there == (i == nth) {
						t.Errorf("%s was marked, and %s is there: %t", before[nth].Name, m.Name, there)
					}
				}
				if len(w.Violations) > 0 {
					t.Error(w.Violations[0])
				}
			}
		})
	}
}
