package simulator

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Expire the patience with a Machine whose Node is lost: it is Failed.
func (c *Cluster) Expire(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineUnknown {
			m.Status.Phase = machinev1alpha1.MachineFailed
			m.Status.FailureReason = machinev1alpha1.FailureNodeUnhealthy
		}
	})
}

// Recover a Machine whose Node is healthy after all.
func (c *Cluster) Recover(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp != nil || m.Status.FailureReason != machinev1alpha1.FailureNodeUnhealthy {
			return
		}
		m.Status.Phase, m.Status.FailureReason = machinev1alpha1.MachineRunning, ""
		m.Status.ReadySince = &metav1.Time{Time: c.Now}
		c.recovered[m.Name] = true
	})
}

// FailToJoin makes a Machine fail before it had a Node.
func (c *Cluster) FailToJoin(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp == nil && m.Status.NodeRef == nil && m.Status.Phase != machinev1alpha1.MachineFailed {
			m.Status.Phase = machinev1alpha1.MachineFailed
			m.Status.FailureReason = machinev1alpha1.FailureJoinTimeout
		}
	})
}

// Request another Machine in place of this one, as a user does.
func (c *Cluster) Request(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp == nil && !m.Status.ReplaceRequested {
			m.Status.ReplaceRequested = true
			c.onLoss(c, m)
		}
	})
}

// Blackout loses sight of the Nodes of all Machines at once, but of the first few.
func (c *Cluster) Blackout(but int) {
	for i, m := range c.Machines() {
		if i >= but {
			c.Lose(m.Name)
		}
	}
}

// A ticket is a replacement that is under way: of a Machine that had a Node, or that
// somebody asked to replace.
type ticket struct {
	set string
	// by is the Machine that takes the place, once there is one.
	by string
	// paired means that it was written down which one that is to be.
	paired bool
}

// replacements that a watcher sees.
type replacements struct {
	// budget of all that a user wanted since it was settled.
	budget int
	open   []ticket
	// recovered Machines were Failed once: somebody may still think that they are.
	recovered map[string]bool
	// started counts replacements, so that a test can say that there were any.
	started int
}

// budgetOf a MachineDeployment, read from the spec on its own.
func budgetOf(d *machinev1alpha1.MachineDeployment) int {
	v := d.Spec.Remediation.MaxInFlight
	if v == nil {
		return 1
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(v, int(d.Spec.Replicas), true)
	return n
}

// A decision of a set, as it was written down.
type decision struct {
	set           string
	spec          machinev1alpha1.MachineSetSpec
	before, after machinev1alpha1.MachineSetStatus
	// seen are the Machines that it was made from.
	seen []child[*machinev1alpha1.Machine]
	// gone are those that were ordered and are no more.
	gone []string
}

// onDecision asserts that nothing is replaced that is healthy, that nothing is while too
// many are unhealthy, and that no more are in flight than the budget.
func (w *watcher) onDecision(c *Cluster, d decision) {
	kept, unhealthy := 0, 0
	for _, ch := range d.seen {
		if ch.terminating || slices.Contains(d.before.Dropping, ch.object.Name) {
			continue
		}
		kept++
		switch ch.object.Status.Phase {
		case machinev1alpha1.MachineFailed, machinev1alpha1.MachineUnknown:
			unhealthy++
		}
	}
	// What was ordered counts before it is seen.
	for _, name := range d.before.Creating {
		if !slices.Contains(d.gone, name) && !slices.ContainsFunc(d.seen, func(ch child[*machinev1alpha1.Machine]) bool { return ch.object.Name == name }) {
			kept++
		}
	}
	excess := kept > int(d.spec.Replicas)+len(d.before.Replacing)
	for _, ch := range d.seen {
		m := ch.object
		given := slices.Contains(d.after.Dropping, m.Name) && !slices.Contains(d.before.Dropping, m.Name)
		was := func(r machinev1alpha1.Replacement) bool { return r.Machine == m.Name }
		paired := slices.ContainsFunc(d.after.Replacing, was) && !slices.ContainsFunc(d.before.Replacing, was)
		switch {
		case paired:
			i := slices.IndexFunc(d.after.Replacing, was)
			w.open = append(w.open, ticket{set: d.set, by: d.after.Replacing[i].By, paired: true})
		case !given || excess || slices.ContainsFunc(d.before.Replacing, was) || kept > int(d.spec.Replicas):
			continue
		case m.Status.NodeRef == nil && (m.Status.Phase == machinev1alpha1.MachineFailed || c.inPlace()):
			// What never had a Node is only created again.
			continue
		case m.Status.Phase != machinev1alpha1.MachineFailed && !m.Status.ReplaceRequested:
			w.violated("%s is %s, and given up although there are not too many", m.Name, m.Status.Phase)
			continue
		default:
			w.open = append(w.open, ticket{set: d.set})
		}
		w.started++
		if most, limited := mostUnhealthy(d.spec); limited && unhealthy > most {
			w.violated("replacement of %s: %d Machines are unhealthy, and at most %d may be", m.Name, unhealthy, most)
		}
	}
	if w.close(c); len(w.open) > w.budget {
		w.violated("%d replacements are in flight, of at most %d: %v", len(w.open), w.budget, w.open)
	}
}

// fill the oldest ticket of a set with a Machine that is created.
func (w *watcher) fill(m *machinev1alpha1.Machine) {
	if slices.ContainsFunc(w.open, func(t ticket) bool { return t.by == m.Name }) {
		return
	}
	for i, t := range w.open {
		if t.by == "" && t.set == metav1.GetControllerOf(m).Name {
			w.open[i].by = m.Name
			return
		}
	}
}

// close the tickets whose replacement runs, or is not wanted any more.
func (w *watcher) close(c *Cluster) {
	holes := map[string]int{}
	var open []ticket
	for _, t := range w.open {
		e, ok := c.sets.get(t.set)
		if !ok || e.object.DeletionTimestamp != nil {
			continue
		}
		s := e.object
		if t.by != "" {
			by, created := c.machines.get(t.by)
			pending := slices.ContainsFunc(s.Status.Replacing, func(r machinev1alpha1.Replacement) bool { return r.By == t.by })
			gone := !created || by.object.DeletionTimestamp != nil || slices.Contains(s.Status.Dropping, t.by)
			switch {
			case created && by.object.Status.NodeRef != nil, t.paired && !pending:
				continue
			case gone && !t.paired:
				t.by = ""
			}
		}
		if t.by == "" {
			if _, counted := holes[t.set]; !counted {
				holes[t.set] = c.holes(s)
			}
			if holes[t.set]--; holes[t.set] < 0 {
				continue
			}
		}
		open = append(open, t)
	}
	w.open = open
}

// holes of a set: Machines that it wants and does not have, without those above replicas.
func (c *Cluster) holes(s *machinev1alpha1.MachineSet) int {
	n := int(s.Spec.Replicas)
	for _, m := range c.Machines() {
		above := func(r machinev1alpha1.Replacement) bool { return r.By == m.Name }
		if metav1.IsControlledBy(m, s) && m.DeletionTimestamp == nil && !slices.Contains(s.Status.Dropping, m.Name) && !slices.ContainsFunc(s.Status.Replacing, above) {
			n--
		}
	}
	return n
}

func mostUnhealthy(s machinev1alpha1.MachineSetSpec) (int, bool) {
	v := s.Remediation.MaxUnhealthy
	if v == nil || v.String() == "100%" {
		return 0, false
	}
	return v.IntValue(), true
}
