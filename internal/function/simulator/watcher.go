package simulator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A watcher asserts, at every write, that a rollout stays within its bounds.
type watcher struct {
	// Scaling means that a user changed replicas and that it has not been settled
	// since: bounds are about rollouts.
	Scaling bool
	// Violations that were found.
	Violations []string

	// losses of available Machines that nobody decided. A rollout cannot know of
	// them at once.
	losses int
}

// Settled forgets what was before.
func (w *watcher) Settled() { w.Scaling, w.losses = false, 0 }

func (w *watcher) violated(format string, args ...any) {
	w.Violations = append(w.Violations, fmt.Sprintf(format, args...))
}

func (w *watcher) onLoss(c *Cluster, m *machinev1alpha1.Machine) {
	if c.Available(m) {
		w.losses++
	}
}

// onCreate asserts that there are at most replicas + maxSurge Machines.
func (w *watcher) onCreate(c *Cluster, created *machinev1alpha1.Machine) {
	if w.Scaling {
		return
	}
	total := 1
	for _, m := range c.Machines() {
		if m.DeletionTimestamp == nil || m.Status.Phase != machinev1alpha1.MachineFailed {
			total++
		}
	}
	replicas, surge, _ := bounds(c.Deployment())
	if total > replicas+surge {
		w.violated("creation of %s: there are %d Machines, of replicas %d + surge %d", created.Name, total, replicas, surge)
	}
}

// onDelete asserts that no available Machine is given up when at most replicas -
// maxUnavailable are.
func (w *watcher) onDelete(c *Cluster, deleted *machinev1alpha1.Machine) {
	if w.Scaling || deleted.Status.Phase != machinev1alpha1.MachineRunning {
		return
	}
	left := 0
	for _, m := range c.Machines() {
		if m.Name != deleted.Name && c.Available(m) {
			left++
		}
	}
	replicas, _, unavailable := bounds(c.Deployment())
	if left+w.losses < replicas-unavailable {
		w.violated("deletion of %s: %d Machines are left available, of replicas %d - unavailable %d", deleted.Name, left, replicas, unavailable)
	}
}

func bounds(d *machinev1alpha1.MachineDeployment) (replicas, surge, unavailable int) {
	replicas = int(d.Spec.Replicas)
	r := d.Spec.Strategy.RollingUpdate
	surge, _ = intstr.GetScaledValueFromIntOrPercent(r.MaxSurge, replicas, true)
	unavailable, _ = intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return replicas, surge, unavailable
}
