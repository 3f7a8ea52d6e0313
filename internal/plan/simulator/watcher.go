package simulator

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A watcher asserts, at every creation and deletion of a Machine, what docs/rollouts.md,
// docs/health.md and docs/autoscaler.md promise. It knows the wishes of the user and the facts
// of the world, and nothing of how planners decide. Each rule is a sentence at the function
// that holds it.
type watcher struct {
	// Violations that were found.
	Violations []string

	// wishes in force: the latest one, and those before it by which a planner may still act.
	wishes []*wish
	// losses of Machines that planners did not decide by a number of replicas, and marks of
	// the cluster-autoscaler, by the Machine, while they are news or the Machine is there.
	losses map[string]*loss
	marks  map[string]*news
	// causes of the deletions that sets recorded, by Machine, and rolled ones, whose deletion
	// belongs to a rollout that is not over, with the length that the log of sets had before the
	// rollout could begin.
	causes map[string]cause
	rolled map[string]int
	// unavailable Machines were not available when their set recorded that it deletes them, or
	// when the deployment recorded the number of replicas by which it does.
	unavailable map[string]bool
	// updates in place that sets recorded, the last one of each Machine.
	updates map[string]*inPlaceUpdate
	// spared names the preserved Machines, which were not available, in whose place a scale-down
	// deletes a Machine. The user asked for that: a preserved Machine counts as a replica, and a
	// scale-down takes it last. So it excuses as many missing Machines as are preserved, and no
	// others.
	spared map[string][]string
	// outside of a rollout, a scale-down decided on the deletion of these Machines. A set records
	// a decision a moment before it deletes. If the template changes in between, the scale-down is
	// no part of the rollout: its Machines drain beside those that the set creates.
	outside map[string]bool
	// cancelled Machines were too many because a replacement of their set ended, and because of
	// no number of replicas.
	cancelled map[string]bool
	// places are how many Machines each set may create for those that it lost.
	places map[string]int
	// owed Machines are those that each set has yet to create by a number of before.
	owed map[string]*owed

	replacements
	scaleDowns scaleDowns
}

// A wish of the user, read from the spec on its own.
type wish struct {
	news
	// most Machines that there may be, and least that must be available.
	most, least int
	// budget of replacements.
	budget   int
	strategy machinev1alpha1.StrategyType
	order    machinev1alpha1.RemediationOrder
	paused   bool
	kind     kind
	after    *metav1.Time
	// chosen is how many marked Machines were deleted before, for no other reason than the mark.
	chosen int
	// written is the length that the log of sets had before.
	written int
}

// An owed number of Machines, of a set that has acted on its number of replicas and not created
// all of them, while an earlier wish was in force: with so many Machines at most.
type owed struct {
	machines, most int
	replicas       int32
}

// A loss of a Machine that no number of replicas is the cause of: it failed, its Node was
// lost, a user deleted it, or its set gives it up to replace it.
type loss struct {
	news
	// available means that the Machine was, and removed that it is deleted, or about to be.
	available, removed bool
}

// An inPlaceUpdate, as things were when its set recorded it.
type inPlaceUpdate struct {
	// available means that the Machine was, and beside it these others, none of which was
	// about to be deleted.
	available bool
	beside    map[string]bool
	// taken is how many of those a scale-down deleted since because they are marked.
	taken int
}

// A cause for which a set deletes a Machine.
type cause string

const (
	// tooMany Machines: the deployment lowered the set's number.
	tooMany cause = "too many"
	// replaced Machines failed, or a user asked for others.
	replaced cause = "replaced"
	// retried Machines failed before they had a Node.
	retried cause = "retried"
	// remade Machines were outdated before they had a VM.
	remade cause = "remade"
	// handedOver Machines have a replacement that is available.
	handedOver cause = "handed over"
	// expired Machines are marked, and were preserved until now.
	expired cause = "no longer preserved"
)

func newWatcher() watcher {
	return watcher{losses: map[string]*loss{}, marks: map[string]*news{}, causes: map[string]cause{}, unavailable: map[string]bool{}, updates: map[string]*inPlaceUpdate{}, spared: map[string][]string{}, outside: map[string]bool{}, cancelled: map[string]bool{}, rolled: map[string]int{}, places: map[string]int{}, owed: map[string]*owed{}}
}

// wishFor what the deployment says now.
func (c *Cluster) wishFor(d *machinev1alpha1.MachineDeployment) *wish {
	w := &wish{news: news{generation: d.Generation, replicas: d.Spec.Replicas}, strategy: d.Spec.Strategy.Type,
		order: d.Spec.Remediation.Order, paused: d.Spec.Paused, kind: c.wanted(), after: d.Spec.Rollout.After}
	w.most, w.least = bounds(d)
	w.budget = budgetOf(d)
	return w
}

// Settled says that all is as the user wants it, and at rest: no fact may be news to anybody.
func (w *watcher) Settled(c *Cluster) {
	w.age(c)
	if len(w.wishes) > 1 {
		w.violated("at rest, %d earlier wishes may still be acted on", len(w.wishes)-1)
	}
	if len(w.losses) > 0 {
		w.violated("at rest, losses are news: %v", w.losses)
	}
	clear(w.rolled)
}

func (w *watcher) violated(format string, args ...any) {
	w.Violations = append(w.Violations, fmt.Sprintf(format, args...))
}

// all news that there is.
func (w *watcher) all() []*news {
	var out []*news
	for _, wish := range w.wishes {
		out = append(out, &wish.news)
	}
	for _, l := range w.losses {
		out = append(out, &l.news)
	}
	for _, m := range w.marks {
		out = append(out, m)
	}
	return out
}

// age forgets wishes and losses that are news to nobody.
func (w *watcher) age(c *Cluster) {
	for _, n := range w.all() {
		n.age(c)
	}
	for i, wish := range slices.Backward(w.wishes) {
		if wish.old && i > 0 {
			w.owe(c, w.most(w.wishes[:i]))
			w.wishes = w.wishes[i:]
			break
		}
	}
	for set, o := range w.owed {
		if s, there := c.sets.last[set]; !there || s.object.Spec.Replicas != o.replicas || c.holes(s.object) <= 0 {
			delete(w.owed, set)
		}
	}
	w.onScaledDown(c)
	for name, l := range w.losses {
		if l.old {
			delete(w.losses, name)
		}
	}
	for name := range w.marks {
		if _, there := c.machines.last[name]; !there {
			delete(w.marks, name)
		}
	}
	for set, n := range w.places {
		switch s, there := c.sets.last[set]; {
		case !there:
			delete(w.places, set)
		case c.holes(s.object) <= 0:
			// What was ordered is created although replicas are lower since.
			w.places[set] = min(n, c.unseen(s.object))
		}
	}
	if len(w.rolled) > 0 && w.isOver(c) {
		clear(w.rolled)
	}
}

// unseen is how many Machines a set has recorded that it creates, and that are not there yet.
func (c *Cluster) unseen(s *machinev1alpha1.MachineSet) int {
	n := 0
	for _, name := range s.Status.Creating {
		if _, there := c.machines.last[name]; !there {
			n++
		}
	}
	return n
}

// isOver reports whether no rollout is under way: the Machines that are not being deleted are
// those that are wanted, and no others are being deleted.
func (w *watcher) isOver(c *Cluster) bool {
	live := 0
	for _, e := range c.machines.last {
		if c.isReplica(e.object) {
			live++
		}
		if c.IsOld(e.object) {
			return false
		}
	}
	return len(w.wishes) == 1 && live == int(w.latest().replicas)
}

func (w *watcher) latest() *wish { return w.wishes[len(w.wishes)-1] }

// onUpdate is told that a user changed the MachineDeployment.
func (w *watcher) onUpdate(c *Cluster, now *machinev1alpha1.MachineDeployment) {
	wish := c.wishFor(now)
	wish.chosen, wish.written = w.scaleDowns.chosen, len(c.sets.log)
	if len(w.wishes) > 0 {
		w.scaleDowns.onLowered(c, w.latest(), wish)
	}
	w.wishes = append(w.wishes, wish)
}

// onLoss is told of a Machine that is about to be lost, and whether it is deleted.
func (w *watcher) onLoss(c *Cluster, m *machinev1alpha1.Machine, removed bool) {
	l := &loss{news: c.newsOf(m), available: c.Available(m), removed: removed}
	if before := w.losses[m.Name]; before != nil {
		l.available = l.available || before.available
		l.removed = l.removed || before.removed
	}
	if l.removed && (w.losses[m.Name] == nil || !w.losses[m.Name].removed) {
		w.places[l.set]++
		w.scaleDowns.lost++
	}
	w.losses[m.Name] = l
}

// onMark is told that the cluster-autoscaler, or a user, marks a Machine. To mark it once more
// is no news.
func (w *watcher) onMark(c *Cluster, m *machinev1alpha1.Machine) {
	if isMarked(m) {
		return
	}
	n := c.newsOf(m)
	w.marks[m.Name] = &n
}

// onCreate holds the upper bound: there are at most replicas + maxSurge Machines, and with the
// order CreateFirst as many more as replacements may be in flight. A Machine that is deleted
// in a rollout counts until its VM is gone, but with OnDelete, which bounds only those that are
// not being deleted. One that a user or a replacement deletes is on top
// of that, and so are one whose deletion was decided outside of a rollout, one that never had a VM, and one
// that is too many because a replacement is not needed any more. A
// Machine that takes the place of one that was lost waits for no other to be gone. One that was
// set aside is no replica. A set creates the Machines of the last number that it has acted on.
// Recreate creates none while any other of another template is there.
func (w *watcher) onCreate(c *Cluster, created *machinev1alpha1.Machine) {
	w.age(c)
	w.fill(created)
	total, others := 1, 0
	set := created.OwnerReferences[0].Name
	fills := w.places[set] > 0
	if fills {
		w.places[set]--
	}
	for _, e := range c.machines.last {
		m := e.object
		if c.isReplica(m) || w.isRolled(c, m) && !w.cancelled[m.Name] && m.Status.ProviderID != "" && !fills {
			total++
		}
		if kindOf(m.Spec) != kindOf(created.Spec) && !c.isSetAside(m) {
			others++
		}
	}
	if w.latest().strategy == machinev1alpha1.Recreate && others > 0 {
		w.violated("creation of %s: there are still %d Machines of another kind than %v", created.Name, others, kindOf(created.Spec))
	}
	most := w.most(w.wishes)
	if o := w.owed[set]; o != nil && o.machines > 0 {
		o.machines--
		most = max(most, o.most)
	}
	if total > most {
		w.violated("creation of %s: there are %d Machines, of at most %d", created.Name, total, most)
	}
}

// most Machines that there may be by any of the wishes.
func (w *watcher) most(wishes []*wish) int {
	most := 0
	for _, wish := range wishes {
		n := wish.most
		if wish.order == machinev1alpha1.CreateFirst {
			n += wish.budget
		}
		most = max(most, n)
	}
	return most
}

// owe each set the Machines that it has yet to create by the number that it has acted on.
func (w *watcher) owe(c *Cluster, most int) {
	for name, e := range c.sets.last {
		if n := c.holes(e.object); n > 0 && w.owed[name] == nil {
			w.owed[name] = &owed{machines: n, most: most, replicas: e.object.Spec.Replicas}
		}
	}
}

// onDelete holds that no Machine is deleted without a reason. What its set gave up to replace
// it, or because it failed, was judged when that was recorded. Any other goes because its
// number was lowered: a rollout replaces it, or there are too many. One that was set aside is
// deleted by no number: it stays as long as it is preserved.
func (w *watcher) onDelete(c *Cluster, deleted *machinev1alpha1.Machine) {
	w.age(c)
	if isMarked(deleted) {
		w.scaleDowns.deleted++
		for _, u := range w.updates {
			if u.beside[deleted.Name] {
				u.taken++
			}
		}
	}
	if why, recorded := w.causes[deleted.Name]; recorded && why != tooMany {
		return
	}
	if c.isSetAside(deleted) && isPreserved(deleted, c.Now) {
		w.violated("deletion of %s, which was set aside and is preserved", deleted.Name)
		return
	}
	rolls, scales := w.rolls(c, deleted), w.scalesDown(c, deleted)
	scales = scales || w.cancelled[deleted.Name]
	if !rolls && !scales && isMarked(deleted) {
		w.scaleDowns.chosen++
		scales = w.scaleDowns.chosen-w.wishes[0].chosen <= w.lowered()
	}
	switch {
	case !rolls && !scales:
		w.violated("deletion of %s, which is %s and of the kind %v, though no rollout replaces it, and there are not too many", deleted.Name, deleted.Status.Phase, kindOf(deleted.Spec))
	case !rolls:
		w.onUnmarked(c, deleted)
	}
	if !w.outside[deleted.Name] && w.mayRoll(c, deleted) {
		w.rolled[deleted.Name] = w.wishes[0].written
	}
	// A marked Machine is deleted because the client that marked it wants it to be, however
	// many others are available. One that was not available when that was decided is deleted
	// though it came up since.
	if c.Available(deleted) && !isMarked(deleted) && !w.unavailable[deleted.Name] {
		w.onGoing(c, deleted, "deletion", 0)
	}
}

// isRolled reports whether the deletion of a Machine belongs to a rollout that is not over. A
// template that the user took back before the deployment acted on it began none: no set but that
// of the Machine has replicas, or was written since.
func (w *watcher) isRolled(c *Cluster, m *machinev1alpha1.Machine) bool {
	written, rolled := w.rolled[m.Name]
	if !rolled {
		return false
	}
	own := m.OwnerReferences[0].Name
	for name, e := range c.sets.last {
		if name != own && e.object.Spec.Replicas > 0 {
			return true
		}
	}
	return slices.ContainsFunc(c.sets.log[written:], func(e entry[*machinev1alpha1.MachineSet]) bool { return e.name != own })
}

// mayRoll reports whether the deletion of a Machine may be part of a rollout.
func (w *watcher) mayRoll(c *Cluster, m *machinev1alpha1.Machine) bool {
	return w.rolls(c, m) || w.latest().strategy != machinev1alpha1.OnDelete && !w.isAlone(c)
}

// rolls reports whether a rollout may delete a Machine: a wish in force has another template,
// or wants Machines that are younger, and neither holds the rollout nor leaves it to the user
// to delete Machines. What an update in place can change is no reason to delete.
func (w *watcher) rolls(c *Cluster, m *machinev1alpha1.Machine) bool {
	return slices.ContainsFunc(w.wishes, func(wish *wish) bool {
		switch {
		case wish.paused || wish.strategy == machinev1alpha1.OnDelete:
			return false
		case wish.strategy == machinev1alpha1.InPlaceUpdate:
			return wish.kind.failureDomain != kindOf(m.Spec).failureDomain
		}
		return wish.kind != kindOf(m.Spec) || c.isBefore(m, wish.after)
	})
}

// isBefore reports whether the set of a Machine is older than a time that has come. A set that was
// deleted, and that a reconcile with an old view creates again, is of the revision that it was made
// for: the rollout to a newer revision replaces its Machines, however young they are.
func (c *Cluster) isBefore(m *machinev1alpha1.Machine, after *metav1.Time) bool {
	created, set := m.CreationTimestamp, m.OwnerReferences[0].Name
	if i := slices.IndexFunc(c.sets.log, func(e entry[*machinev1alpha1.MachineSet]) bool { return e.name == set }); i >= 0 {
		created = c.sets.log[i].object.CreationTimestamp
	}
	return after != nil && !after.After(c.Now) && created.Before(after)
}

// scalesDown reports whether a scale-down may delete a Machine. A scale-down is spread over
// all Machines, and those that other sets have yet to create, so that there must be more than the
// least replicas of the wishes in force.
// If no wish lowered replicas, only as many go as there are too many: of Machines of the
// template more than replicas, and of all of them more than replicas + maxSurge.
func (w *watcher) scalesDown(c *Cluster, m *machinev1alpha1.Machine) bool {
	all, wanted := 0, 0
	count := func(m *machinev1alpha1.Machine) {
		all++
		if slices.ContainsFunc(w.wishes, func(wish *wish) bool {
			return wish.kind == kindOf(m.Spec) || wish.strategy == machinev1alpha1.InPlaceUpdate
		}) {
			wanted++
		}
	}
	for _, e := range c.machines.last {
		if c.isReplica(e.object) {
			count(e.object)
		}
	}
	// The planners may not know yet that others were deleted, and count those that a set has
	// ordered and not seen yet.
	counted := map[string]bool{}
	for name, l := range w.losses {
		if e, there := c.machines.last[name]; l.removed && (!there || e.object.DeletionTimestamp != nil) {
			counted[name] = true
		}
	}
	for _, s := range c.sets.last {
		for _, name := range s.object.Status.Creating {
			if _, there := c.machines.last[name]; !there {
				counted[name] = true
			}
		}
	}
	all, wanted = all+len(counted), wanted+len(counted)
	replicas, most, lowered := w.wishes[0].replicas, w.wishes[0].most, false
	for i, wish := range w.wishes {
		lowered = lowered || i > 0 && wish.replicas < w.wishes[i-1].replicas
		replicas, most = min(replicas, wish.replicas), min(most, wish.most)
	}
	holes := 0
	for name, s := range c.sets.last {
		if name != m.OwnerReferences[0].Name {
			holes += max(0, c.holes(s.object))
		}
	}
	return lowered && all+holes > int(replicas) || wanted > int(replicas) || all > most
}

// lowered is by how many Machines the wishes in force lowered replicas, each of them. As many
// marked Machines may be deleted although other Machines that are wanted are still missing.
func (w *watcher) lowered() int {
	n := 0
	for i, wish := range w.wishes[1:] {
		n += max(0, int(w.wishes[i].replicas-wish.replicas))
	}
	return n
}

// isAlone reports whether all Machines, those that are being deleted too, are of one kind, and
// no other is wanted: there is no rollout.
func (w *watcher) isAlone(c *Cluster) bool {
	kinds := map[kind]bool{}
	for _, wish := range w.wishes {
		kinds[wish.kind] = true
	}
	for _, e := range c.machines.last {
		kinds[kindOf(e.object.Spec)] = true
	}
	return len(kinds) == 1
}

// onUnmarked holds that a scale-down deletes marked Machines first, of whatever set they are:
// a healthy Machine is not deleted while one is there whose mark everybody could see. A
// preserved one is no such Machine. Healthy is what was available when its set recorded that
// it deletes it.
func (w *watcher) onUnmarked(c *Cluster, deleted *machinev1alpha1.Machine) {
	if isMarked(deleted) || !c.Available(deleted) || w.unavailable[deleted.Name] {
		return
	}
	for name, n := range w.marks {
		m := c.machines.last[name].object
		_, goes := w.causes[name]
		if n.old && !goes && m.DeletionTimestamp == nil && !isPreserved(m, c.Now) {
			w.violated("deletion of %s, which is healthy and not marked, while %s is marked", deleted.Name, name)
		}
	}
}

// onDrain holds the lower bound for a Machine that is updated in place. One that was not available
// when that was decided is updated though it came up since. Nor does the update wait for marked
// Machines that went since: those are deleted however many others are available.
func (w *watcher) onDrain(c *Cluster, drained *machinev1alpha1.Machine) {
	w.age(c)
	if u := w.updates[drained.Name]; u == nil || u.available {
		aside := c.availableAside()
		if u != nil {
			aside += u.taken
		}
		w.onGoing(c, drained, "drain", aside)
	}
}

// availableAside is how many available Machines are set aside. They count as gone for what is
// decided, and run on: a drain that was decided before leaves them.
func (c *Cluster) availableAside() int {
	n := 0
	for _, e := range c.machines.last {
		if e.object.DeletionTimestamp == nil && c.isSetAside(e.object) && c.Available(e.object) {
			n++
		}
	}
	return n
}

// onGoing holds the lower bound: when an available Machine goes, at least replicas -
// maxUnavailable others are available. A loss counts as available until everybody could know
// of it, and is earned again by its replacement alone. A Machine that goes in the place of a
// preserved one is not missed. Aside is how many others count that are no replicas.
func (w *watcher) onGoing(c *Cluster, going *machinev1alpha1.Machine, how string, aside int) {
	left, excused := aside, 0
	for _, e := range c.machines.last {
		if e.name != going.Name && c.isReplica(e.object) && c.Available(e.object) {
			left++
		}
	}
	for name, l := range w.losses {
		if e, there := c.machines.last[name]; l.available && name != going.Name && (!there || !c.Available(e.object)) {
			excused++
		}
	}
	for _, name := range w.spared[going.Name] {
		l, e := w.losses[name], c.machines.last[name]
		if (l == nil || !l.available) && (e.object == nil || !c.Available(e.object)) {
			excused++
		}
	}
	least := w.wishes[0].least
	for _, wish := range w.wishes {
		least = min(least, wish.least)
	}
	if left+excused < least {
		w.violated("%s of %s: %d Machines are left available, and %d were lost just now, of at least %d", how, going.Name, left, excused, least)
	}
}

// isReplica reports whether a Machine is one: it is not being deleted, nor was it set aside.
func (c *Cluster) isReplica(m *machinev1alpha1.Machine) bool {
	return m.DeletionTimestamp == nil && !c.isSetAside(m)
}

// isSetAside reports whether a Machine counts as gone, because it is kept for analysis though
// its deletion is wanted.
func (c *Cluster) isSetAside(m *machinev1alpha1.Machine) bool {
	s, there := c.sets.last[m.OwnerReferences[0].Name]
	return there && slices.Contains(s.object.Status.SetAside, m.Name)
}

func isMarked(m *machinev1alpha1.Machine) bool {
	_, marked := m.Annotations[machinev1alpha1.AnnotationDeleteMachine]
	return marked
}

// isPreserved reports whether a Machine is kept for analysis, or is about to be.
func isPreserved(m *machinev1alpha1.Machine, now time.Time) bool {
	if p := m.Status.Preservation; p != nil {
		return now.Before(p.Until.Time)
	}
	switch m.Annotations[machinev1alpha1.AnnotationPreserve] {
	case machinev1alpha1.PreserveNow:
		return true
	case machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveAuto:
		return m.Status.Phase == machinev1alpha1.MachineFailed
	}
	return false
}

// bounds of a rollout, which tests read from the spec on their own: there are at most
// so many Machines, and at least so many available.
func bounds(d *machinev1alpha1.MachineDeployment) (most, least int) {
	replicas := int(d.Spec.Replicas)
	up, down := d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable
	ups, downs := 1, 0
	switch d.Spec.Strategy.Type {
	case machinev1alpha1.Recreate:
		return replicas, 0
	case machinev1alpha1.OnDelete:
		return replicas, replicas
	case machinev1alpha1.InPlaceUpdate:
		up, down = d.Spec.Strategy.InPlaceUpdate.MaxSurge, d.Spec.Strategy.InPlaceUpdate.MaxUnavailable
		ups, downs = 0, 1
	}
	surge, _ := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(up, intstr.FromInt(ups)), replicas, true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(down, intstr.FromInt(downs)), replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return replicas + surge, max(0, replicas-unavailable)
}
