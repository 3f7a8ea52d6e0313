package simulator

import (
	"slices"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A scaleDown is a reduction of replicas while Machines are marked for deletion.
type scaleDown struct {
	wish *wish
	// fewer is the number by which replicas was lowered, without Machines that were missing at that
	// time, and without an increase that no planner had acted on.
	fewer int
	// marked names the Machines whose mark every planner had observed at that time.
	marked []string
	// deleted and lost are the numbers of marked Machines deleted before, and of Machines lost
	// before.
	deleted, lost int
}

// scaleDowns that a watcher checks.
type scaleDowns struct {
	pending []scaleDown
	// deleted counts the deleted marked Machines, and lost the losses, so far. chosen counts the
	// marked ones that were deleted only because of the mark.
	deleted, lost, chosen int
}

// onLowered is called with a wish that may lower replicas. A wish that raises replicas cancels the
// rest of the earlier scale-downs.
func (s *scaleDowns) onLowered(c *Cluster, before, now *wish) {
	switch {
	case now.replicas > before.replicas:
		s.pending = nil
	case now.replicas < before.replicas:
		from := min(before.replicas, ptr.Deref(c.deployment().Status.DesiredReplicas, 0))
		// The deployment may have decided on fewer Machines already, such as without a leftover.
		decided := 0
		for _, r := range c.deployment().Status.MachineSets {
			decided += int(r.Replicas)
		}
		fewer := int(from-now.replicas) - max(0, int(from)-min(decided, c.kept()))
		if marked := c.visiblyMarked(); len(marked) > 0 {
			s.pending = append(s.pending, scaleDown{wish: now, fewer: fewer, marked: marked, deleted: s.deleted, lost: s.lost})
		}
	}
}

// onScaledDown checks that a scale-down deletes marked Machines first, in all sets and during
// rollouts too. When a reduction of replicas is fully carried out, the same number of marked
// Machines must be deleted, or all of them. A Machine that was lost in the meantime reduces that
// number, and a preserved one counts as gone.
func (w *watcher) onScaledDown(c *Cluster) {
	var pending []scaleDown
	for _, s := range w.scaleDowns.pending {
		if slices.Contains(w.wishes, s.wish) && !s.wish.old {
			pending = append(pending, s)
			continue
		}
		gone := w.scaleDowns.deleted - s.deleted
		var left []string
		for _, name := range s.marked {
			e, there := c.machines.last[name]
			switch {
			case there && c.isReplica(e.object) && isMarked(e.object) && !isPreserved(e.object, c.Now):
				left = append(left, name)
			case there && e.object.DeletionTimestamp == nil:
				gone++
			}
		}
		least := min(s.fewer-(w.scaleDowns.lost-s.lost), len(s.marked))
		if gone < least && len(left) > 0 {
			w.violated("replicas was lowered by %d while %v were marked, of which %v are left", s.fewer, s.marked, left)
		}
	}
	w.scaleDowns.pending = pending
}

// kept counts the replicas whose deletion no set has recorded, and the Machines that are requested. With the order
// CreateFirst, a replacement is one more than the replicas until its Machine is deleted.
func (c *Cluster) kept() int {
	n := 0
	above := func(s *machinev1alpha1.MachineSet, name string) bool {
		return slices.ContainsFunc(s.Status.Replacing, func(r machinev1alpha1.Replacement) bool { return r.By == name })
	}
	for name, e := range c.machines.last {
		s, there := c.sets.last[e.object.OwnerReferences[0].Name]
		if c.isReplica(e.object) && !(there && (slices.Contains(s.object.Status.Dropping, name) || above(s.object, name))) {
			n++
		}
	}
	for _, s := range c.sets.last {
		for _, name := range s.object.Status.Creating {
			if _, there := c.machines.last[name]; !there && !above(s.object, name) {
				n++
			}
		}
	}
	return n
}

// visiblyMarked Machines are replicas whose mark all planners have observed, and that no set
// deletes.
func (c *Cluster) visiblyMarked() []string {
	var out []string
	for name, n := range c.marks {
		m := c.machines.last[name].object
		s, there := c.sets.last[m.OwnerReferences[0].Name]
		if n.old && there && c.isReplica(m) && !isPreserved(m, c.Now) && !slices.Contains(s.object.Status.Dropping, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// A count of a set is the Machines that were not available when the set recorded a status, and those of them
// that never had a Node.
type count struct {
	// writes is the number of writes of sets at that time.
	writes                int
	unavailable, starting []string
}

// onCounted is called when a set recorded a decision, with the Machines in its view.
func (w *watcher) onCounted(c *Cluster, d decision) {
	n := count{writes: len(c.sets.log)}
	for _, ch := range d.seen {
		if !c.Available(ch.object) {
			n.unavailable = append(n.unavailable, ch.object.Name)
		}
		if ch.object.Status.NodeRef == nil {
			n.starting = append(n.starting, ch.object.Name)
		}
	}
	w.counts[d.set] = append(w.counts[d.set], n)
}

// countAsOf is the last count of a set that a view with the given number of writes of sets has.
func (w *watcher) countAsOf(set string, writes int) count {
	all := w.counts[set]
	i, _ := slices.BinarySearchFunc(all, writes+1, func(n count, writes int) int { return n.writes - writes })
	if i == 0 {
		return count{}
	}
	w.counts[set] = all[i-1:]
	return all[i-1]
}

// onReduced is called with the numbers that the deployment recorded, before they are stored.
// Machines that are unavailable at that time, or that were when their set counted them for the view
// of the decision, may be deleted until their set acts on the numbers, even if they become
// available.
func (w *watcher) onReduced(c *Cluster, recorded []machinev1alpha1.MachineSetReplicas) {
	for _, before := range c.deployment().Status.MachineSets {
		reduced := slices.ContainsFunc(recorded, func(now machinev1alpha1.MachineSetReplicas) bool {
			return now.Name == before.Name && now.Replicas < before.Replicas
		})
		if reduced {
			counted := w.countAsOf(before.Name, c.sawSets)
			for _, name := range counted.unavailable {
				w.unavailable[name] = true
			}
			for _, name := range counted.starting {
				w.starting[name] = true
			}
		}
		for name, e := range c.machines.last {
			if reduced && e.object.OwnerReferences[0].Name == before.Name && !c.Available(e.object) {
				w.unavailable[name] = true
			}
		}
	}
}

// onScaled checks that with OnDelete, the set of the template keeps its desired Machines while
// there are old ones to delete. Its number must not be lowered below replicas, except for its
// marked and its unavailable Machines. The deployment and the sets are the view of that decision,
// and recorded has its numbers.
func (w *watcher) onScaled(seen *machinev1alpha1.MachineDeployment, sets []child[*machinev1alpha1.MachineSet], recorded []machinev1alpha1.MachineSetReplicas) {
	if seen.Spec.Strategy.Type != machinev1alpha1.OnDelete || len(recorded) == 0 {
		return
	}
	now := recorded[len(recorded)-1]
	for _, before := range seen.Status.MachineSets {
		for _, s := range sets {
			if before.Name != now.Name || s.object.Name != now.Name {
				continue
			}
			if least := min(before.Replicas, seen.Spec.Replicas) - s.object.Status.MarkedReplicas - max(0, before.Replicas-s.object.Status.AvailableReplicas); now.Replicas < least {
				w.violated("with OnDelete %s, which has the template, shall have %d Machines, of %d before, though %d are wanted", now.Name, now.Replicas, before.Replicas, seen.Spec.Replicas)
			}
		}
	}
}
