package simulator

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Expire the health timeout of a Machine whose Node is lost: it is Failed.
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

// Timeouts that are defaults of the schema of Machines, or that a user set.
const (
	creationTimeout = 20 * time.Minute
	preserveTimeout = 96 * time.Hour
	drainTimeout    = 2 * time.Hour
)

// Pass lets time pass for Machines as well. If failing is set, a Machine that did not join within
// its creationTimeout fails. The deletion of a Machine whose drain has timed out finishes.
func (c *Cluster) Pass(d time.Duration, failing bool) {
	c.Now = c.Now.Add(d)
	for _, m := range c.Machines() {
		if failing && c.Now.Sub(m.CreationTimestamp.Time) >= creationTimeout {
			c.FailToJoin(m.Name)
		}
		if at := m.DeletionTimestamp; at != nil && c.Now.Sub(at.Time) >= drainTimeout {
			c.Finish(m.Name)
		}
	}
}

// Preserve a Machine as a user does, with a value of the annotation.
func (c *Cluster) Preserve(name, value string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[machinev1alpha1.AnnotationPreserve] = value
	})
}

// Keep preserves the Machines whose annotation requests it, as their controller does.
func (c *Cluster) Keep() {
	for _, m := range c.Machines() {
		value, is := m.Annotations[machinev1alpha1.AnnotationPreserve], m.Status.Preservation
		asked := value == machinev1alpha1.PreserveNow ||
			m.Status.Phase == machinev1alpha1.MachineFailed && (value == machinev1alpha1.PreserveWhenFailed || value == machinev1alpha1.PreserveAuto)
		if asked == (is != nil) && (is == nil || is.Value == value) {
			continue
		}
		c.changeMachine(m.Name, func(m *machinev1alpha1.Machine) {
			m.Status.Preservation = nil
			if asked {
				m.Status.Preservation = &machinev1alpha1.Preservation{Value: value, Since: metav1.NewTime(c.Now), Until: metav1.NewTime(c.Now.Add(preserveTimeout))}
			}
		})
	}
}

// Request the replacement of a Machine, as a user does.
func (c *Cluster) Request(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp == nil && !m.Status.ReplaceRequested {
			m.Status.ReplaceRequested = true
		}
	})
}

// Blackout loses sight of the Nodes of all Machines at once, except for the first few.
func (c *Cluster) Blackout(but int) {
	for i, m := range c.Machines() {
		if i >= but {
			c.Lose(m.Name)
		}
	}
}

// A ticket is a replacement in flight: of a Machine that had a Node, or whose replacement was
// requested.
type ticket struct {
	set string
	// by is the replacement, "" while there is none.
	by string
	// paired means that the set recorded the name of the replacement.
	paired bool
}

// replacements that a watcher counts.
type replacements struct {
	open []ticket
	// started counts replacements, so that a test can check that there were any.
	started int
}

// budgetOf a MachineDeployment, computed from the spec without the planners.
func budgetOf(d *machinev1alpha1.MachineDeployment) int {
	v := d.Spec.Remediation.MaxInFlight
	if v == nil {
		return 1
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(v, int(d.Spec.Replicas), true)
	return n
}

// A decision that a set recorded.
type decision struct {
	set           string
	spec          machinev1alpha1.MachineSetSpec
	before, after machinev1alpha1.MachineSetStatus
	// seen are the Machines in the view of the decision, and writes is the number of their writes
	// that the view had.
	seen   []child[*machinev1alpha1.Machine]
	writes int
	// gone are Machines that were requested and do not exist any more.
	gone []string
	// preserves names the Failed Machines that the set preserves by itself.
	preserves []string
	// isBehind means that the report of the MachineGroup was from another view of the Machines.
	isBehind bool
	// released are Machines that the MachineGroup reported as gone.
	released []machinev1alpha1.ReleasedMachine
}

// machine in the view of the set, nil for one that it requested and did not see yet.
func (d decision) machine(name string) *machinev1alpha1.Machine {
	for _, ch := range d.seen {
		if ch.object.Name == name {
			return ch.object
		}
	}
	return nil
}

// kept Machines before the decision: all that are not being deleted or set aside, and those that
// were requested and are not in the view yet.
func (d decision) kept() []string {
	var out []string
	for _, ch := range d.seen {
		name := ch.object.Name
		if !ch.terminating && !slices.Contains(d.before.Dropping, name) && !slices.Contains(d.before.SetAside, name) && !slices.Contains(d.after.SetAside, name) {
			out = append(out, name)
		}
	}
	for _, name := range d.before.Creating {
		if d.awaits(name) && d.machine(name) == nil && !slices.Contains(d.before.Dropping, name) {
			out = append(out, name)
		}
	}
	return out
}

// awaits reports whether the set requested a Machine that is not in the view yet.
func (d decision) awaits(name string) bool {
	return slices.Contains(d.before.Creating, name) && !slices.Contains(d.gone, name)
}

// preserved reports whether this decision keeps a Machine for analysis. If the set itself requested
// that, and the Machine does not report it yet, the set may cancel it and preserve another Machine
// instead.
func (d decision) preserved(m *machinev1alpha1.Machine, now time.Time) bool {
	if m.Status.Preservation == nil && m.Annotations[machinev1alpha1.AnnotationPreserve] == machinev1alpha1.PreserveAuto {
		return slices.Contains(d.preserves, m.Name)
	}
	return isPreserved(m, now)
}

// spared Machines are preserved and not available. A scale-down deletes all remaining Machines
// before them. Only a rollout that replaces the set deletes them like any other Machine.
func (d decision) spared(c *Cluster) []string {
	if slices.ContainsFunc(d.spec.NodeMarks.Taints, func(t machinev1alpha1.Taint) bool { return t.Key == machinev1alpha1.TaintOutdated }) {
		return nil
	}
	return slices.DeleteFunc(d.kept(), func(name string) bool {
		m := d.machine(name)
		return m == nil || c.Available(m) || !d.preserved(m, c.Now)
	})
}

// updateInPlace of a Machine whose beginning the set recorded.
func (d decision) updateInPlace(c *Cluster, name string) *inPlaceUpdate {
	m := d.machine(name)
	u := &inPlaceUpdate{available: m == nil || c.Available(m), beside: map[string]bool{}}
	for _, other := range d.kept() {
		m := d.machine(other)
		goes := slices.Contains(d.after.Dropping, other) || slices.Contains(d.after.Updating, other)
		u.beside[other] = m != nil && c.Available(m) && !goes
	}
	return u
}

// causeFor which the set may delete a Machine although there are no excess Machines.
func (c *Cluster) causeFor(d decision, name string) cause {
	m := d.machine(name)
	if m == nil {
		return tooMany
	}
	failed := m.Status.Phase == machinev1alpha1.MachineFailed
	if slices.Contains(d.before.SetAside, name) {
		return expired
	}
	for _, r := range d.before.Replacing {
		by := d.machine(r.By)
		if r.Machine == name && by != nil && c.Available(by) {
			return handedOver
		}
		if r.Machine == name && (by != nil || d.awaits(r.By)) && d.spec.Creation != machinev1alpha1.CreationDisabled &&
			m.Status.FailureReason != machinev1alpha1.FailureVMLost {
			// CreateFirst keeps it until the replacement is available for minReadySeconds, unless
			// its VM does not exist any more. A set that creates no Machines leaves replacements to
			// other sets.
			return tooMany
		}
		if r.By == name && failed {
			return retried
		}
	}
	switch {
	case d.preserved(m, c.Now):
		return tooMany
	case failed && m.Status.NodeRef == nil:
		return retried
	case failed, m.Status.ReplaceRequested:
		return replaced
	case d.spec.InPlaceUpdate != nil && m.Status.ProviderID == "":
		return remade
	case d.spec.Aging != nil && d.spec.Aging.Replace == name && len(d.kept()) <= int(d.spec.Replicas):
		return byAge
	}
	return tooMany
}

// onDecision checks the decision of a set. A set may delete excess Machines. In addition it may
// delete only Machines that failed, whose replacement a user requested, whose replacement is
// available, or that have no VM and are outdated. Replacements of Machines that had a Node are
// limited by the budget. None begins while more than maxUnhealthy Machines are unhealthy, not
// counting those whose VM is gone. Preserved Machines count for neither, from the decision on that
// preserves them. A set preserves at most the allowed number of Machines by itself. A marked
// Machine is deleted before other excess Machines.
func (w *watcher) onDecision(c *Cluster, d decision) {
	for _, n := range w.all() {
		n.setDecided(c, d.set, d.writes)
	}
	w.onCounted(c, d)
	w.onReboots(c, d)
	if n, most := len(d.preserves), int(d.spec.AutoPreserveFailedMachineMax); n > most {
		w.violated("%s preserves %d Machines by itself, of at most %d: %v", d.set, n, most, d.preserves)
	}
	kept := d.kept()
	lasting, before := 0, w.started
	for _, r := range d.after.Replacing {
		if slices.Contains(d.after.SetAside, r.By) {
			// The replacement counts as gone.
			continue
		}
		if slices.Contains(d.before.Replacing, r) {
			if slices.Contains(kept, r.By) {
				lasting++
			}
		} else {
			w.open = append(w.open, ticket{set: d.set, by: r.By, paired: true})
			if m := d.machine(r.Machine); m != nil && m.Status.Phase != machinev1alpha1.MachineFailed && !m.Status.ReplaceRequested && m.Annotations[machinev1alpha1.AnnotationReplace] != "true" {
				w.onAged(c, m)
			} else {
				w.begin(c, d, r.Machine)
			}
		}
	}
	excess := len(kept) - int(d.spec.Replicas) - lasting
	var replacing []string
	surplus := 0
	for _, name := range d.after.Dropping {
		if slices.Contains(d.before.Dropping, name) {
			continue
		}
		why := c.causeFor(d, name)
		w.causes[name] = why
		m := d.machine(name)
		w.unavailable[name] = w.unavailable[name] || m != nil && !c.Available(m)
		switch why {
		case tooMany:
			surplus++
			excess--
			w.spared[name] = d.spared(c)
			w.outside[name] = m != nil && !w.mayRoll(c, m)
		case handedOver:
			if d.spec.Creation == machinev1alpha1.CreationDisabled {
				// If there are enough Machines without the pair, the set forgets it. Then another set replaces
				// the Machine.
				replacing = append(replacing, name)
				break
			}
			excess--
		case replaced:
			replacing = append(replacing, name)
		case byAge:
			w.open = append(w.open, ticket{set: d.set})
			w.onAged(c, m)
		}
		if why != tooMany && m != nil && !w.due[name] {
			if e, there := c.machines.last[name]; there && e.object.DeletionTimestamp == nil {
				w.onLoss(c, e.object, true)
				w.losses[name].sets = len(c.sets.log)
			}
		}
	}
	if s, there := c.sets.last[d.set]; there && c.hasActed(s.object) {
		for _, name := range kept {
			if !slices.Contains(d.after.Dropping, name) {
				delete(w.unavailable, name)
				w.spareStarting(d, name)
			}
		}
	}
	for _, name := range d.after.Updating {
		if !slices.Contains(d.before.Updating, name) {
			w.updates[name] = d.updateInPlace(c, name)
		}
	}
	w.cancel(d)
	if surplus > 0 && excess < 0 {
		w.violated("%s gives up %d Machines that work, %d more than there are too many: %v of %v", d.set, surplus, -excess, d.after.Dropping, kept)
	}
	// Failed Machines are deleted first among the excess Machines.
	for _, name := range replacing[min(max(0, excess), len(replacing)):] {
		w.open = append(w.open, ticket{set: d.set})
		w.begin(c, d, name)
	}
	if surplus > 0 {
		w.onSurplus(c, d)
	}
	w.open = slices.DeleteFunc(w.open, func(t ticket) bool { return !t.paired && slices.Contains(d.preserves, t.by) })
	w.forget(d)
	if w.close(c); w.started > before && len(w.open) > w.budget() {
		w.violated("%d replacements are in flight, of at most %d: %v", len(w.open), w.budget(), w.open)
	}
}

// spareStarting is called with a Machine that a decision keeps. If it was starting, a marked one was deleted in its
// place: a set deletes marked Machines first.
func (w *watcher) spareStarting(d decision, name string) {
	if !w.starting[name] {
		return
	}
	delete(w.starting, name)
	for _, goes := range d.after.Dropping {
		m := d.machine(goes)
		if !slices.Contains(d.before.Dropping, goes) && m != nil && isMarked(m) && w.causes[goes] == tooMany && !w.starting[goes] {
			w.starting[goes] = true
			return
		}
	}
}

// cancel replacements that a decision ended. Each has left one excess Machine: the replacement, the
// Machine that it was to replace, or another one that is deleted first.
func (w *watcher) cancel(d decision) {
	var candidates []string
	ended := 0
	for _, r := range d.before.Replacing {
		if !slices.Contains(d.after.Replacing, r) {
			candidates = append(candidates, r.By, r.Machine)
			ended++
		}
	}
	for _, name := range slices.Concat(candidates, d.after.Dropping) {
		isNew := slices.Contains(d.after.Dropping, name) && !slices.Contains(d.before.Dropping, name)
		if ended > 0 && isNew && w.causes[name] == tooMany && !w.cancelled[name] {
			w.cancelled[name] = true
			ended--
		}
	}
}

// unfilled is the number of Machines that a set must still create by its own view: its replicas
// without the Machines that it keeps.
func (d decision) unfilled() int {
	n := int(d.spec.Replicas)
	for _, name := range d.kept() {
		above := func(r machinev1alpha1.Replacement) bool { return r.By == name }
		if !slices.Contains(d.after.Dropping, name) && !slices.ContainsFunc(d.after.Replacing, above) {
			n--
		}
	}
	return max(0, n)
}

// forget the tickets of a set for which it creates no Machine by its own view, the oldest first.
func (w *watcher) forget(d decision) {
	n := -d.unfilled()
	for _, t := range w.open {
		if t.set == d.set && t.by == "" {
			n++
		}
	}
	w.open = slices.DeleteFunc(w.open, func(t ticket) bool {
		if t.set != d.set || t.by != "" || n <= 0 {
			return false
		}
		n--
		return true
	})
}

// budget is the largest one of all wishes in force.
func (w *watcher) budget() int {
	n := 0
	for _, wish := range w.wishes {
		n = max(n, wish.budget)
	}
	return n
}

// begin a replacement.
func (w *watcher) begin(c *Cluster, d decision, name string) {
	w.started++
	unhealthy := 0
	for _, name := range d.kept() {
		m := d.machine(name)
		switch {
		case m == nil || d.preserved(m, c.Now) || slices.Contains(d.preserves, name):
		case m.Status.LossConfirmed && m.Status.Phase == machinev1alpha1.MachineFailed:
		case m.Status.Phase == machinev1alpha1.MachineUnknown, m.Status.Phase == machinev1alpha1.MachineFailed:
			unhealthy++
		}
	}
	if most, limited := mostUnhealthy(d.spec); limited && unhealthy > most {
		w.violated("replacement of %s: %d Machines are unhealthy, and at most %d may be", name, unhealthy, most)
	}
}

// onSurplus checks that marked Machines are deleted first among the excess Machines.
func (w *watcher) onSurplus(c *Cluster, d decision) {
	for _, stays := range d.kept() {
		m := d.machine(stays)
		if m == nil || !isMarked(m) || d.preserved(m, c.Now) || slices.Contains(d.after.Dropping, stays) {
			continue
		}
		for _, goes := range d.after.Dropping {
			if g := d.machine(goes); g != nil && !slices.Contains(d.before.Dropping, goes) && w.causes[goes] == tooMany && !isMarked(g) {
				w.violated("%s gives up %s, and not %s, which is marked", d.set, goes, stays)
			}
		}
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

// close the tickets whose replacement runs, or is not needed any more.
func (w *watcher) close(c *Cluster) {
	holes := map[string]int{}
	var open []ticket
	for _, t := range w.open {
		e, ok := c.sets.last[t.set]
		if !ok || e.object.DeletionTimestamp != nil {
			continue
		}
		s := e.object
		if t.by != "" {
			by, created := c.machines.last[t.by]
			pending := slices.ContainsFunc(s.Status.Replacing, func(r machinev1alpha1.Replacement) bool { return r.By == t.by })
			gone := !created || by.object.DeletionTimestamp != nil || slices.Contains(s.Status.Dropping, t.by)
			switch {
			case created && by.object.Status.NodeRef != nil, t.paired && !pending:
				continue
			case created && isPreserved(by.object, c.Now):
				// A preserved Machine takes no part of the budget.
				continue
			case created && by.object.Status.Phase == machinev1alpha1.MachineFailed && s.Spec.Creation == machinev1alpha1.CreationDisabled:
				// Its set does not try again: the Machine must be replaced itself.
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

// holes of a set: Machines missing from its replicas, not counting those above replicas.
func (c *Cluster) holes(s *machinev1alpha1.MachineSet) int {
	n := int(s.Spec.Replicas)
	for _, m := range c.Machines() {
		above := func(r machinev1alpha1.Replacement) bool { return r.By == m.Name }
		if metav1.IsControlledBy(m, s) && c.isReplica(m) && !slices.Contains(s.Status.Dropping, m.Name) && !slices.ContainsFunc(s.Status.Replacing, above) {
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

// aged are the facts about Machines that are replaced because of their age.
type aged struct {
	// due names the Machines whose replacement began because of their age.
	due map[string]bool
	// last is the one of them that was the last to begin, and lastTime the time.
	last     string
	lastTime time.Time
	// OnAged is called when a replacement because of age begins, unless it is nil.
	OnAged func(m *machinev1alpha1.Machine)
}

// onAged checks that a replacement because of age is due, that it is the only one, and that no rollout is in progress.
func (w *watcher) onAged(c *Cluster, m *machinev1alpha1.Machine) {
	maxAge := c.deployment().Spec.Rollout.MaxAge
	age := c.Now.Sub(m.CreationTimestamp.Time)
	switch {
	case maxAge == nil && len(w.wishes) == 1:
		w.violated("replacement of %s by its age, though none is configured", m.Name)
	case maxAge != nil && len(w.wishes) == 1 && age < maxAge.Duration*8/10-time.Second:
		w.violated("replacement of %s by its age of %s, of at most %s", m.Name, age, maxAge.Duration)
	}
	if e, there := c.machines.last[w.last]; there && e.name != m.Name && e.object != nil && (e.object.DeletionTimestamp == nil || e.object.Status.ProviderID != "") && !w.isKept(c, w.last) {
		w.violated("replacement of %s by its age, while %s is replaced, since %s", m.Name, w.last, w.lastTime)
	}
	if len(w.wishes) == 1 && (w.latest().paused || !w.isAlone(c)) {
		w.violated("replacement of %s by its age, during a rollout or a pause", m.Name)
	}
	w.due[m.Name], w.last, w.lastTime = true, m.Name, c.Now
	if w.OnAged != nil {
		w.OnAged(m)
	}
}

// isKept reports whether the replacement of a Machine ended without a deletion of it.
func (w *watcher) isKept(c *Cluster, name string) bool {
	for _, s := range c.sets.last {
		for _, r := range s.object.Status.Replacing {
			if r.Machine == name {
				return false
			}
		}
	}
	return c.machines.last[name].object.DeletionTimestamp == nil
}
