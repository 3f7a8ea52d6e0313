package simulator

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A watcher asserts, at every write, that a rollout stays within its bounds.
type watcher struct {
	// most and least are the bounds of all that a user wanted since it was settled:
	// while replicas changes, each of them may still be acted on.
	most, least int
	// Scaled is how often a user changed replicas since then. Who scales down and up
	// again outside of a rollout need not wait for what is still terminating.
	Scaled int
	// Superseded means that a user changed what is wanted before it was settled: a
	// Machine may then go that is of the template that is wanted now.
	Superseded bool
	// Rolling means that a user asked to replace Machines of the same template.
	Rolling bool
	// Violations that were found.
	Violations []string

	replacements

	// losses of available Machines that nobody decided. A rollout cannot know of
	// them at once.
	losses int
	// taken Machines were deleted by a user, who wants others at once.
	taken map[string]bool
	// changed says that a user changed something since it was settled.
	changed bool
}

// Settled forgets what was before.
func (w *watcher) Settled(d *machinev1alpha1.MachineDeployment) {
	*w = watcher{Violations: w.Violations, replacements: replacements{started: w.started, recovered: map[string]bool{}}, taken: map[string]bool{}}
	w.most, w.least = bounds(d)
	w.budget = budgetOf(d)
}

// onUpdate is told that a user changed the MachineDeployment.
func (w *watcher) onUpdate(before, now *machinev1alpha1.MachineDeployment) {
	w.Superseded, w.changed = w.changed, true
	if before.Spec.Replicas != now.Spec.Replicas {
		w.Scaled++
	}
	most, least := bounds(now)
	w.most, w.least = max(w.most, most), min(w.least, least)
	w.budget = max(w.budget, budgetOf(now))
}

func (w *watcher) violated(format string, args ...any) {
	w.Violations = append(w.Violations, fmt.Sprintf(format, args...))
}

func (w *watcher) onLoss(c *Cluster, m *machinev1alpha1.Machine) {
	if c.Available(m) {
		w.losses++
	}
}

// onCreate asserts that there are at most replicas + maxSurge Machines, and, where
// they are recreated, none of another template.
func (w *watcher) onCreate(c *Cluster, created *machinev1alpha1.Machine) {
	w.fill(created)
	d := c.Deployment()
	onDelete := d.Spec.Strategy.Type == machinev1alpha1.OnDelete
	total, others := 1, 0
	for _, m := range c.Machines() {
		// What failed is replaced at once, and so is, in place, what was seen without
		// a VM.
		replaced := m.Status.Phase == machinev1alpha1.MachineFailed || m.Status.ReplaceRequested || w.recovered[m.Name] || c.inPlace() && m.Status.NodeRef == nil
		if w.taken[m.Name] {
			continue
		}
		// Where another set replaces what failed in this one, it is enough that its end
		// is written down.
		going := m.DeletionTimestamp != nil || onDelete && replaced && c.isDropping(m)
		if !going || w.Scaled < 2 && !onDelete && !replaced {
			total++
		}
		if kindOf(m.Spec) != kindOf(created.Spec) {
			others++
		}
	}
	if d.Spec.Strategy.Type == machinev1alpha1.Recreate && others > 0 && !w.Superseded {
		w.violated("creation of %s: there are still %d Machines of another kind than %v", created.Name, others, kindOf(created.Spec))
	}
	// Who creates first has as many more as replacements may be in flight.
	most := w.most
	if d.Spec.Remediation.Order == machinev1alpha1.CreateFirst {
		most += w.budget
	}
	if total > most {
		w.violated("creation of %s: there are %d Machines, of at most %d", created.Name, total, most)
	}
}

// isDropping says whether the set of a Machine has written down that it goes.
func (c *Cluster) isDropping(m *machinev1alpha1.Machine) bool {
	s, ok := c.sets.get(metav1.GetControllerOf(m).Name)
	return ok && slices.Contains(s.object.Status.Dropping, m.Name)
}

// onDelete asserts that no available Machine is given up when at most replicas -
// maxUnavailable are, or that is of the template that is wanted, or, where users
// delete, at all.
func (w *watcher) onDelete(c *Cluster, deleted *machinev1alpha1.Machine) {
	if deleted.Status.Phase != machinev1alpha1.MachineRunning {
		return
	}
	if deleted.Status.ReplaceRequested || w.recovered[deleted.Name] || c.Deployment().Spec.Remediation.Order == machinev1alpha1.CreateFirst {
		return
	}
	// A surge of updates in place is of new Machines, and one too many in the end.
	if !c.inPlace() && !w.Superseded && w.Scaled == 0 && !w.Rolling && kindOf(deleted.Spec) == c.wanted() {
		w.violated("deletion of %s, which runs and is of the kind %v that is wanted", deleted.Name, kindOf(deleted.Spec))
	}
	if w.Scaled == 0 && c.Deployment().Spec.Strategy.Type == machinev1alpha1.OnDelete {
		w.violated("deletion of %s, which runs, though nobody deleted it", deleted.Name)
	}
	w.onGoing(c, deleted, "deletion")
}

// onDrain asserts the same of a Machine that is updated in place.
func (w *watcher) onDrain(c *Cluster, drained *machinev1alpha1.Machine) {
	w.onGoing(c, drained, "drain")
}

func (w *watcher) onGoing(c *Cluster, going *machinev1alpha1.Machine, how string) {
	left := 0
	for _, m := range c.Machines() {
		if m.Name != going.Name && c.Available(m) {
			left++
		}
	}
	if left+w.losses < w.least {
		w.violated("%s of %s: %d Machines are left available, of at least %d", how, going.Name, left, w.least)
	}
}

// bounds of a rollout, which tests read from the spec on their own: there are at most
// so many Machines, and at least so many available.
func bounds(d *machinev1alpha1.MachineDeployment) (most, least int) {
	replicas := int(d.Spec.Replicas)
	up, down := d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable
	switch d.Spec.Strategy.Type {
	case machinev1alpha1.Recreate:
		return replicas, 0
	case machinev1alpha1.OnDelete:
		return replicas, replicas
	case machinev1alpha1.InPlaceUpdate:
		up, down = d.Spec.Strategy.InPlaceUpdate.MaxSurge, d.Spec.Strategy.InPlaceUpdate.MaxUnavailable
	}
	surge, _ := intstr.GetScaledValueFromIntOrPercent(up, replicas, true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(down, replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return replicas + surge, max(0, replicas-unavailable)
}
